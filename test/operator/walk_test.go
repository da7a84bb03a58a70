package operator

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	csv1 "github.com/polder-kaas/polder/api/clusterstack/v1alpha1"
	"github.com/polder-kaas/polder/stack"
	"github.com/polder-kaas/polder/stack/archive"
	"github.com/polder-kaas/polder/test/stackenv"
	"github.com/polder-kaas/polder/test/testenv"
)

const (
	soon    = 4 * time.Minute
	create  = 8 * time.Minute
	upgrade = 12 * time.Minute
)

// TestWalk goes the whole way: a stack is published, becomes a class, a cluster is made of it and gets its
// add-ons in stages, changes its class, is upgraded while a stage holds the upgrade, and goes.
func TestWalk(t *testing.T) {
	t.Parallel()
	w := newWalk(t)
	w.publish(t, "1.36", "v1", nil)
	w.stack(t, "old", "1.36", nil)
	w.becomesReady(t, "old", "v1")

	w.makeCluster(t, "1.36", "v1")
	w.addonsOf(t, "local-scs-1-36-v1", "v1")
	w.driftIsCorrected(t)
	w.inUseIsProtected(t, "old", "local-scs-1-36-v1")

	// Another release for the same Kubernetes: found by itself, and its stages are run without a runtime hook.
	w.publish(t, "1.36", "v2", func(files archive.Tree) { delete(files, "cluster-addon/storage/templates/storageclass.yaml") })
	w.ask(t, "old")
	w.becomesReady(t, "old", "v1,v2")
	w.moveTo(t, "1.36", "v2")
	w.addonsOf(t, "local-scs-1-36-v2", "v2")
	w.releaseGoes(t, "local-scs-1-36-v1")

	// An upgrade whose stages do not get done is held, says why, and a repaired release lets it go.
	w.publish(t, "1.37", "v1", func(files archive.Tree) { gate(files, "gate.data.open == 'yes'") })
	w.stack(t, "new", "1.37", nil)
	w.becomesReady(t, "new", "v1")
	w.moveTo(t, "1.37", "v1")
	w.isHeld(t, "local-scs-1-37-v1", "ConfigMap kube-public/gate is not there yet")
	w.publish(t, "1.37", "v2", func(files archive.Tree) { gate(files, "gate.data.open + 1") })
	w.ask(t, "new")
	w.says(t, &csv1.ClusterStackRelease{}, "local-scs-1-37-v2", csv1.ConditionReady, metav1.ConditionFalse, csv1.ReasonInvalid, "it must be true or false")
	w.publish(t, "1.37", "v3", func(files archive.Tree) { gate(files, "gate.data.open == 'yes'") })
	w.ask(t, "new")
	w.becomesReady(t, "new", "v1,v3")
	w.moveTo(t, "1.37", "v3")
	w.isHeld(t, "local-scs-1-37-v3", "ConfigMap kube-public/gate is not there yet")
	w.openGate(t)
	w.isUpgraded(t, "v1.37.1")
	w.addonsOf(t, "local-scs-1-37-v3", "v3")

	w.everythingGoes(t)
}

// walk is one cluster with its stacks, in a namespace of its own.
type walk struct {
	mgmt       client.Client
	ns         string
	repository string
	cluster    *clusterv1.Cluster
	workload   client.Client
}

func newWalk(t *testing.T) *walk {
	p := shared.Get(t)
	w := &walk{mgmt: p.Client(t), ns: p.CreateNamespace(t)}
	w.repository = published.Repository("walk/" + w.ns)
	return w
}

func (w *walk) publish(t *testing.T, kubernetes, v string, change func(archive.Tree)) *stack.Release {
	t.Helper()
	files := stackenv.ReadSource(t, "local/scs")
	if change != nil {
		change(files)
	}
	r := stackenv.Build(t, files, kubernetes, v)
	stackenv.Publish(t, w.repository, r)
	return r
}

