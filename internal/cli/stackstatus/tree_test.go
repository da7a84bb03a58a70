package stackstatus

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	csv1 "github.com/polder-kaas/polder/api/clusterstack/v1alpha1"
	"github.com/polder-kaas/polder/internal/cli/clitest"
)

func newObjectMeta(namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID(namespace + name), Generation: 2}
}

func withDeletion(m metav1.ObjectMeta) metav1.ObjectMeta {
	m.DeletionTimestamp = &metav1.Time{Time: clitest.Now}
	return m
}

// newCondition is a condition; without reason, it is true.
func newCondition(kind, reason, message string) metav1.Condition {
	c := metav1.Condition{Type: kind, Status: metav1.ConditionFalse, Reason: reason, Message: message, ObservedGeneration: 2}
	if reason == "" {
		c.Status, c.Reason = metav1.ConditionTrue, csv1.ReasonReady
	}
	return c
}

func aStack(namespace, name string, conditions ...metav1.Condition) csv1.ClusterStack {
	return csv1.ClusterStack{
		ObjectMeta: newObjectMeta(namespace, name),
		Spec:       csv1.ClusterStackSpec{Provider: "local", Name: "scs", KubernetesVersion: "1.36", Channel: csv1.ChannelStable},
		Status:     csv1.ClusterStackStatus{Conditions: conditions},
	}
}

// aRelease is owned by nobody.
func aRelease(namespace, name string, conditions ...metav1.Condition) csv1.ClusterStackRelease {
	return csv1.ClusterStackRelease{ObjectMeta: newObjectMeta(namespace, name), Status: csv1.ClusterStackReleaseStatus{
		KubernetesVersion: "v1.36.3", Conditions: conditions,
		Resources: []csv1.Resource{
			{Group: "controlplane.cluster.x-k8s.io", Version: "v1beta2", Kind: "KubeadmControlPlaneTemplate", Name: name},
			{Group: "cluster.x-k8s.io", Version: "v1beta2", Kind: "MachineDeployment", Namespace: namespace, Name: "quick-start"},
			{Group: "cluster.x-k8s.io", Version: "v1beta2", Kind: "ClusterClass", Namespace: namespace, Name: name},
		},
	}}
}

func ownedBy(r csv1.ClusterStackRelease, s csv1.ClusterStack) csv1.ClusterStackRelease {
	r.OwnerReferences = []metav1.OwnerReference{
		{APIVersion: "v1", Kind: "ConfigMap", Name: s.Name, UID: s.UID},
		{APIVersion: "clusterstack.x-k8s.io/v1alpha1", Kind: "ClusterStack", Name: s.Name, UID: s.UID},
	}
	return r
}

func aCluster(namespace, name, classNamespace, class string) clusterv1.Cluster {
	return clusterv1.Cluster{
		ObjectMeta: newObjectMeta(namespace, name),
		Spec: clusterv1.ClusterSpec{
			Topology: clusterv1.Topology{ClassRef: clusterv1.ClusterClassRef{Namespace: classNamespace, Name: class}, Version: "v1.36.3"},
		},
	}
}

func anAddon(namespace, cluster string, stages []csv1.StageStatus, conditions ...metav1.Condition) csv1.ClusterAddon {
	return csv1.ClusterAddon{
		ObjectMeta: newObjectMeta(namespace, "cluster-addon-"+cluster), Status: csv1.ClusterAddonStatus{Stages: stages, Conditions: conditions},
	}
}

