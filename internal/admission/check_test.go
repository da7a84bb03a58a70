package admission_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	csv1 "github.com/polder-kaas/polder/api/clusterstack/v1alpha1"
	"github.com/polder-kaas/polder/api/v1alpha1"
	"github.com/polder-kaas/polder/internal/providers/guard"
)

func named(provider string) change {
	return func(o *v1alpha1.WorkloadCluster) { o.Spec.Provider = provider }
}

func minor(v string) change {
	return func(o *v1alpha1.WorkloadCluster) { o.Spec.Stack.KubernetesVersion = v }
}

func pin(v string) change {
	return func(o *v1alpha1.WorkloadCluster) { o.Spec.Stack.Version = v }
}

func stack(name string) change {
	return func(o *v1alpha1.WorkloadCluster) { o.Spec.Stack.Name = name }
}

func scaled(o *v1alpha1.WorkloadCluster) { o.Spec.Workers[0].Replicas = ptr.To[int32](7) }

func size(name string) change {
	return func(o *v1alpha1.WorkloadCluster) { o.Spec.ControlPlane.MachineType = name }
}

func poolSize(name string) change {
	return func(o *v1alpha1.WorkloadCluster) { o.Spec.Workers[0].MachineType = name }
}

func (w *world) unready() *world {
	w.objects["ClusterStackRelease/local-scs-1-36-v1"].(*csv1.ClusterStackRelease).Status.Ready = ptr.To(false)
	return w
}