// gate adds a stage to the upgrade that waits for something only the test can make.
func gate(files archive.Tree, expression string) {
	const at = "    - name: storage\n      action: apply\n    - name: about\n      action: apply\n"
	config := string(files["clusteraddon.yaml"])
	i := strings.LastIndex(config, at)
	files["clusteraddon.yaml"] = []byte(config[:i] + `    - name: storage
      action: apply
      waitForPreCondition:
        objects: [{key: gate, apiVersion: v1, kind: ConfigMap, name: gate, namespace: kube-public}]
        conditions: ` + expression + `
    - name: about
      action: apply
`)
}

func (w *walk) stack(t *testing.T, name, kubernetes string, change func(*csv1.ClusterStack)) {
	t.Helper()
	s := &csv1.ClusterStack{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: name}}
	s.Spec = csv1.ClusterStackSpec{Provider: "local", Name: "scs", KubernetesVersion: kubernetes, Source: &csv1.Source{OCI: w.repository}}
	if change != nil {
		change(s)
	}
	if err := w.mgmt.Create(t.Context(), s); err != nil {
		t.Fatal(err)
	}
}

// ask makes the operator look at the source now.
func (w *walk) ask(t *testing.T, name string) {
	t.Helper()
	s := &csv1.ClusterStack{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: name}}
	patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, csv1.RequestedAtAnnotation, time.Now().Format(time.RFC3339Nano))
	if err := w.mgmt.Patch(t.Context(), s, client.RawPatch(client.Merge.Type(), []byte(patch))); err != nil {
		t.Fatal(err)
	}
}

// becomesReady waits for the versions that can be used, newest last.
func (w *walk) becomesReady(t *testing.T, name, versions string) {
	t.Helper()
	testenv.Eventually(t, soon, func() error {
		s := &csv1.ClusterStack{}
		if err := w.mgmt.Get(t.Context(), client.ObjectKey{Namespace: w.ns, Name: name}, s); err != nil {
			return err
		}
		newest := strings.ReplaceAll(versions[strings.LastIndex(versions, ",")+1:], ".", "-")
		latest := ptr.Deref(s.Status.LatestRelease, "")
		if !meta.IsStatusConditionTrue(s.Status.Conditions, csv1.ConditionReady) || ptr.Deref(s.Status.UsableVersions, "") != versions ||
			!strings.Contains(latest, "-"+newest+" | v"+s.Spec.KubernetesVersion+".") {
			return fmt.Errorf("stack %s: usable %v, latest %s, %v", name, ptr.Deref(s.Status.UsableVersions, ""), latest, s.Status.Conditions)
		}
		return nil
	})
}

func (w *walk) makeCluster(t *testing.T, kubernetes, v string) {
	t.Helper()
	r := stackenv.BuildShipped(t, "local/scs", kubernetes, v)
	c := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: "walk"}}
	c.Spec.Topology.ClassRef.Name = r.Name.Class()
	c.Spec.Topology.Version = r.Metadata.Versions.Kubernetes
	c.Spec.Topology.ControlPlane.Replicas = ptr.To[int32](1)
	c.Spec.Topology.Workers.MachineDeployments = []clusterv1.MachineDeploymentTopology{{Class: "default-worker", Name: "default", Replicas: ptr.To[int32](1)}}
	wrong := c.DeepCopy()
	wrong.Spec.Topology.Version = "v1.34.0"
	if err := w.mgmt.Create(t.Context(), wrong); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "write version: "+r.Metadata.Versions.Kubernetes) {
		t.Fatalf("a cluster with another version than its release's: %v", err)
	}
	if err := w.mgmt.Create(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	w.cluster = c
}

