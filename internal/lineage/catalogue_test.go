package lineage_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	csv1 "github.com/polder-kaas/polder/api/clusterstack/v1alpha1"
	"github.com/polder-kaas/polder/api/v1alpha1"
	"github.com/polder-kaas/polder/internal/lineage"
)

const shared = v1alpha1.CatalogueNamespace

var errBroken = errors.New("broken")

func reader(t *testing.T, objects ...client.Object) client.WithWatch {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(corev1.AddToScheme(scheme), csv1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	spaces := []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "a", Labels: map[string]string{"kaas": "yes"}}},
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "b"}},
	}
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(append(spaces, objects...)...).Build()
}

// stack makes a ClusterStack of provider local, named scs. One of the shared catalogue serves namespace a.
func stack(namespace, minor string, changes ...func(*csv1.ClusterStack)) *csv1.ClusterStack {
	s := &csv1.ClusterStack{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "scs-" + strings.ReplaceAll(minor, ".", "-")}}
	s.Spec = csv1.ClusterStackSpec{Provider: "local", Name: "scs", KubernetesVersion: minor, Channel: csv1.ChannelStable}
	if namespace == shared {
		s.Spec.AllowedNamespaces = &metav1.LabelSelector{MatchLabels: map[string]string{"kaas": "yes"}}
	}
	for _, change := range changes {
		change(s)
	}
	return s
}

func custom(s *csv1.ClusterStack) { s.Name, s.Spec.Channel = s.Name+"-custom", csv1.ChannelCustom }

