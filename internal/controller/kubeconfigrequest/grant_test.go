package kubeconfigrequest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/polder-kaas/polder/api/v1alpha1"
)

// The objects are decoded as the workload cluster does it.
func TestRoleObjects(t *testing.T) {
	bindings, rules := map[string]string{}, map[string]bool{}
	for _, u := range roleObjects() {
		switch u.GetKind() {
		case "ClusterRoleBinding":
			var b rbacv1.ClusterRoleBinding
			if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(u.Object, &b, true); err != nil {
				t.Fatal(err)
			}
			if b.RoleRef.APIGroup != rbacv1.GroupName || b.RoleRef.Kind != "ClusterRole" || len(b.Subjects) != 1 {
				t.Errorf("binding %+v", b)
			}
			bindings[b.Name] = fmt.Sprintf("%s %s -> %s", b.Subjects[0].Kind, b.Subjects[0].Name, b.RoleRef.Name)
		case "ClusterRole":
			var role rbacv1.ClusterRole
			if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(u.Object, &role, true); err != nil {
				t.Fatal(err)
			}
			if role.Name != "polder:viewer" {
				t.Errorf("role %s", role.Name)
			}
			for _, r := range role.Rules {
				for _, resource := range r.Resources {
					rules[fmt.Sprint(r.APIGroups, resource, r.Verbs)] = true
				}
			}
		}
	}
	if d := cmp.Diff(map[string]string{
		"polder:admin":                 "Group polder:admin -> cluster-admin",
		"polder:viewer":                "Group polder:viewer -> view",
		"polder:viewer:cluster-scoped": "Group polder:viewer -> polder:viewer",
	}, bindings); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff(map[string]bool{
		"[]nodes[get list watch]": true, "[]namespaces[get list watch]": true, "[]persistentvolumes[get list watch]": true,
		"[storage.k8s.io]storageclasses[get list watch]": true, "[apiextensions.k8s.io]customresourcedefinitions[get list watch]": true,
	}, rules); d != "" {
		t.Error(d)
	}
}

// applying returns a client of a workload cluster that records the names of applied objects.
func applying(names *[]string, err error) client.Client {
	return interceptor.NewClient(fake.NewClientBuilder().Build(), interceptor.Funcs{
		Apply: func(_ context.Context, _ client.WithWatch, o runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
			var all client.ApplyOptions
			for _, opt := range opts {
				opt.ApplyToApply(&all)
			}
			u := &unstructured.Unstructured{Object: o.(runtime.Unstructured).UnstructuredContent()}
			*names = append(*names, fmt.Sprint(u.GetName(), " ", all.FieldManager, " ", *all.Force))
			return err
		},
	})
}

func TestApplyRolesAsOneFieldOwner(t *testing.T) {
	var names []string
	if err := applyRoles(t.Context(), applying(&names, nil)); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]string{"polder:admin polder-access true", "polder:viewer polder-access true", "polder:viewer polder-access true",
		"polder:viewer:cluster-scoped polder-access true"}, names); d != "" {
		t.Error(d)
	}
	broken := errors.New("broken")
	if err := applyRoles(t.Context(), applying(&names, broken)); !errors.Is(err, broken) || !strings.Contains(err.Error(), "ClusterRoleBinding polder:admin") {
		t.Errorf("got %v", err)
	}
}

func TestObstacleFromApplyError(t *testing.T) {
	if o := obstacleFromApplyError(name, nil); o != nil {
		t.Errorf("obstacle %+v", o)
	}
	gr := schema.GroupResource{Group: rbacv1.GroupName, Resource: "clusterrolebindings"}
	for title, c := range map[string]struct {
		err          error
		reason, want string
	}{
		"a binding to another role": {apierrors.NewInvalid(schema.GroupKind{Kind: "ClusterRoleBinding"}, "polder:admin", nil), v1alpha1.ReasonApplyFailed,
			"delete it there"},
		"no right":               {apierrors.NewForbidden(gr, "polder:admin", errors.New("no")), v1alpha1.ReasonApplyFailed, "does not take"},
		"a webhook that refuses": {apierrors.NewBadRequest("no"), v1alpha1.ReasonApplyFailed, "does not take"},
		"nobody there": {errors.New("connection refused"), v1alpha1.ReasonUnreachable,
			"cannot be reached, and is tried again every 15s: connection refused"},
		"too slow": {context.DeadlineExceeded, v1alpha1.ReasonUnreachable, "cannot be reached"},
		"credentials that ended": {&apierrors.StatusError{ErrStatus: metav1.Status{Reason: metav1.StatusReasonUnauthorized}}, v1alpha1.ReasonUnreachable,
			"cannot be reached"},
	} {
		t.Run(title, func(t *testing.T) {
			o := obstacleFromApplyError(name, fmt.Errorf("applying: %w", c.err))
			if o.reason != c.reason || !strings.Contains(strings.ReplaceAll(o.message, "applying: ", ""), c.want) || o.requeueAfter != pollDelay {
				t.Errorf("obstacle %+v, want %s: %s", o, c.reason, c.want)
			}
		})
	}
}

// One namespace with any number of requests for a cluster that does not answer keeps few workers busy.
func TestRequestsOfOneNamespaceTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, newRequest())
		slow, err := w.Limiter.Acquire(t.Context(), space)
		w.must(err)
		start := time.Now()
		if got := w.run(); got < slotRetryDelay || got > 2*slotRetryDelay || time.Since(start) > 2*time.Second || len(w.appliedRoles) > 0 {
			t.Errorf("it waited %s, looks again after %s, and granted %v", time.Since(start), got, w.appliedRoles)
		}
		w.expectNotReady(v1alpha1.ReasonProgressing, v1alpha1.ConditionReconciling,
			"cluster prod is not asked yet: others of the namespace are under way: at most 1 at once")
		slow()
		w.unreachable = errors.New("no route")
		w.run()
		slow, err = w.Limiter.Acquire(t.Context(), space)
		w.must(err)
		writes := w.writes
		w.run()
		w.expectNotReady(v1alpha1.ReasonUnreachable, v1alpha1.ConditionReconciling, "no route")
		if w.writes != writes {
			t.Error("waiting for its turn writes")
		}
		slow()
		w.unreachable = nil
		w.run()
		if !isAnswered(w.request()) {
			t.Error("its turn has come, and it has no answer")
		}
	})
}
