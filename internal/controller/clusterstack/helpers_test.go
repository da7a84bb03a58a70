package clusterstack

import (
	"bytes"
	"context"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	csv1 "github.com/polder-kaas/polder/api/clusterstack/v1alpha1"
	"github.com/polder-kaas/polder/internal/lineage"
	"github.com/polder-kaas/polder/internal/releases"
	"github.com/polder-kaas/polder/stack"
	"github.com/polder-kaas/polder/stack/archive"
	"github.com/polder-kaas/polder/stack/registry"
	"github.com/polder-kaas/polder/stack/version"
)

const line = "docker-ferrol-1-27-"

// indexer adds indexes to a builder of fake clients.
type indexer struct{ *fake.ClientBuilder }

func (i indexer) IndexField(_ context.Context, o client.Object, field string, f client.IndexerFunc) error {
	i.WithIndex(o, field, f)
	return nil
}

func newClient(t *testing.T, objects ...client.Object) client.WithWatch {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(clusterv1.AddToScheme(scheme), csv1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	b := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithStatusSubresource(&csv1.ClusterStack{}, &csv1.ClusterStackRelease{})
	if err := lineage.IndexClustersByClass(t.Context(), indexer{b}); err != nil {
		t.Fatal(err)
	}
	return b.Build()
}

// newBareReconciler returns a reconciler without clients, with room for many events.
func newBareReconciler() *Reconciler {
	return &Reconciler{Events: events.NewFakeRecorder(64), Clock: clock.RealClock{}, Interval: 10 * time.Minute}
}

// newReconciler returns a reconciler with a source at a path, which need not exist.
func newReconciler(t *testing.T, path string, objects ...client.Object) *Reconciler {
	t.Helper()
	c := newClient(t, objects...)
	l, err := releases.New(releases.Config{Dir: filepath.Join(t.TempDir(), "cache"), Directories: map[string]string{"here": path}, Secrets: c})
	if err != nil {
		t.Fatal(err)
	}
	r := newBareReconciler()
	r.Client, r.Releases = c, l
	return r
}

// drainEvents returns the events recorded so far.
func (r *Reconciler) drainEvents() []string {
	var out []string
	for {
		select {
		case e := <-r.Events.(*events.FakeRecorder).Events:
			out = append(out, e)
		default:
			return out
		}
	}
}

func newStack(changes ...func(*csv1.ClusterStack)) *csv1.ClusterStack {
	o := &csv1.ClusterStack{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "ferrol", UID: "stack", Generation: 1}}
	o.Spec = csv1.ClusterStackSpec{
		Provider: "docker", Name: "ferrol", KubernetesVersion: "1.27", Channel: csv1.ChannelStable, Source: &csv1.Source{Directory: "here"},
	}
	for _, change := range changes {
		change(o)
	}
	return o
}

func newRelease(v string, changes ...func(*csv1.ClusterStackRelease)) *csv1.ClusterStackRelease {
	r := &csv1.ClusterStackRelease{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: line + v, UID: "uid"}}
	r.OwnerReferences = []metav1.OwnerReference{ownerReference(newStack())}
	for _, change := range changes {
		change(r)
	}
	return r
}

// markReady makes a release ready.
func markReady(r *csv1.ClusterStackRelease) {
	r.Status.Ready, r.Status.KubernetesVersion = ptr.To(true), "v1.27.3"
	condition(csv1.ConditionDownloaded, metav1.ConditionTrue, "")(r)
	condition(csv1.ConditionReady, metav1.ConditionTrue, "")(r)
}

func markDeleted(r *csv1.ClusterStackRelease) {
	r.DeletionTimestamp, r.Finalizers = &metav1.Time{Time: time.Unix(1_700_000_000, 0)}, []string{csv1.ReleaseFinalizer}
}

func removeOwner(r *csv1.ClusterStackRelease) { r.OwnerReferences = nil }

func condition(name string, status metav1.ConditionStatus, message string) func(*csv1.ClusterStackRelease) {
	return func(r *csv1.ClusterStackRelease) {
		meta.SetStatusCondition(&r.Status.Conditions, metav1.Condition{Type: name, Status: status, Reason: "Reason", Message: message})
	}
}

// newSourceState makes the state of a source that has these versions.
func newSourceState(t *testing.T, versions ...string) sourceState {
	t.Helper()
	l := sourceState{answered: true, location: "directory here"}
	for _, v := range versions {
		r, err := version.ParseReleaseName(line + v)
		if err != nil {
			t.Fatal(err)
		}
		l.entries = append(l.entries, registry.Entry{Release: r, Digest: "sha256:" + v})
	}
	return l
}

// publish writes a release into a directory.
func publish(t *testing.T, dir, name string) {
	t.Helper()
	id, err := version.ParseReleaseName(name)
	if err != nil {
		t.Fatal(err)
	}
	v := id.Version.String()
	chart := func(name string) []byte {
		var b bytes.Buffer
		if err := archive.Write(&b, archive.Tree{"c/Chart.yaml": []byte("name: " + name)}); err != nil {
			t.Fatal(err)
		}
		return b.Bytes()
	}
	r, err := stack.Load(name, archive.Tree{
		"metadata.yaml": []byte("apiVersion: metadata.clusterstack.x-k8s.io/v1alpha1\nversions:\n  clusterStack: " + v + "\n  kubernetes: v" +
			id.Kubernetes.MinorString() + ".3\n  components:\n    clusterAddon: v2\n"),
		id.ClassChart() + "-" + v + ".tgz": chart("class"),
		id.AddonChart() + "-v2.tgz":        chart("addon"),
	})
	if err != nil {
		t.Fatal(err)
	}
	s, _, err := registry.Open(t.Context(), dir, registry.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Publish(t.Context(), r); err != nil {
		t.Fatal(err)
	}
}
