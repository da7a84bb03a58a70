package kubeconfigrequest

import (
	"context"
	"errors"
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/polder-kaas/polder/api/v1alpha1"
)

func TestDeletedWhenItsTimeIsOver(t *testing.T) {
	w := newWorld(t, newRequest())
	w.run()
	w.clock.SetTime(w.request().Status.ExpirationTime.Add(-time.Millisecond))
	if got := w.run(); got != time.Millisecond || w.request() == nil {
		t.Fatalf("a moment before, it is gone, or looked at again after %s", got)
	}
	w.clock.SetTime(w.request().Status.ExpirationTime.Time)
	w.run()
	if w.request() != nil {
		t.Fatal("it is still there")
	}
	if d := w.deleted[0]; len(w.deleted) != 1 || d.Preconditions == nil || *d.Preconditions.UID != "request" ||
		*d.PropagationPolicy != metav1.DeletePropagationBackground {
		t.Errorf("deleted with %+v", d)
	}
}

// Credentials for a cluster that is gone are of no use to anybody.
func TestDeletedWithItsCluster(t *testing.T) {
	for name, c := range map[string]struct {
		answered bool
		change   func(*world)
		gone     bool
	}{
		"the cluster is there":       {true, func(*world) {}, false},
		"the cluster is gone":        {true, func(w *world) { w.must(w.Client.Delete(t.Context(), newWorkloadCluster())) }, true},
		"another has its name":       {true, func(w *world) { w.replaceCluster(at.Add(time.Hour)) }, true},
		"it is as old as its answer": {true, func(w *world) { w.replaceCluster(at.Truncate(time.Second)) }, false},
		"nobody has answered yet":    {false, func(w *world) { w.must(w.Client.Delete(t.Context(), newWorkloadCluster())) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, newRequest())
			if c.answered {
				w.run()
			}
			c.change(w)
			w.run()
			if gone := w.request() == nil; gone != c.gone {
				t.Errorf("gone: %t", gone)
			}
		})
	}
}

// replaceCluster puts another WorkloadCluster in the place of the one that is there.
func (w *world) replaceCluster(made time.Time) {
	w.t.Helper()
	w.must(w.Client.Delete(w.t.Context(), newWorkloadCluster()))
	o := newWorkloadCluster()
	o.UID, o.CreationTimestamp = "another", metav1.Time{Time: made}
	w.must(w.Client.Create(w.t.Context(), o))
}

func TestDeletedWithoutAnAnswerAfterAnHour(t *testing.T) {
	w := newWorld(t, newRequest())
	w.unreachable = errors.New("no route")
	w.clock.SetTime(at.Truncate(time.Second).Add(time.Hour - time.Second))
	if got := w.run(); got != time.Second || w.request() == nil {
		t.Fatalf("a second before, it is gone, or looked at again after %s", got)
	}
	w.clock.SetTime(at.Truncate(time.Second).Add(time.Hour))
	w.run()
	if w.request() != nil {
		t.Error("it is still there")
	}
}

func TestLeftAloneWhileItIsDeleted(t *testing.T) {
	w := newWorld(t, newRequest(func(o *v1alpha1.KubeconfigRequest) { o.Finalizers = []string{"example.org/held"} }))
	w.must(w.Client.Delete(t.Context(), w.request()))
	writes := w.writes
	for _, now := range []time.Time{at, at.Add(48 * time.Hour)} {
		w.clock.SetTime(now)
		if got := w.run(); got != 0 || w.writes != writes || len(w.appliedRoles) > 0 {
			t.Errorf("at %s it is looked at again after %s, with %d writes", now, got, w.writes-writes)
		}
	}
}

func TestGoneIsNoError(t *testing.T) {
	w := newWorld(t, newRequest())
	w.must(w.Client.Delete(t.Context(), w.request()))
	if got := w.run(); got != 0 {
		t.Errorf("looks again after %s", got)
	}
}

func TestGoneWhileItIsDeleted(t *testing.T) {
	w := newWorld(t, newRequest())
	o := w.request()
	w.must(w.Client.Delete(t.Context(), o))
	w.must(w.deleteRequest(t.Context(), o))
}

func TestUnreachableIsTriedAgain(t *testing.T) {
	for title, set := range map[string]func(*world, error){
		"no access": func(w *world, err error) { w.unreachable = err },
		"no answer": func(w *world, err error) { w.refuses = err },
	} {
		t.Run(title, func(t *testing.T) {
			w := newWorld(t, newRequest())
			set(w, errors.New("no route"))
			if got := w.run(); got != pollDelay {
				t.Errorf("looks again after %s", got)
			}
			w.expectNotReady(v1alpha1.ReasonUnreachable, v1alpha1.ConditionReconciling, "cluster prod cannot be reached, and is tried again every 15s")
			if w.secret("mine-access") != nil || len(w.events.notes) > 0 {
				t.Error("something was handed out")
			}
			set(w, nil)
			w.run()
			if !isAnswered(w.request()) {
				t.Error("it is not answered afterwards")
			}
		})
	}
}