// addonsOf waits until the add-ons are those of a release.
func (w *walk) addonsOf(t *testing.T, release, version string) {
	t.Helper()
	testenv.Eventually(t, create, func() error {
		a, err := w.addon(t.Context())
		if err != nil {
			return err
		}
		if !meta.IsStatusConditionTrue(a.Status.Conditions, csv1.ConditionReady) || !ptr.Deref(a.Status.Ready, false) || a.Status.Release != w.ns+"/"+release {
			return fmt.Errorf("add-ons of %q: %v, %v", a.Status.Release, a.Status.Stages, a.Status.Conditions)
		}
		return nil
	})
	w.workload = testenv.NewClient(t, testenv.WorkloadConfig(t, w.mgmt, w.ns, w.cluster.Name))
	var about corev1.ConfigMap
	if err := w.workload.Get(t.Context(), client.ObjectKey{Namespace: "kube-public", Name: "cluster-stack"}, &about); err != nil ||
		about.Data["addons"] != version {
		t.Errorf("the add-ons say they are %v, want %s: %v", about.Data, version, err)
	}
	a, err := w.addon(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range a.Status.Resources {
		if r.Status != csv1.ResourceSynced {
			t.Errorf("%v", r)
		}
	}
	has := slices.ContainsFunc(a.Status.Resources, func(r csv1.Resource) bool { return r.Kind == "StorageClass" })
	if has != (version != "v2") {
		t.Errorf("the inventory of %s has a StorageClass: %t", release, has)
	}
}

func (w *walk) addon(ctx context.Context) (*csv1.ClusterAddon, error) {
	a := &csv1.ClusterAddon{}
	return a, w.mgmt.Get(ctx, client.ObjectKey{Namespace: w.ns, Name: csv1.AddonPrefix + w.cluster.Name}, a)
}

// driftIsCorrected changes objects in the plane, where changes are seen at once, and waits until they are as before.
func (w *walk) driftIsCorrected(t *testing.T) {
	t.Helper()
	class := &clusterv1.ClusterClass{}
	key := client.ObjectKey{Namespace: w.ns, Name: "local-scs-1-36-v1"}
	if err := w.mgmt.Get(t.Context(), key, class); err != nil {
		t.Fatal(err)
	}
	before := class.DeepCopy()
	class.OwnerReferences, class.Labels = nil, nil
	class.Spec.Variables = class.Spec.Variables[:1]
	if err := w.mgmt.Patch(t.Context(), class, client.MergeFrom(before)); err != nil {
		// Cluster API may not let somebody take variables away that clusters use.
		class = before.DeepCopy()
		class.OwnerReferences, class.Labels = nil, nil
		if err := w.mgmt.Patch(t.Context(), class, client.MergeFrom(before)); err != nil {
			t.Fatal(err)
		}
	}
	testenv.Eventually(t, soon, func() error {
		if err := w.mgmt.Get(t.Context(), key, class); err != nil {
			return err
		}
		if len(class.Spec.Variables) != len(before.Spec.Variables) || class.Labels[csv1.OwnedLabel] != csv1.OwnedValue || metav1.GetControllerOf(class) == nil {
			return fmt.Errorf("the class is not as it was: %v, %v, %d variables", class.Labels, class.OwnerReferences, len(class.Spec.Variables))
		}
		return nil
	})
}

// inUseIsProtected checks that what the cluster uses cannot be deleted.
func (w *walk) inUseIsProtected(t *testing.T, name, release string) {
	t.Helper()
	for _, o := range []client.Object{
		&csv1.ClusterStack{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: name}},
		&csv1.ClusterStackRelease{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: release}},
	} {
		if err := w.mgmt.Delete(t.Context(), o); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), w.ns+"/"+w.cluster.Name) {
			t.Errorf("deleting %T: %v", o, err)
		}
	}
}

func (w *walk) moveTo(t *testing.T, kubernetes, v string) {
	t.Helper()
	r := stackenv.BuildShipped(t, "local/scs", kubernetes, v)
	patch := fmt.Sprintf(`{"spec":{"topology":{"classRef":{"name":%q},"version":%q}}}`, r.Name.Class(), r.Metadata.Versions.Kubernetes)
	if err := w.mgmt.Patch(t.Context(), w.cluster, client.RawPatch(client.Merge.Type(), []byte(patch))); err != nil {
		t.Fatal(err)
	}
}

// releaseGoes waits for a release that nobody needs any more to go, with its class.
func (w *walk) releaseGoes(t *testing.T, name string) {
	t.Helper()
	testenv.Eventually(t, soon, func() error {
		for _, o := range []client.Object{&csv1.ClusterStackRelease{}, &clusterv1.ClusterClass{}} {
			if err := w.mgmt.Get(t.Context(), client.ObjectKey{Namespace: w.ns, Name: name}, o); !apierrors.IsNotFound(err) {
				return fmt.Errorf("%T %s is still there: %w", o, name, err)
			}
		}
		return nil
	})
}

