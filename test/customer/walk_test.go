package customer

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	csv1 "github.com/polder-kaas/polder/api/clusterstack/v1alpha1"
	"github.com/polder-kaas/polder/api/v1alpha1"
	"github.com/polder-kaas/polder/internal/releases/shipped"
	"github.com/polder-kaas/polder/stack/archive"
	"github.com/polder-kaas/polder/stacks"
	"github.com/polder-kaas/polder/test/stackenv"
	"github.com/polder-kaas/polder/test/testenv"
)

// file is the one small file.
const file = `apiVersion: polder.dev/v1alpha1
kind: WorkloadCluster
metadata: {name: walk}
spec:
  provider: local
  stack: {name: scs, kubernetesVersion: "1.36"}
  controlPlane: {replicas: 1, machineType: SCS-2V-4}
  workers:
    - name: default
      replicas: 1
      machine: {cpu: 3, memory: 6Gi}
      labels: {team: blue}
      taints: [{key: team, value: blue, effect: PreferNoSchedule}]
      zones: [zone-b]
`

// TestWalk goes the whole way of a cluster: made, changed, scaled, moved to another release and to the next Kubernetes,
// exported, deleted.
func TestWalk(t *testing.T) {
	t.Parallel()
	p := shared.Get(t)
	w := &walk{cli: cli{t: t, p: p, ns: p.CreateNamespace(t)}, mgmt: p.Client(t)}
	w.repository = published.Repository("walk/" + w.ns)
	w.publish("v11", nil) // later than what is shipped
	w.stack()

	w.says(w.does(file, "create", "-f", "-", "--wait", "--timeout", "3m"), "workloadcluster/walk created", "Creating", "Ready", "polder kubeconfig walk")
	w.isReady("local-scs-1-36-v11", "v1.36.6")
	w.nodesAre()
	w.access()
	w.says(w.p.GetPath(t, "/metrics/controllers"), `polder_workload_clusters{phase="Ready",provider="local"}`)

	w.does(strings.Replace(file, "  workers:", "  parameters: {podSecurityStandard: restricted}\n  workers:", 1), "apply", "-f", "-", "--wait", "--timeout", "4m")
	w.isReady("local-scs-1-36-v11", "v1.36.6")
	w.parameterIsThere()

	w.says(w.does("", "scale", "walk", "--workers", "2", "--wait", "--timeout", "2m"), "Ready")
	w.machines(2)

	w.releaseWithGate()
	w.undone()
	w.release()

	w.says(w.does("", "upgrade", "walk"), "1.37")
	w.says(w.does("", "upgrade", "walk", "--kubernetes", "1.37", "--wait", "--timeout", "5m"), "Updating", "Ready")
	w.isReady(shippedFor(t, "1-37"), "v1.37.1")
	w.fails(2, "cannot be lowered", "", "upgrade", "walk", "--kubernetes", "1.36")

	w.exported()
	w.accessInSecret()
	w.fails(2, "--yes", "", "delete", "walk")
	w.does("", "delete", "walk", "--yes", "--wait", "--timeout", "2m")
	w.nothingIsLeft()
}

// shippedFor is the release in polderd for a minor.
func shippedFor(t *testing.T, minor string) string {
	t.Helper()
	all, err := shipped.BuildReleases(stacks.Files)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range all {
		if strings.HasPrefix(r.Name.Tag(), "local-scs-"+minor+"-") {
			return r.Name.Tag()
		}
	}
	t.Fatalf("nothing is shipped for %s", minor)
	return ""
}

type walk struct {
	cli
	mgmt       client.Client
	repository string
}

func (w *walk) says(out string, words ...string) {
	w.t.Helper()
	for _, word := range words {
		if !strings.Contains(out, word) {
			w.t.Errorf("%q is not in:\n%s", word, out)
		}
	}
}

// publish publishes a release of the customer's own stack, for 1.36.
func (w *walk) publish(v string, change func(archive.Tree)) {
	w.t.Helper()
	files := stackenv.ReadSource(w.t, "local/scs")
	if change != nil {
		change(files)
	}
	stackenv.Publish(w.t, w.repository, stackenv.Build(w.t, files, "1.36", v))
}

// stack offers it in the customer's own namespace, where it goes before that of the catalogue.
func (w *walk) stack() {
	w.t.Helper()
	s := &csv1.ClusterStack{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: "own"}}
	s.Spec = csv1.ClusterStackSpec{Provider: "local", Name: "scs", KubernetesVersion: "1.36", Source: &csv1.Source{OCI: w.repository}}
	if err := w.mgmt.Create(w.t.Context(), s); err != nil {
		w.t.Fatal(err)
	}
}