func TestInvalidIsNotTriedAgain(t *testing.T) {
	w := newWorld(t, newRequest(func(o *v1alpha1.KubeconfigRequest) { o.Spec.Username = "" }))
	if got := w.run(); got != time.Hour-678*time.Nanosecond {
		t.Errorf("looks again after %s", got)
	}
	w.expectNotReady(v1alpha1.ReasonRequestInvalid, v1alpha1.ConditionStalled, "spec.username is empty")
}

func TestMissingClusterStalls(t *testing.T) {
	w := newWorld(t, newRequest(func(o *v1alpha1.KubeconfigRequest) { o.Spec.ClusterName = "nowhere" }))
	if got := w.run(); got != resyncDelay {
		t.Errorf("looks again after %s", got)
	}
	w.expectNotReady(v1alpha1.ReasonClusterMissing, v1alpha1.ConditionStalled, "there is no WorkloadCluster nowhere in namespace team")
}

// The reconciler gets a request as it was before it was answered.
func TestCacheThatIsBehind(t *testing.T) {
	w := newWorld(t, newRequest())
	old := w.request()
	w.run()
	granted, writes, said := len(w.appliedRoles), w.writes, len(w.events.notes)
	w.Client = interceptor.NewClient(w.Client.(client.WithWatch), interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			if into, ok := o.(*v1alpha1.KubeconfigRequest); ok {
				old.DeepCopyInto(into)
				return nil
			}
			return c.Get(ctx, key, o, opts...)
		},
	})
	if got := w.run(); got != cacheLagDelay {
		t.Errorf("looks again after %s", got)
	}
	if w.writes != writes || len(w.appliedRoles) != granted || len(w.events.notes) != said {
		t.Errorf("%d writes, grants %v, events %v", w.writes-writes, w.appliedRoles[granted:], w.events.notes[said:])
	}
}

func TestSecretThatCannotBeWritten(t *testing.T) {
	gr := schema.GroupResource{Resource: "secrets"}
	broken := errors.New("broken")
	for title, c := range map[string]struct {
		err    error
		after  time.Duration
		reason string // of the condition
		want   error  // that is returned
	}{
		"somebody was faster": {apierrors.NewAlreadyExists(gr, "mine-access"), cacheLagDelay, "", nil},
		"it was changed now":  {apierrors.NewConflict(gr, "mine-access", broken), 50 * time.Millisecond, "", nil},
		"it is immutable":     {apierrors.NewInvalid(schema.GroupKind{Kind: "Secret"}, "mine-access", nil), pollDelay, v1alpha1.ReasonNotOurs, nil},
		"the plane is away":   {broken, 0, "", broken},
	} {
		t.Run(title, func(t *testing.T) {
			w := newWorld(t, newRequest())
			w.failSecret = c.err
			if c.want != nil {
				if err := w.runErr(); !errors.Is(err, c.want) {
					t.Errorf("got %v", err)
				}
			} else if got := w.run(); got != c.after {
				t.Errorf("looks again after %s, want %s", got, c.after)
			}
			o := w.request()
			if got := ready(o).Reason; got != c.reason || isAnswered(o) || o.Status.SecretName != "" || len(w.events.notes) > 0 {
				t.Errorf("the reason is %q, want %q; status %+v", got, c.reason, o.Status)
			}
			w.failSecret = nil
			if w.run(); !isAnswered(w.request()) {
				t.Error("it is not answered afterwards")
			}
		})
	}
}

// If the plane does not answer, nothing is concluded from that.
func TestBrokenReads(t *testing.T) {
	broken := errors.New("broken")
	for title, at := range map[string]client.Object{"WorkloadCluster": newWorkloadCluster(), "Cluster": newCluster(), "Secret": &corev1.Secret{}} {
		t.Run(title, func(t *testing.T) {
			w := newWorld(t, newRequest())
			same := func(o client.Object) bool { return reflect.TypeOf(o) == reflect.TypeOf(at) }
			c := interceptor.NewClient(w.Client.(client.WithWatch), interceptor.Funcs{
				Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
					if same(o) {
						return broken
					}
					return c.Get(ctx, key, o, opts...)
				},
			})
			w.Client, w.Live = c, c
			if err := w.runErr(); !errors.Is(err, broken) {
				t.Errorf("got %v", err)
			}
			if d := cmp.Diff(v1alpha1.KubeconfigRequestStatus{}, w.request().Status); d != "" || w.writes > 0 {
				t.Errorf("the status is written: %s", d)
			}
		})
	}
}