// release makes a release that is ready and has the patch .3 of its minor.
func release(namespace, name string, changes ...func(*csv1.ClusterStackRelease)) *csv1.ClusterStackRelease {
	r := &csv1.ClusterStackRelease{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	parts := strings.Split(strings.TrimPrefix(name, "local-scs-"), "-")
	r.Status.Ready, r.Status.KubernetesVersion = ptr.To(true), "v"+parts[0]+"."+parts[1]+".3"
	for _, change := range changes {
		change(r)
	}
	return r
}

func notReady(r *csv1.ClusterStackRelease) {
	r.Status.Ready = ptr.To(false)
	r.Status.Conditions = []metav1.Condition{{Type: csv1.ConditionReady, Status: metav1.ConditionFalse, Message: "it rains"}}
}

func markUnseen(r *csv1.ClusterStackRelease) {
	notReady(r)
	r.Status.Conditions[0].Reason, r.Status.Conditions[0].Message = csv1.ReasonClassNotSeen, "it comes"
}

func clearStatus(r *csv1.ClusterStackRelease) { r.Status = csv1.ClusterStackReleaseStatus{} }

func markDeleted(r *csv1.ClusterStackRelease) {
	r.Finalizers, r.DeletionTimestamp = []string{"x/y"}, ptr.To(metav1.Now())
}

func readCatalogue(t *testing.T, namespace string, objects ...client.Object) *lineage.Catalogue {
	t.Helper()
	all, err := lineage.ReadCatalogue(t.Context(), reader(t, objects...), namespace)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestDescribeStacks(t *testing.T) {
	deleted := stack("a", "1.36", func(s *csv1.ClusterStack) {
		s.Finalizers, s.DeletionTimestamp = []string{"x/y"}, ptr.To(metav1.Now())
	})
	other := stack("a", "1.36", func(s *csv1.ClusterStack) { s.Name, s.Spec.Provider = "other", "docker" })
	for name, c := range map[string]struct {
		namespace string
		have      []client.Object
		want      []string
	}{
		"nothing is there":                        {"a", nil, nil},
		"one of its own":                          {"a", []client.Object{stack("a", "1.36")}, []string{"scs of local (1.36)"}},
		"one of the catalogue that serves it":     {"a", []client.Object{stack(shared, "1.36")}, []string{"scs of local (1.36)"}},
		"one of the catalogue that does not":      {"b", []client.Object{stack(shared, "1.36")}, nil},
		"one of the catalogue that serves nobody": {"a", []client.Object{stack(shared, "1.36", func(s *csv1.ClusterStack) { s.Spec.AllowedNamespaces = nil })}, nil},
		"one of the catalogue that serves everybody, also who is not known yet": {"new",
			[]client.Object{stack(shared, "1.36", func(s *csv1.ClusterStack) { s.Spec.AllowedNamespaces = &metav1.LabelSelector{} })}, []string{"scs of local (1.36)"}},

		"one of a third namespace, though it would": {"a",
			[]client.Object{stack("c", "1.36", func(s *csv1.ClusterStack) { s.Spec.AllowedNamespaces = &metav1.LabelSelector{} })}, nil},
		"one that is being deleted": {"a", []client.Object{deleted}, nil},
		"minors are ordered as numbers, each is told once": {"a", []client.Object{stack("a", "1.10"), stack("a", "1.9"), stack(shared, "1.9")}, []string{
			"scs of local (1.9, 1.10)",
		}},
		"several, in the order of their names": {"a", []client.Object{stack("a", "1.36"), other}, []string{
			"scs of docker (1.36)", "scs of local (1.36)",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			if d := cmp.Diff(c.want, readCatalogue(t, c.namespace, c.have...).DescribeStacks()); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestNewestMinor(t *testing.T) {
	for name, c := range map[string]struct {
		have []client.Object
		want string
	}{
		"no such stack": {nil, ""},
		"the newest that has a ready one": {[]client.Object{stack("a", "1.9"), release("a", "local-scs-1-9-v1"), stack("a", "1.10"),
			release("a", "local-scs-1-10-v1")}, "1.10"},
		"a newer that has none ready": {[]client.Object{stack("a", "1.9"), release("a", "local-scs-1-9-v1"), stack("a", "1.10"),
			release("a", "local-scs-1-10-v1", notReady)}, "1.9"},
		"none is ready yet": {[]client.Object{stack("a", "1.9"), stack("a", "1.10")}, "1.10"},
		"a newer minor of another channel": {[]client.Object{stack("a", "1.9"), release("a", "local-scs-1-9-v1"), stack("a", "1.10", custom),
			release("a", "local-scs-1-10-v0-sha-abc")}, "1.9"},
		"a newer one that is being deleted": {[]client.Object{stack("a", "1.9"), release("a", "local-scs-1-9-v1"), stack("a", "1.10"),
			release("a", "local-scs-1-10-v1", markDeleted)}, "1.9"},
		"own and shared are looked at alike": {[]client.Object{stack("a", "1.9"), release("a", "local-scs-1-9-v1"), stack(shared, "1.10"),
			release(shared, "local-scs-1-10-v1")}, "1.10"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := readCatalogue(t, "a", c.have...).NewestMinor("local", "scs", v1alpha1.ChannelStable); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

func TestReadCatalogueFails(t *testing.T) {
	for name, c := range map[string]struct {
		at   client.ObjectList
		want string
	}{
		"stacks cannot be read":   {&csv1.ClusterStackList{}, "looking for stacks in namespace a: broken"},
		"releases cannot be read": {&csv1.ClusterStackReleaseList{}, "looking for releases in namespace a: broken"},
	} {
		t.Run(name, func(t *testing.T) {
			broken := interceptor.NewClient(reader(t, stack("a", "1.36")), interceptor.Funcs{
				List: func(ctx context.Context, all client.WithWatch, l client.ObjectList, opts ...client.ListOption) error {
					_, stacks := l.(*csv1.ClusterStackList)
					if _, of := c.at.(*csv1.ClusterStackList); stacks == of {
						return errBroken
					}
					return all.List(ctx, l, opts...)
				},
			})
			if _, err := lineage.ReadCatalogue(t.Context(), broken, "a"); !errors.Is(err, errBroken) || err.Error() != c.want {
				t.Errorf("%v, want %s", err, c.want)
			}
		})
	}
	t.Run("nobody knows whom a stack serves", func(t *testing.T) {
		if _, err := lineage.ReadCatalogue(t.Context(), reader(t, stack(shared, "1.36")), "gone"); err == nil {
			t.Error("no error")
		}
	})
}