// manyStacks is a plane with something of everything.
func manyStacks() objectSet {
	stable, custom := aStack("default", "scs", newCondition("Ready", "", "")), aStack("default", "try",
		newCondition("Ready", csv1.ReasonReleasesNotReady, "1 of 1 releases is not ready"))
	stable.Status.LatestRelease = new("local-scs-1-36-v10 | v1.36.3")
	custom.Spec.Channel = csv1.ChannelCustom
	moved := anAddon("team-a", "moved", nil, newCondition("Ready", "", ""))
	moved.Status.Release = "default/local-scs-1-36-v2"
	return objectSet{
		stacks: []csv1.ClusterStack{aStack("other", "scs", newCondition("Ready", csv1.ReasonSourceMissing, "there is no source")), custom, stable},
		releases: []csv1.ClusterStackRelease{
			ownedBy(aRelease("default", "local-scs-1-36-v10", newCondition("Ready", "", "")), stable),
			aRelease("default", "local-scs-1-36-v2", newCondition("Ready", "", "")),
			ownedBy(aRelease("default", "local-scs-1-36-v0-sha-abc1234", newCondition("Ready", csv1.ReasonRefused, "ConfigMap x is not allowed")), custom),
		},
		clusters: []clusterv1.Cluster{
			aCluster("team-a", "prod", "default", "local-scs-1-36-v2"),
			aCluster("default", "dev", "", "local-scs-1-36-v2"),
			aCluster("team-a", "moved", "default", "local-scs-1-36-v10"),
			aCluster("team-a", "foreign", "", "local-scs-1-36-v2"),
			aCluster("team-a", "old", "default", "quick-start"),
		},
		addons: []csv1.ClusterAddon{
			moved,
			anAddon("team-a", "old", nil, newCondition("Ready", csv1.ReasonNotFromRelease, "its class is of no release")),
			anAddon("default", "dev", []csv1.StageStatus{{Name: "cni", Action: "apply", Phase: csv1.StageDone}}, newCondition("Ready", "", "")),
			anAddon("team-a", "prod", []csv1.StageStatus{
				{Name: "cni", Action: "apply", Phase: csv1.StageDone},
				{Name: "metrics", Action: "apply", Phase: csv1.StageWaitPost, Message: "Deployment kube-system/metrics-server not found", Since: &metav1.Time{
					Time: clitest.Now.Add(-90 * time.Second),
				}},
				{Name: "proxy", Action: "delete", Phase: csv1.StagePending},
			}, newCondition("Ready", csv1.ReasonStageTimedOut, "stage metrics waits for too long")),
		},
	}
}

const manyStacksText = `NAMESPACE/STACK                        STATE     MESSAGE
default/scs (local scs 1.36, stable)   Ready     latest local-scs-1-36-v10 (v1.36.3)
├─ local-scs-1-36-v2                   Ready     v1.36.3, used by 2 clusters
│  ├─ default/dev                      Ready     v1.36.3, add-ons ready
│  └─ team-a/prod                      Waiting   add-ons: stage metrics waits for too long
│     ├─ cni                           Done      apply
│     ├─ metrics                       Waiting   apply, waitingForPostCondition for 1m30s: Deployment kube-system/metrics-server not found
│     └─ proxy                         Pending   delete
└─ local-scs-1-36-v10                  Ready     v1.36.3, used by 1 cluster
   └─ team-a/moved                     Waiting   add-ons: they are still those of default/local-scs-1-36-v2
default/try (local scs 1.36, custom)   Waiting   1 of 1 releases is not ready
└─ local-scs-1-36-v0-sha-abc1234       Failed    ConfigMap x is not allowed
other/scs (local scs 1.36, stable)     Failed    there is no source
clusters without release
└─ team-a/old                          Failed    add-ons: its class is of no release

Next:
- Cluster team-a/prod: see in the cluster why stage metrics still waits with: K get secret -n team-a prod-kubeconfig -o 'jsonpath={.data.value}' | base64 -d >prod.kubeconfig; kubectl --kubeconfig prod.kubeconfig get pods,events -A (customer)
- ClusterStackRelease default/local-scs-1-36-v0-sha-abc1234: remove the object from the stack and publish a new version, or allow its kind with polderd's --stack-kinds (stack author)
- ClusterStack other/scs: name a source in spec.source, or start polderd with --stack-source (platform operator)
- Cluster team-a/old: change spec.topology.classRef to the class of a release with: K edit cluster -n team-a old (customer)
`

// statusLines is all that the command prints.
func statusLines(w objectSet, s selection) []string {
	r := w.buildReport(s, "K")
	return append(treeLines(r, clitest.Now), nextStepLines(r.Next)...)
}

func split(text string) []string {
	return strings.Split(text, "\n")[:strings.Count(text, "\n")]
}

func TestTree(t *testing.T) {
	w := manyStacks()
	for range 2 { // the order in which objects come does not matter
		if diff := cmp.Diff(split(manyStacksText), statusLines(w, selection{All: true})); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		slices.Reverse(w.stacks)
		slices.Reverse(w.releases)
		slices.Reverse(w.clusters)
		slices.Reverse(w.addons)
	}
}