// isHeld waits until an upgrade is held and everybody can see why, and checks that nothing has begun.
func (w *walk) isHeld(t *testing.T, release, why string) {
	t.Helper()
	testenv.Eventually(t, soon, func() error {
		a, err := w.addon(t.Context())
		if err != nil {
			return err
		}
		ready := meta.FindStatusCondition(a.Status.Conditions, csv1.ConditionReady)
		if a.Status.Target != w.ns+"/"+release || ready == nil || ready.Status == metav1.ConditionTrue || !strings.Contains(ready.Message, "stage storage") ||
			!strings.Contains(ready.Message, why) {
			return fmt.Errorf("the ClusterAddon does not say why: target %s, %v", a.Status.Target, ready)
		}
		c := &clusterv1.Cluster{}
		if err := w.mgmt.Get(t.Context(), client.ObjectKeyFromObject(w.cluster), c); err != nil {
			return err
		}
		topology := meta.FindStatusCondition(c.Status.Conditions, clusterv1.ClusterTopologyReconciledCondition)
		if topology == nil || !strings.Contains(topology.Message, why) || !strings.Contains(topology.Message, "stage storage") {
			return fmt.Errorf("the Cluster does not say why: %v", topology)
		}
		return nil
	})
	var nodes corev1.NodeList
	if err := w.workload.List(t.Context(), &nodes); err != nil {
		t.Fatal(err)
	}
	for _, n := range nodes.Items {
		if !strings.HasPrefix(n.Status.NodeInfo.KubeletVersion, "v1.36.") {
			t.Errorf("node %s has %s already", n.Name, n.Status.NodeInfo.KubeletVersion)
		}
	}
}

func (w *walk) openGate(t *testing.T) {
	t.Helper()
	gate := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-public", Name: "gate"}, Data: map[string]string{"open": "yes"}}
	if err := w.workload.Create(t.Context(), gate); err != nil {
		t.Fatal(err)
	}
}

func (w *walk) isUpgraded(t *testing.T, version string) {
	t.Helper()
	testenv.Eventually(t, upgrade, func() error {
		var nodes corev1.NodeList
		if err := w.workload.List(t.Context(), &nodes); err != nil {
			return err
		}
		for _, n := range nodes.Items {
			if n.Status.NodeInfo.KubeletVersion != version {
				return fmt.Errorf("node %s has %s", n.Name, n.Status.NodeInfo.KubeletVersion)
			}
		}
		var ds appsv1.DaemonSet
		return w.workload.Get(t.Context(), client.ObjectKey{Namespace: "kube-system", Name: "network-agent"}, &ds)
	})
}

// everythingGoes deletes the cluster, then its stacks.
func (w *walk) everythingGoes(t *testing.T) {
	t.Helper()
	if err := w.mgmt.Delete(t.Context(), w.cluster); err != nil {
		t.Fatal(err)
	}
	testenv.Eventually(t, create, func() error {
		_, err := w.addon(t.Context())
		if !apierrors.IsNotFound(err) {
			return fmt.Errorf("the ClusterAddon is still there: %w", err)
		}
		return nil
	})
	testenv.Eventually(t, soon, func() error { return w.deleteStacks(t.Context()) })
	for _, l := range []client.ObjectList{&csv1.ClusterStackReleaseList{}, &clusterv1.ClusterClassList{}, &corev1.SecretList{}} {
		testenv.Eventually(t, soon, func() error {
			if err := w.mgmt.List(t.Context(), l, client.InNamespace(w.ns)); err != nil {
				return err
			}
			if n := meta.LenList(l); n > 0 {
				return fmt.Errorf("%d of %T are left", n, l)
			}
			return nil
		})
	}
}

func (w *walk) deleteStacks(ctx context.Context) error {
	var l csv1.ClusterStackList
	if err := w.mgmt.List(ctx, &l, client.InNamespace(w.ns)); err != nil {
		return err
	}
	var errs []error
	for i := range l.Items {
		errs = append(errs, client.IgnoreNotFound(w.mgmt.Delete(ctx, &l.Items[i])))
	}
	return errors.Join(errs...)
}