// ask makes the stack look at its source now.
func (w *walk) ask() {
	w.t.Helper()
	s := &csv1.ClusterStack{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: "own"}}
	patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, csv1.RequestedAtAnnotation, w.t.Name()+fmt.Sprint(len(w.releases())))
	if err := w.mgmt.Patch(w.t.Context(), s, client.RawPatch("application/merge-patch+json", []byte(patch))); err != nil {
		w.t.Fatal(err)
	}
}

func (w *walk) releases() []csv1.ClusterStackRelease {
	w.t.Helper()
	var l csv1.ClusterStackReleaseList
	if err := w.mgmt.List(w.t.Context(), &l, client.InNamespace(w.ns)); err != nil {
		w.t.Fatal(err)
	}
	return l.Items
}

func (w *walk) get() *v1alpha1.WorkloadCluster {
	w.t.Helper()
	o := &v1alpha1.WorkloadCluster{}
	if err := w.mgmt.Get(w.t.Context(), client.ObjectKey{Namespace: w.ns, Name: "walk"}, o); err != nil {
		w.t.Fatal(err)
	}
	return o
}

// isReady checks that a cluster which says that it is ready is so.
func (w *walk) isReady(release, kubernetes string) {
	w.t.Helper()
	o := w.get()
	c := meta.FindStatusCondition(o.Status.Conditions, v1alpha1.ConditionReady)
	if c == nil || c.Status != metav1.ConditionTrue || c.ObservedGeneration != o.Generation || o.Status.ObservedGeneration != o.Generation {
		w.t.Fatalf("generation %d: %+v", o.Generation, o.Status)
	}
	v := o.Status.Versions
	if v.Release != release || v.WantedRelease != release || v.Kubernetes != kubernetes || v.Workers != kubernetes || v.WantedKubernetes != kubernetes {
		w.t.Errorf("%+v, want %s with Kubernetes %s", v, release, kubernetes)
	}
	if o.Status.Phase != v1alpha1.PhaseReady || o.Status.Actor != v1alpha1.Nobody || o.Status.Endpoint == "" || o.Status.Undo != "" {
		w.t.Errorf("%+v", o.Status)
	}
	if meta.FindStatusCondition(o.Status.Conditions, v1alpha1.ConditionReconciling) != nil ||
		meta.FindStatusCondition(o.Status.Conditions, v1alpha1.ConditionStalled) != nil {
		w.t.Errorf("kstatus would not call it current: %+v", o.Status.Conditions)
	}
	var l clusterv1.MachineList
	if err := w.mgmt.List(w.t.Context(), &l, client.InNamespace(w.ns)); err != nil {
		w.t.Fatal(err)
	}
	for _, m := range l.Items {
		if m.Spec.Version != kubernetes || !meta.IsStatusConditionTrue(m.Status.Conditions, clusterv1.ReadyCondition) ||
			!meta.IsStatusConditionTrue(m.Status.Conditions, clusterv1.MachineUpToDateCondition) {
			w.t.Errorf("the cluster is ready, but not machine %s: %s, %+v", m.Name, m.Spec.Version, m.Status.Conditions)
		}
	}
	for _, a := range o.Status.Addons {
		if !a.Done {
			w.t.Errorf("the cluster is ready, but not stage %s", a.Name)
		}
	}
}

// nodesAre checks that nodes have what the file says of machines.
func (w *walk) nodesAre() {
	w.t.Helper()
	var l corev1.NodeList
	workload := testenv.NewClient(w.t, testenv.WorkloadConfig(w.t, w.mgmt, w.ns, "walk"))
	if err := workload.List(w.t.Context(), &l, client.MatchingLabels{"team": "blue", v1alpha1.PoolLabel: "default"}); err != nil {
		w.t.Fatal(err)
	}
	if len(l.Items) != 1 {
		w.t.Fatalf("%d nodes have the labels", len(l.Items))
	}
	n := l.Items[0]
	if n.Status.Capacity.Cpu().String() != "3" || n.Status.Capacity.Memory().String() != "6Gi" || n.Labels[corev1.LabelTopologyZone] != "zone-b" {
		w.t.Errorf("%v, %v", n.Status.Capacity, n.Labels)
	}
	if len(n.Spec.Taints) != 1 || n.Spec.Taints[0] != (corev1.Taint{Key: "team", Value: "blue", Effect: corev1.TaintEffectPreferNoSchedule}) {
		w.t.Errorf("%+v", n.Spec.Taints)
	}
}