func TestNewClusters(t *testing.T) {
	other := &v1alpha1.Provider{ObjectMeta: metav1.ObjectMeta{Name: "cloud"}}
	for name, c := range map[string]struct {
		world   *world
		changes []change
		want    []string
	}{
		"nothing is wrong": {newWorld(), nil, nil},
		"a provider that was perhaps meant": {newWorld().add(other), []change{named("locall")}, []string{
			`spec.provider: Invalid value: "locall": there is no such provider; choose from cloud, local; did you mean local?`,
		}},
		"no provider is named, and there are two": {newWorld().add(other), []change{named("")}, []string{"spec.provider: Required value: choose from cloud, local"}},
		"no provider is there": {newWorld().without("Provider/local"), nil, []string{
			`spec.provider: Invalid value: "local": no provider is installed here; ask the platform operator`,
		}},
		"a stack that is not there": {newWorld(), []change{stack("sks")}, []string{
			`spec.stack.name: Invalid value: "sks": there is no stack "sks" for provider local that serves namespace a; there is scs of local (1.36)`,
		}},
		"a minor that is not there": {newWorld(), []change{minor("1.40")}, []string{
			`spec.stack.kubernetesVersion: Invalid value: "1.40": stack scs has no Kubernetes 1.40; it has 1.36`,
		}},
		"a stack that comes after it from another plane": {newWorld(), []change{minor("1.40"), func(o *v1alpha1.WorkloadCluster) {
			o.Annotations = map[string]string{v1alpha1.MovingAnnotation: "u"}
		}}, nil},
		"a channel that is not there": {newWorld(), []change{func(o *v1alpha1.WorkloadCluster) { o.Spec.Stack.Channel = v1alpha1.ChannelCustom }}, []string{
			`spec.stack.channel: Invalid value: "custom": stack scs for Kubernetes 1.36 has no channel custom here; it has stable`,
		}},
		"a pin of another channel": {newWorld(), []change{pin("v1"), func(o *v1alpha1.WorkloadCluster) { o.Spec.Stack.Channel = v1alpha1.ChannelCustom }}, []string{
			`spec.stack.channel: Invalid value: "custom": release v1, which is pinned, is of channel stable; leave the channel out`,
		}},
		"a pin that is not there": {newWorld(), []change{pin("v7")}, []string{
			`spec.stack.version: Invalid value: "v7": stack scs for Kubernetes 1.36 has no release v7 here; it has v1`,
		}},
		"a release that is not ready is no fault": {newWorld().unready(), nil, nil},
		"nor is one that has yet to come":         {newWorld().without("ClusterStackRelease/local-scs-1-36-v1"), nil, nil},
		"nor is a class that has":                 {newWorld().without("ClusterClass/local-scs-1-36-v1"), []change{size("none")}, nil},
		"a size the provider does not have, which is all that is said": {newWorld(), []change{size("none")}, []string{
			`spec.controlPlane.machineType: Invalid value: "none": local has no machine type "none"; choose from small, large, or write a portable name, for example SCS-2V-4`,
		}},
		"all that is wrong is said at once": {newWorld(), []change{size("none"), pods("x"), parameter("retries", 0)}, []string{
			`spec.controlPlane.machineType: Invalid value: "none": local has no machine type "none"; choose from small, large, or write a portable name, for example SCS-2V-4`,
			`spec.network.podCIDRs[0]: Invalid value: "x": write a range of addresses such as 10.244.0.0/16`,
			`spec.parameters.retries: Invalid value: 0: it must be at least 1`,
		}},
		"a Cluster of this name runs something newer": {newWorld().add(running("v1.37.0")), nil, []string{
			`spec.stack.kubernetesVersion: Invalid value: "1.36": Kubernetes is never lowered, and the cluster has v1.37.0 already`,
		}},
	} {
		t.Run(name, func(t *testing.T) {
			if d := cmp.Diff(c.want, checkNew(t, c.world, c.changes...)); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestChanges(t *testing.T) {
	twice := newWorld().line("1.37", "v1.37.1").line("1.38", "v1.38.0").add(running("v1.36.3"))
	patch := newWorld().add(running("v1.36.4"))
	r := patch.objects["ClusterStackRelease/local-scs-1-36-v1"].DeepCopyObject().(*csv1.ClusterStackRelease)
	r.Name, r.Status.KubernetesVersion = "local-scs-1-36-v2", "v1.36.4"
	patch.add(r)
	for name, c := range map[string]struct {
		world    *world
		old, new []change
		want     []string
	}{
		"scaling": {newWorld(), nil, []change{scaled}, nil},
		"another provider": {newWorld(), []change{named("gone")}, nil, []string{
			"spec.provider: Forbidden: a cluster stays at its provider, gone; make the same elsewhere with: polder export demo | polder create NEW-NAME -f - --provider local",
		}},
		"another stack": {newWorld(), []change{stack("gone")}, nil, []string{
			"spec.stack.name: Forbidden: a cluster stays with its stack, gone; make another cluster",
		}},
		"other ranges for pods": {newWorld(), nil, []change{pods("10.1.0.0/16")}, []string{
			"spec.network.podCIDRs: Forbidden: it cannot be changed from 10.244.0.0/16; make another cluster",
		}},
		"other ranges for services": {newWorld(), []change{services("10.97.0.0/16", "fd00::/112")}, nil, []string{
			"spec.network.serviceCIDRs: Forbidden: it cannot be changed from 10.97.0.0/16, fd00::/112; make another cluster",
		}},
		"a name that was let in before": {newWorld(), []change{func(o *v1alpha1.WorkloadCluster) { o.Name = "1" }},
			[]change{scaled, func(o *v1alpha1.WorkloadCluster) { o.Name = "1" }}, nil},

		"the provider is gone, and something else changes": {newWorld().without("Provider/local"), nil, []change{scaled}, nil},
		"the provider is gone, and something is wrong": {newWorld().without("Provider/local"), nil, []change{scaled, label(v1alpha1.PoolLabel)}, []string{
			"spec.workers[1].labels[polder.dev/pool]: Forbidden: it is put on all nodes, with the name of their pool",
		}},
		"the stack is gone, and something else changes":   {newWorld().without("ClusterStack/local-scs-1-36"), nil, []change{scaled}, nil},
		"the release is gone, and something else changes": {newWorld(), []change{pin("v7")}, []change{pin("v7"), scaled}, nil},
		"the release is gone, and it is pinned anew": {newWorld(), []change{pin("v7")}, []change{pin("v8")}, []string{
			`spec.stack.version: Invalid value: "v8": stack scs for Kubernetes 1.36 has no release v8 here; it has v1`,
		}},

		"a minor up": {twice, nil, []change{minor("1.37")}, nil},
		"two minors up": {twice, nil, []change{minor("1.38")}, []string{
			`spec.stack.kubernetesVersion: Invalid value: "1.38": Kubernetes is raised by one minor at a time, and from v1.36.3 to v1.38.0 is more`,
		}},
		"what the spec said before does not count, but what runs": {twice, []change{minor("1.37")}, []change{minor("1.38")}, []string{
			`spec.stack.kubernetesVersion: Invalid value: "1.38": Kubernetes is raised by one minor at a time, and from v1.36.3 to v1.38.0 is more`,
		}},
		"a minor back, before it ran": {twice, []change{minor("1.37")}, nil, nil},
		"a pin with an older patch": {patch, nil, []change{pin("v1")}, []string{
			`spec.stack.version: Invalid value: "v1": Kubernetes is never lowered, and the cluster has v1.36.4 already`,
		}},
		"a pin with the same patch":                   {patch, nil, []change{pin("v2")}, nil},
		"the newest was taken back":                   {newWorld().add(running("v1.36.4")), nil, []change{scaled}, nil},
		"a size the provider has lost, and it stays":  {newWorld(), []change{size("none")}, []change{size("none"), parameter("retries", 5)}, nil},
		"a size of a pool, and another pool is added": {newWorld(), []change{poolSize("none")}, []change{poolSize("none"), label("team")}, nil},
		"a size the provider has lost, of a new minor": {twice, []change{size("none")}, []change{size("none"), minor("1.37")}, []string{
			`spec.controlPlane.machineType: Invalid value: "none": local has no machine type "none"; choose from small, large, or write a portable name, for example SCS-2V-4`,
		}},
		"a parameter that is wrong, and it stays": {newWorld(), []change{parameter("retries", 0)}, []change{parameter("retries", 0), scaled}, nil},

		"a size the provider does not have": {newWorld(), nil, []change{size("none")}, []string{
			`spec.controlPlane.machineType: Invalid value: "none": local has no machine type "none"; choose from small, large, or write a portable name, for example SCS-2V-4`,
		}},
	} {
		t.Run(name, func(t *testing.T) {
			errs, err := c.world.checker(t).Check(t.Context(), cluster(c.new...), cluster(c.old...), false)
			if d := cmp.Diff(c.want, errorTexts(errs)); d != "" || err != nil {
				t.Error(d, err)
			}
		})
	}
}

// Whatever is wrong with an object, changes of labels and finalizers and its deletion go through, and no provider is
// asked.
func TestWhatIsNotLookedAt(t *testing.T) {
	w := newWorld()
	w.failing = &v1alpha1.ProviderList{}
	wrong := []change{named("none"), pods("x"), size("none")}
	labelled := cluster(append(wrong, func(o *v1alpha1.WorkloadCluster) { o.Labels = map[string]string{"a": "b"} })...)
	deleted := cluster(append(wrong, func(o *v1alpha1.WorkloadCluster) { o.DeletionTimestamp = ptr.To(metav1.Now()) })...)
	for name, c := range map[string]struct{ object, old *v1alpha1.WorkloadCluster }{
		"the spec is as it was":                    {labelled, cluster(wrong...)},
		"it is being deleted, and its spec edited": {deleted, cluster()},
		"ranges that are left out are left out": {cluster(append(wrong, pods())...),
			cluster(append(wrong, func(o *v1alpha1.WorkloadCluster) { o.Spec.Network.PodCIDRs = nil })...)},
	} {
		t.Run(name, func(t *testing.T) {
			if errs, err := w.checker(t).Check(t.Context(), c.object, c.old, false); err != nil || len(errs) > 0 {
				t.Error(errs, err)
			}
		})
	}
}

func TestWhatCannotBeFoundOut(t *testing.T) {
	for name, c := range map[string]struct {
		failing any
		breaks  bool
		want    error
	}{
		"the providers":            {failing: &v1alpha1.ProviderList{}, want: errBroken},
		"the stacks":               {failing: &csv1.ClusterStackList{}, want: errBroken},
		"the Cluster":              {failing: &clusterv1.Cluster{}, want: errBroken},
		"the class":                {failing: &clusterv1.ClusterClass{}, want: errBroken},
		"what the provider thinks": {breaks: true, want: guard.ErrPanicked},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			w.failing, w.providers = c.failing, guarded(stubProvider{breaks: c.breaks})
			if _, err := w.checker(t).Check(t.Context(), cluster(), nil, false); !errors.Is(err, c.want) {
				t.Errorf("%v, want %v", err, c.want)
			}
			if _, err := w.checker(t).CheckProvider(t.Context(), cluster(), nil); !errors.Is(err, c.want) {
				t.Errorf("alone: %v, want %v", err, c.want)
			}
		})
	}
}

// Even if the provider fails, a cluster can be scaled, paused and deleted.
func TestTheProviderIsNotAskedAgain(t *testing.T) {
	w := newWorld()
	w.providers = guarded(stubProvider{breaks: true})
	large := parameter("mirrors", strings.Repeat("x", 65<<10))
	for name, c := range map[string]struct {
		old, new []change
		want     error
	}{
		"scaled":                {nil, []change{scaled}, nil},
		"paused":                {nil, []change{func(o *v1alpha1.WorkloadCluster) { o.Spec.Paused = ptr.To(true) }}, nil},
		"let go":                {[]change{func(o *v1alpha1.WorkloadCluster) { o.Spec.DeletionProtection = ptr.To(true) }}, nil, nil},
		"with more than may be": {[]change{large}, []change{large, scaled}, nil},
		"another size":          {nil, []change{size("large")}, guard.ErrPanicked},
		"a pool more":           {nil, []change{label("team")}, guard.ErrPanicked},
		"another parameter":     {nil, []change{parameter("retries", 5)}, guard.ErrPanicked},
		"another release":       {nil, []change{pin("v1")}, guard.ErrPanicked},
		"somebody else may log in": {nil, []change{func(o *v1alpha1.WorkloadCluster) { o.Spec.OIDC = &v1alpha1.OIDC{IssuerURL: "https://i", ClientID: "c"} }},
			guard.ErrPanicked},
	} {
		t.Run(name, func(t *testing.T) {
			if errs, err := w.checker(t).Check(t.Context(), cluster(c.new...), cluster(c.old...), false); !errors.Is(err, c.want) || len(errs) > 0 {
				t.Errorf("%v %v, want %v", errs, err, c.want)
			}
			if errs, err := w.checker(t).CheckProvider(t.Context(), cluster(c.new...), cluster(c.old...)); !errors.Is(err, c.want) || len(errs) > 0 {
				t.Errorf("alone: %v %v, want %v", errs, err, c.want)
			}
		})
	}
	if errs, err := newWorld().checker(t).CheckProvider(t.Context(), cluster(size("none"), parameter("retries", 5)), cluster(size("none"))); err != nil ||
		len(errs) > 0 {
		t.Error("a size that it has lost: ", errs, err)
	}
}

// A provider in a process of its own reports only what nobody else can find.
func TestTheProviderAlone(t *testing.T) {
	for name, c := range map[string]struct {
		world  *world
		object *v1alpha1.WorkloadCluster
		want   bool
	}{
		"a size it does not have":              {newWorld(), cluster(size("none")), true},
		"a parameter that follows from a size": {newWorld(), cluster(parameter("flavor", "large")), true},
		"nothing is wrong":                     {newWorld(), cluster(), false},
		"what the plane says":                  {newWorld(), cluster(pods("x"), parameter("none", 1)), false},
		"a cluster of another":                 {newWorld(), cluster(size("none"), named("other")), false},
		"one that is being deleted": {newWorld(), cluster(size("none"), func(o *v1alpha1.WorkloadCluster) { o.DeletionTimestamp = ptr.To(metav1.Now()) }),
			false},
		"its Provider object is not there":      {newWorld().without("Provider/local"), cluster(size("none")), false},
		"there is no release to ask it about":   {newWorld(), cluster(size("none"), pin("v7")), false},
		"the class of the release is not there": {newWorld().without("ClusterClass/local-scs-1-36-v1"), cluster(size("none")), false},
	} {
		t.Run(name, func(t *testing.T) {
			errs, err := c.world.checker(t).CheckProvider(t.Context(), c.object, nil)
			if err != nil || (len(errs) > 0) != c.want || slices.ContainsFunc(errorTexts(errs), func(s string) bool { return !strings.Contains(s, "machineType") }) {
				t.Error(errs, err)
			}
		})
	}
}