func TestSelects(t *testing.T) {
	tests := map[string]struct {
		selection
		want []string // first words of lines, without the table's head
	}{
		"everywhere":             {selection{All: true}, []string{"default/scs", "default/try", "other/scs", "releases", "clusters"}},
		"one namespace":          {selection{Namespace: "default"}, []string{"default/scs", "default/try"}},
		"one stack":              {selection{Namespace: "default", Name: "try"}, []string{"default/try"}},
		"one name everywhere":    {selection{All: true, Name: "scs"}, []string{"default/scs", "other/scs"}},
		"only what is left":      {selection{Namespace: "team-a"}, []string{"clusters"}},
		"a namespace with none":  {selection{Namespace: "nowhere"}, nil},
		"a release that is left": {selection{Namespace: "left"}, []string{"releases"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var got []string
			w := manyStacks()
			w.releases = append(w.releases, aRelease("left", "local-scs-1-36-v1"))
			r := w.buildReport(tt.selection, "K")
			if r.Ready {
				t.Error("it is ready, as it seems")
			}
			for _, l := range treeLines(r, clitest.Now)[1:] {
				if word, _, _ := strings.Cut(l, " "); !strings.ContainsAny(word, "├└│") && word != "" {
					got = append(got, word)
				}
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestSelectionTakes(t *testing.T) {
	for arg, want := range map[string]selection{
		"scs":               {Name: "scs"},
		"default/scs":       {Namespace: "default", Name: "scs"},
		"csk/scs":           {Name: "scs"},
		"clusterstack/scs":  {Name: "scs"},
		"clusterstacks/scs": {Name: "scs"},
	} {
		var s selection
		if err := s.parseArgs([]string{arg}); err != nil || s != want {
			t.Errorf("%s: %+v, %v", arg, s, err)
		}
	}
	s := selection{Namespace: "team"}
	if err := s.parseArgs([]string{"csk/scs"}); err != nil || s != (selection{Namespace: "team", Name: "scs"}) {
		t.Errorf("%+v, %v", s, err)
	}
}

// What Cluster API cannot make of a cluster is said, even if its add-ons are ready, and so is a class that no
// release has.
func TestOfFailedTopologies(t *testing.T) {
	w := manyStacks()
	for i := range w.clusters {
		meta.SetStatusCondition(&w.clusters[i].Status.Conditions, metav1.Condition{
			Type: clusterv1.ClusterTopologyReconciledCondition, Status: metav1.ConditionFalse, Reason: clusterv1.ClusterTopologyReconciledFailedReason,
			Message: "a template is gone",
		})
	}
	text := strings.Join(treeLines(w.buildReport(selection{All: true}, "K"), clitest.Now), "\n")
	for _, want := range []string{"they are ready, but Cluster API cannot work on the cluster: a template is gone",
		"no release has its class team-a/local-scs-1-36-v2"} {
		if !strings.Contains(text, want) {
			t.Errorf("it does not say %q:\n%s", want, text)
		}
	}
}

// TestOddities goes through what the plane above does not have. Only lines after the head count.
func TestOddities(t *testing.T) {
	long := strings.Repeat("x", 253)
	tests := map[string]struct {
		change func(w *objectSet)
		want   string
	}{
		"nothing": {func(*objectSet) {}, ""},
		"empty objects": {func(w *objectSet) {
			w.stacks, w.releases, w.clusters, w.addons = make([]csv1.ClusterStack, 1), make([]csv1.ClusterStackRelease, 1), make([]clusterv1.Cluster,
				1), make([]csv1.ClusterAddon, 1)
		}, `/ ( , stable)                   Waiting   no controller has looked at it yet
releases without ClusterStack
└─ /                            Waiting   no controller has looked at it yet
`},
		"a release without stack, and one whose owner is gone": {func(w *objectSet) {
			w.stacks = []csv1.ClusterStack{aStack("a", "other", newCondition("Ready", "", ""))}
			w.stacks[0].Spec.Name = "other"
			again := w.stacks[0]
			again.UID = "of the one before"
			w.releases = []csv1.ClusterStackRelease{
				aRelease("b", "what", newCondition("Ready", csv1.ReasonNameInvalid, "bad name")), aRelease("b", "local-other-1-36-v9", newCondition("Ready", "", "")),
				aRelease("b", "a", newCondition("Ready", "", "")),
				ownedBy(aRelease("a", "local-other-1-36-v1", newCondition("Ready", "", "")), aStack("a", "gone")),
				ownedBy(aRelease("a", "local-other-1-36-v2", newCondition("Ready", "", "")), again),
			}
		}, `a/other (local other 1.36, stable)   Ready    latest release not known
releases without ClusterStack
├─ a/local-other-1-36-v1             Ready    v1.36.3, not used
├─ a/local-other-1-36-v2             Ready    v1.36.3, not used
├─ b/local-other-1-36-v9             Ready    v1.36.3, not used
├─ b/a                               Ready    v1.36.3, not used
└─ b/what                            Failed   bad name

Next:
- ClusterStackRelease b/what: releases have names such as local-scs-1-36-v3; remove this one with: K delete clusterstackrelease -n b what (platform operator)
`},
		"other lines and channels are of other stacks": {func(w *objectSet) {
			w.stacks = []csv1.ClusterStack{aStack("a", "scs", newCondition("Ready", "", ""))}
			w.stacks[0].Spec.Channel = "" // stable
			w.releases = []csv1.ClusterStackRelease{
				aRelease("a", "local-scs-1-36-v1", newCondition("Ready", "", "")), aRelease("a", "local-scs-1-36-v1-beta-1", newCondition("Ready", "", "")),
				aRelease("a", "local-scs-1-35-v1", newCondition("Ready", "", "")),
				aRelease("a", "docker-scs-1-36-v1", newCondition("Ready", "", "")), aRelease("b", "local-scs-1-36-v1", newCondition("Ready", "", "")),
			}
		}, `a/scs (local scs 1.36, stable)   Ready   latest release not known
└─ local-scs-1-36-v1             Ready   v1.36.3, not used
releases without ClusterStack
├─ a/docker-scs-1-36-v1          Ready   v1.36.3, not used
├─ a/local-scs-1-35-v1           Ready   v1.36.3, not used
├─ a/local-scs-1-36-v1-beta-1    Ready   v1.36.3, not used
└─ b/local-scs-1-36-v1           Ready   v1.36.3, not used
`},
		"a cluster without add-on, in another namespace, of a class not yet listed": {func(w *objectSet) {
			w.stacks = []csv1.ClusterStack{
				aStack("a", "scs", newCondition("Ready", csv1.ReasonSourceUnreachable, "no route"),
					newCondition("AssetsClientAPIAvailable", csv1.ReasonSourceUnreachable, "no route")),
			}
			w.releases = []csv1.ClusterStackRelease{aRelease("a", "local-scs-1-36-v0-sha-abc", newCondition("Ready", csv1.ReasonSourceUnreachable, "no route"))}
			w.stacks[0].Spec.Channel, w.releases[0].Status.Resources, w.releases[0].Status.KubernetesVersion = csv1.ChannelCustom, nil, ""
			w.clusters = []clusterv1.Cluster{aCluster("b", "c", "a", "local-scs-1-36-v0-sha.abc")}
		}, `a/scs (local scs 1.36, custom)   Failed    no route
└─ local-scs-1-36-v0-sha-abc     Failed    no route; used by 1 cluster
   └─ b/c                        Waiting   add-ons: it has no ClusterAddon yet

Next:
- ClusterStack a/scs: check address and credentials in spec.source or, without it, of polderd's --stack-source; it is tried again by itself (platform operator)
`},
		"a release is being deleted and used": {func(w *objectSet) {
			r := aRelease("a", "local-scs-1-36-v1", newCondition("Ready", csv1.ReasonInUse, "used by b/c"),
				newCondition("ClusterStackReleaseDownloaded", csv1.ReasonSourceMissing, "there is no source"))
			r.ObjectMeta = withDeletion(r.ObjectMeta)
			w.releases = []csv1.ClusterStackRelease{r}
			for _, name := range []string{"c7", "c6", "c5", "c4", "c3", "c2", "c1"} {
				c := aCluster("b", name, "a", "local-scs-1-36-v1")
				c.ObjectMeta = withDeletion(c.ObjectMeta)
				w.clusters = append(w.clusters, c)
			}
		}, `releases without ClusterStack
└─ a/local-scs-1-36-v1          Deleting   used by b/c
   ├─ b/c1                      Deleting   it is being deleted
   ├─ b/c2                      Deleting   it is being deleted
   ├─ b/c3                      Deleting   it is being deleted
   ├─ b/c4                      Deleting   it is being deleted
   ├─ b/c5                      Deleting   it is being deleted
   ├─ b/c6                      Deleting   it is being deleted
   └─ b/c7                      Deleting   it is being deleted

Next:
- ClusterStackRelease a/local-scs-1-36-v1: delete the clusters that use it, or move them to another release: b/c1, b/c2, b/c3, b/c4, b/c5, and 2 more (customer)
`},
		"a stack is in use, and knows more of a release": {func(w *objectSet) {
			s := aStack("a", "scs", newCondition("Ready", csv1.ReasonInUse, "it is used"))
			s.Status.Summary = []csv1.ReleaseSummary{
				{Name: "what"}, {Name: "v1", Message: new("the source has another content by now")}, {Name: "v2", Message: new("other")},
				{Name: "v3", Message: new("waits")}, {Name: "v1"},
			}
			w.stacks = []csv1.ClusterStack{s}
			w.releases = []csv1.ClusterStackRelease{
				aRelease("a", "local-scs-1-36-v1", newCondition("Ready", "", "")), aRelease("a", "local-scs-1-36-v3", newCondition("Ready", "Unheard", "waits")),
			}
			w.clusters = []clusterv1.Cluster{aCluster("a", "c", "", "local-scs-1-36-v1")}
			w.addons = []csv1.ClusterAddon{anAddon("a", "c", nil, newCondition("Ready", "", ""))}
		}, `a/scs (local scs 1.36, stable)   Waiting   it is used
├─ local-scs-1-36-v1             Ready     v1.36.3, used by 1 cluster; the source has another content by now
│  └─ a/c                        Ready     v1.36.3, add-ons ready
└─ local-scs-1-36-v3             Waiting   waits

Next:
- ClusterStack a/scs: delete the clusters that use it, or move them to another release: a/c (customer)
`},
		"a providerRef, and something besides that is wrong": {func(w *objectSet) {
			s := aStack("a", "scs", newCondition("ProviderRefIgnored", "", ""), newCondition("Ready", "", ""),
				newCondition("AssetsClientAPIAvailable", csv1.ReasonSourceUnreachable, "no route"), newCondition("Future", "Unheard", "of"))
			s.Spec.ProviderRef = &corev1.ObjectReference{Kind: "OpenStackClusterStackReleaseTemplate", Name: "x"}
			w.stacks = []csv1.ClusterStack{s}
		}, `a/scs (local scs 1.36, stable)   Ready   latest release not known; no route; ProviderRefIgnored

Next:
- ClusterStack a/scs: check address and credentials in spec.source or, without it, of polderd's --stack-source; it is tried again by itself (platform operator)
`},
		"long names and texts that play with the terminal": {func(w *objectSet) {
			w.stacks = []csv1.ClusterStack{aStack("a", long, newCondition("Ready", "Whatever", "one\n\ttwo\x1b[31m\u202e  three"))}
			w.stacks[0].Status.LatestRelease = nil
		}, "a/" + long + " (local scs 1.36, stable)   Waiting   one two [31m three\n"},
		"stages of all sorts": {func(w *objectSet) {
			w.clusters = []clusterv1.Cluster{aCluster("a", "c", "", "gone")}
			w.addons = []csv1.ClusterAddon{anAddon("a", "c", []csv1.StageStatus{
				{}, {Name: "p", Action: "apply", Phase: csv1.StageWaitPre, Message: "m"}, {Name: "a", Action: "apply", Phase: csv1.StageApplying},
				{Name: "d", Action: "delete", Phase: csv1.StageApplying}, {Name: "f", Phase: "future", Message: "m"},
			}, newCondition("Ready", csv1.ReasonStagesRunning, ""))}
		}, `clusters without release
└─ a/c                     Waiting    add-ons: StagesRunning
   ├─                      Pending
   ├─ p                    Waiting    apply, waitingForPreCondition: m
   ├─ a                    Applying   apply
   ├─ d                    Deleting   delete
   └─ f                    future     m
`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var w objectSet
			tt.change(&w)
			if diff := cmp.Diff(split(tt.want), statusLines(w, selection{All: true})[1:]); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			wrong := strings.Contains(tt.want, "Waiting ") || strings.Contains(tt.want, "Failed ") || strings.Contains(tt.want, "Deleting ")
			if ready := w.buildReport(selection{All: true}, "K").Ready; ready != (!wrong && tt.want != "") {
				t.Errorf("ready: %t", ready)
			}
		})
	}
}