// access checks what both roles may do.
func (w *walk) access() {
	w.t.Helper()
	as := func(role string) client.Client {
		cfg, err := clientcmd.RESTConfigFromKubeConfig([]byte(w.does("", "kubeconfig", "walk", "--role", role)))
		if err != nil {
			w.t.Fatal(err)
		}
		return testenv.NewClient(w.t, cfg)
	}
	ctx := w.t.Context()
	cm := func(name string) *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
	}
	admin, viewer := as("admin"), as("viewer")
	if err := admin.Create(ctx, cm("by-admin")); err != nil {
		w.t.Error(err)
	}
	if err := viewer.Get(ctx, client.ObjectKeyFromObject(cm("by-admin")), &corev1.ConfigMap{}); err != nil {
		w.t.Error(err)
	}
	if err := viewer.List(ctx, &corev1.NodeList{}); err != nil {
		w.t.Error(err)
	}
	for what, do := range map[string]func(context.Context) error{
		"create": func(ctx context.Context) error { return viewer.Create(ctx, cm("by-viewer")) },
		"delete": func(ctx context.Context) error { return viewer.Delete(ctx, cm("by-admin")) },
		"patch": func(ctx context.Context) error {
			return viewer.Patch(ctx, cm("by-admin"), client.RawPatch("application/merge-patch+json", []byte(`{"data":{"a":"b"}}`)))
		},
		"read secrets": func(ctx context.Context) error { return viewer.List(ctx, &corev1.SecretList{}) },
	} {
		if err := do(ctx); !apierrors.IsForbidden(err) {
			w.t.Errorf("a viewer may %s: %v", what, err)
		}
	}
}

// parameterIsThere checks that the parameter has an effect in the cluster.
func (w *walk) parameterIsThere() {
	w.t.Helper()
	workload := testenv.NewClient(w.t, testenv.WorkloadConfig(w.t, w.mgmt, w.ns, "walk"))
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "p"}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "example.org/i"}}},
	}
	if err := workload.Create(w.t.Context(), pod); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "restricted") {
		w.t.Errorf("a pod that is not restricted: %v", err)
	}
}

func (w *walk) machines(workers int32) {
	w.t.Helper()
	o := w.get()
	if *o.Status.Workers.Ready != workers || *o.Status.Workers.Desired != workers || len(o.Status.Pools) != 1 || *o.Status.Pools[0].Ready != workers {
		w.t.Errorf("%+v, %+v", o.Status.Workers, o.Status.Pools)
	}
	var l clusterv1.MachineList
	if err := w.mgmt.List(w.t.Context(), &l, client.InNamespace(w.ns)); err != nil || len(l.Items) != int(workers)+1 {
		w.t.Errorf("%d machines, %v", len(l.Items), err)
	}
}

// gate adds a stage that waits for something only the test can make.
func gate(files archive.Tree) {
	const at = "    - name: storage\n      action: apply\n    - name: about\n      action: apply\n"
	config := string(files["clusteraddon.yaml"])
	i := strings.LastIndex(config, at)
	files["clusteraddon.yaml"] = []byte(config[:i] + `    - name: storage
      action: apply
      waitForPreCondition:
        objects: [{key: gate, apiVersion: v1, kind: ConfigMap, name: gate, namespace: kube-public}]
        conditions: gate.data.open == 'yes'
    - name: about
      action: apply
`)
}

// releaseWithGate publishes a release whose add-ons do not become ready: the cluster follows the channel by itself, and
// keeps its class until they are.
func (w *walk) releaseWithGate() {
	w.t.Helper()
	w.publish("v12", gate)
	w.ask()
	testenv.Eventually(w.t, soon, func() error {
		o := w.get()
		a := meta.FindStatusCondition(o.Status.Conditions, v1alpha1.ConditionAddons)
		if o.Status.Phase != v1alpha1.PhaseUpdating || a == nil || a.Reason != v1alpha1.ReasonAddonsFirst ||
			!strings.Contains(o.Status.Message, "ConfigMap kube-public/gate is not there yet") {
			return fmt.Errorf("%+v", o.Status)
		}
		return nil
	})
	o := w.get()
	if v := o.Status.Versions; v.Release != "local-scs-1-36-v11" || v.WantedRelease != "local-scs-1-36-v12" || !strings.HasPrefix(o.Status.Undo, "everything:") {
		w.t.Errorf("%+v, %s", v, o.Status.Undo)
	}
	if got := w.class(); got != "local-scs-1-36-v11" {
		w.t.Errorf("the class is %s before the add-ons are there", got)
	}
	// What replaces no machine goes on meanwhile.
	w.does("", "scale", "walk", "--pool", "default=1")
	testenv.Eventually(w.t, soon, func() error {
		if o := w.get(); o.Status.Workers.Ready == nil || *o.Status.Workers.Ready != 1 {
			return fmt.Errorf("%+v", o.Status.Workers)
		}
		return nil
	})
}

func (w *walk) class() string {
	w.t.Helper()
	c := &clusterv1.Cluster{}
	if err := w.mgmt.Get(w.t.Context(), client.ObjectKey{Namespace: w.ns, Name: "walk"}, c); err != nil {
		w.t.Fatal(err)
	}
	return c.Spec.Topology.ClassRef.Name
}

// undone goes back to the old release, which is possible as long as the class is the old one.
func (w *walk) undone() {
	w.t.Helper()
	w.says(w.does("", "upgrade", "walk", "--version", "v11", "--wait", "--timeout", "1m"), "Ready")
	w.isReady("local-scs-1-36-v11", "v1.36.6")
}

// release goes forward again, and opens the gate.
func (w *walk) release() {
	w.t.Helper()
	w.does("", "upgrade", "walk", "--version", "v12")
	workload := testenv.NewClient(w.t, testenv.WorkloadConfig(w.t, w.mgmt, w.ns, "walk"))
	open := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-public", Name: "gate"}, Data: map[string]string{"open": "yes"}}
	if err := workload.Create(w.t.Context(), open); err != nil {
		w.t.Fatal(err)
	}
	w.does("", "wait", "walk", "--timeout", "2m")
	w.isReady("local-scs-1-36-v12", "v1.36.6")
	if got := w.class(); got != "local-scs-1-36-v12" {
		w.t.Errorf("the class is %s", got)
	}
	patch := client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"stack":{"version":null}}}`))
	if err := w.mgmt.Patch(w.t.Context(), w.get(), patch); err != nil {
		w.t.Fatal(err)
	}
	w.does("", "wait", "walk", "--timeout", "1m")
}

// exported checks that a cluster which was exported can be made elsewhere.
func (w *walk) exported() {
	w.t.Helper()
	out := w.does("", "export", "walk")
	o := &v1alpha1.WorkloadCluster{}
	if err := yaml.UnmarshalStrict([]byte(out), o); err != nil {
		w.t.Fatalf("%v\n%s", err, out)
	}
	if o.Spec.Provider != "" || o.Namespace != "" || o.UID != "" || o.Status.Phase != "" || len(o.Spec.Workers) != 1 || len(o.Spec.Workers[0].Zones) != 0 ||
		o.Spec.Workers[0].Machine == nil {
		w.t.Errorf("%s", out)
	}
	again := w.does(strings.Replace(out, "name: walk", "name: again", 1), "create", "-f", "-", "--provider", "local", "--dry-run=server", "-o", "yaml")
	w.says(again, "name: again", "provider: local", "podSecurityStandard: restricted")
}

// accessInSecret makes a request whose answer is in a Secret; both go with the cluster.
func (w *walk) accessInSecret() {
	w.t.Helper()
	r := &v1alpha1.KubeconfigRequest{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: "walk"}}
	r.Spec = v1alpha1.KubeconfigRequestSpec{ClusterName: "walk", Role: v1alpha1.RoleViewer, ExpirationSeconds: 3600}
	if err := w.mgmt.Create(w.t.Context(), r); err != nil {
		w.t.Fatal(err)
	}
	testenv.Eventually(w.t, soon, func() error {
		if err := w.mgmt.Get(w.t.Context(), client.ObjectKeyFromObject(r), r); err != nil {
			return err
		}
		if r.Status.SecretName == "" {
			return fmt.Errorf("no credentials: %v", r.Status.Conditions)
		}
		return nil
	})
}

func (w *walk) nothingIsLeft() {
	w.t.Helper()
	testenv.Eventually(w.t, soon, func() error {
		for _, l := range []client.ObjectList{&v1alpha1.WorkloadClusterList{}, &clusterv1.ClusterList{}, &clusterv1.MachineList{}, &csv1.ClusterAddonList{},
			&v1alpha1.KubeconfigRequestList{}, &corev1.SecretList{}} {
			if err := w.mgmt.List(w.t.Context(), l, client.InNamespace(w.ns)); err != nil {
				return err
			}
			if n := meta.LenList(l); n > 0 {
				return fmt.Errorf("%d of %T are left", n, l)
			}
		}
		return nil
	})
}
