package clusterstack

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	csv1 "github.com/polder-kaas/polder/api/clusterstack/v1alpha1"
)

func TestPhase(t *testing.T) {
	for name, c := range map[string]struct {
		release *csv1.ClusterStackRelease
		want    string
	}{
		"nobody has looked at it":         {newRelease("v1"), csv1.PhaseNone},
		"its content is not there":        {newRelease("v1", condition(csv1.ConditionDownloaded, metav1.ConditionFalse, "")), csv1.PhaseDownloading},
		"its objects are being applied":   {newRelease("v1", condition(csv1.ConditionDownloaded, metav1.ConditionTrue, "")), csv1.PhaseApplying},
		"it is ready":                     {newRelease("v1", markReady), csv1.PhaseDone},
		"it is ready, but being deleted":  {newRelease("v1", markReady, markDeleted), csv1.PhaseApplying},
		"it was ready, and is not synced": {newRelease("v1", markReady, func(r *csv1.ClusterStackRelease) { r.Status.Ready = ptr.To(false) }), csv1.PhaseApplying},
	} {
		t.Run(name, func(t *testing.T) {
			if got := phase(c.release); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

// cond is a condition without the fields that other tests check.
type cond struct{ Status, Reason, Message string }

func conditionsOf(o *csv1.ClusterStack) map[string]cond {
	out := map[string]cond{}
	for _, c := range o.Status.Conditions {
		out[c.Type] = cond{string(c.Status), c.Reason, c.Message}
		if c.ObservedGeneration != o.Generation {
			out[c.Type] = cond{"of another generation", "", ""}
		}
	}
	return out
}

func TestPublishStatus(t *testing.T) {
	entry := func(name, phase, message string) csv1.ReleaseSummary {
		s := csv1.ReleaseSummary{Name: name, Phase: &phase, Ready: ptr.To(phase == csv1.PhaseDone)}
		if message != "" {
			s.Message = &message
		}
		return s
	}
	digest := func(d string) func(*csv1.ClusterStackRelease) {
		return func(r *csv1.ClusterStackRelease) { r.Status.Digest = d }
	}
	waits := condition(csv1.ConditionReady, metav1.ConditionFalse, "it\nwaits")
	none, all := cond{"False", "NoRelease", "no release can be used yet"}, cond{"True", "Available", "all releases are ready"}
	moved := "the source has another content under this name by now (sha256:v1); what was published first is served"
	errNo := errors.New("the source does not answer")
	for name, c := range map[string]struct {
		have              []*csv1.ClusterStackRelease
		look              sourceState
		was               []csv1.ReleaseSummary
		latest, usable    *string
		summary           []csv1.ReleaseSummary
		synced, available cond
		events            []string
	}{
		"the source has nothing": {
			look: newSourceState(t), available: none,
			synced: cond{"False", "NoRelease", "directory here has no release of docker-ferrol-1-27 in channel stable; publish one, or correct the ClusterStack"},
		},
		"the source does not answer, and there is nothing": {
			look: sourceState{err: errNo, reason: "SourceUnreachable"}, available: none, synced: cond{"False", "SourceUnreachable", errNo.Error()},
		},
		"the source does not answer, but there is something": {
			have: []*csv1.ClusterStackRelease{newRelease("v1", markReady)}, look: sourceState{err: errNo, reason: "SourceUnreachable"},
			latest: ptr.To(line + "v1 | v1.27.3"), usable: ptr.To("v1"), summary: []csv1.ReleaseSummary{entry("v1", "done", "")},
			synced: all, available: cond{"True", "Available", "1 release can be used"},
		},
		"all are ready, the newest comes last": {
			have: []*csv1.ClusterStackRelease{
				newRelease("v10", markReady), newRelease("v1-beta-10", markReady), newRelease("v9", markReady), newRelease("v1-beta-9", markReady),
			},
			look: newSourceState(t), latest: ptr.To(line + "v10 | v1.27.3"), usable: ptr.To("v1-beta.9,v1-beta.10,v9,v10"),
			summary: []csv1.ReleaseSummary{entry("v1-beta.9", "done", ""), entry("v1-beta.10", "done", ""), entry("v9", "done", ""), entry("v10", "done", "")},
			synced:  all, available: cond{"True", "Available", "4 releases can be used"},
		},
		"the newest is not ready": {
			have: []*csv1.ClusterStackRelease{newRelease("v2", waits), newRelease("v1", markReady), newRelease("v3")}, look: newSourceState(t),
			latest: ptr.To(line + "v1 | v1.27.3"), usable: ptr.To("v1"),
			summary:   []csv1.ReleaseSummary{entry("v1", "done", ""), entry("v2", csv1.PhaseDownloading, "it waits"), entry("v3", "", "")},
			synced:    cond{"False", "ReleasesNotReady", line + "v2: it waits; " + line + "v3: it has not been looked at yet"},
			available: cond{"True", "Available", "1 release can be used"},
		},
		"one that is being deleted is not waited for": {
			have: []*csv1.ClusterStackRelease{newRelease("v1", markReady, markDeleted), newRelease("v2", markReady)}, look: newSourceState(t),
			latest: ptr.To(line + "v2 | v1.27.3"), usable: ptr.To("v2"),
			summary: []csv1.ReleaseSummary{entry("v1", csv1.PhaseApplying, ""), entry("v2", "done", "")}, synced: all, available: cond{
				"True", "Available", "1 release can be used",
			},
		},
		"the source has another content by now": {
			have: []*csv1.ClusterStackRelease{newRelease("v1", markReady, digest("sha256:first"))}, look: newSourceState(t, "v1"),
			latest: ptr.To(line + "v1 | v1.27.3"), usable: ptr.To("v1"), summary: []csv1.ReleaseSummary{entry("v1", "done", moved)},
			synced: all, available: cond{"True", "Available", "1 release can be used"},
			events: []string{"Warning DigestChanged " + line + "v1: " + moved},
		},
		"another content is told once": {
			have: []*csv1.ClusterStackRelease{newRelease("v1", markReady, digest("sha256:first"))}, look: newSourceState(t, "v1"), was: []csv1.ReleaseSummary{
				entry("v1", "done", moved),
			},
			latest: ptr.To(line + "v1 | v1.27.3"), usable: ptr.To("v1"), summary: []csv1.ReleaseSummary{entry("v1", "done", moved)},
			synced: all, available: cond{"True", "Available", "1 release can be used"},
		},
		"another content of another release was told": {
			have: []*csv1.ClusterStackRelease{newRelease("v1", markReady, digest("sha256:first"))}, look: newSourceState(t, "v1"), was: []csv1.ReleaseSummary{
				entry("v2", "done", moved), entry("v1", "done", ""),
			},
			latest: ptr.To(line + "v1 | v1.27.3"), usable: ptr.To("v1"), summary: []csv1.ReleaseSummary{entry("v1", "done", moved)},
			synced: all, available: cond{"True", "Available", "1 release can be used"},
			events: []string{"Warning DigestChanged " + line + "v1: " + moved},
		},
		"the same content is nothing to tell": {
			have: []*csv1.ClusterStackRelease{newRelease("v1", markReady, digest("sha256:v1")), newRelease("v2", markReady)}, look: newSourceState(t, "v1", "v2"),
			latest: ptr.To(line + "v2 | v1.27.3"), usable: ptr.To("v1,v2"), summary: []csv1.ReleaseSummary{entry("v1", "done", ""), entry("v2", "done", "")},
			synced: all, available: cond{"True", "Available", "2 releases can be used"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newBareReconciler()
			o := newStack()
			o.Status = csv1.ClusterStackStatus{LatestRelease: ptr.To("old"), UsableVersions: ptr.To("old"), Summary: c.was}
			s := newScope(o)
			s.releases, s.source = toValues(c.have), c.look
			if err := r.publishStatus(t.Context(), s); err != nil {
				t.Fatal(err)
			}
			want := map[string]cond{csv1.ConditionReleasesSynced: c.synced, csv1.ConditionReleaseAvailable: c.available}
			if d := cmp.Diff(want, conditionsOf(o)); d != "" {
				t.Error(d)
			}
			o.Status.Conditions = nil
			if d := cmp.Diff(csv1.ClusterStackStatus{LatestRelease: c.latest, UsableVersions: c.usable, Summary: c.summary}, o.Status); d != "" {
				t.Error(d)
			}
			if d := cmp.Diff(c.events, r.drainEvents()); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestSummarize(t *testing.T) {
	is := func(name, reason, message string) metav1.Condition {
		c := metav1.Condition{Type: name, Status: metav1.ConditionFalse, Reason: reason, Message: message, ObservedGeneration: 1}
		if reason == csv1.ReasonAvailable || reason == csv1.ReasonReady {
			c.Status = metav1.ConditionTrue
		}
		return c
	}
	synced, available := is(csv1.ConditionReleasesSynced, csv1.ReasonAvailable, ""), is(csv1.ConditionReleaseAvailable, csv1.ReasonAvailable, "")
	source := is(csv1.ConditionSourceAvailable, csv1.ReasonAvailable, "here it is")
	unreachable := is(csv1.ConditionSourceAvailable, csv1.ReasonSourceUnreachable, "no route")
	notReady := is(csv1.ConditionReleasesSynced, csv1.ReasonReleasesNotReady, "v2: it waits")
	for name, c := range map[string]struct {
		have   []metav1.Condition
		before []metav1.Condition
		want   cond
		events []string
	}{
		"all is well": {[]metav1.Condition{synced, available, source}, nil, cond{"True", "Ready", ""}, []string{
			"Normal Ready releases v1,v2 can be used",
		}},
		"all is well, as it was": {[]metav1.Condition{synced, available, source}, []metav1.Condition{is("Ready", "Ready", "")},
			cond{"True", "Ready", ""}, nil},
		"releases are not ready": {[]metav1.Condition{notReady, available, source}, nil, cond{"False", "ReleasesNotReady", "v2: it waits"}, []string{
			"Normal ReleasesNotReady v2: it waits",
		}},
		"releases are not ready, and it was": {[]metav1.Condition{notReady, available}, []metav1.Condition{is("Ready", "Ready", "")},
			cond{"False", "ReleasesNotReady", "v2: it waits"}, []string{"Normal ReleasesNotReady v2: it waits"}},
		"they wait for something else now": {[]metav1.Condition{notReady, available}, []metav1.Condition{is("Ready", "ReleasesNotReady", "v2: it sleeps")},
			cond{"False", "ReleasesNotReady", "v2: it waits"}, nil},
		"what is there is served": {[]metav1.Condition{synced, available, unreachable}, nil,
			cond{"True", "SourceUnreachable", "what is there is served, but no route"}, []string{"Warning SourceUnreachable what is there is served, but no route"}},
		"what is there is served no more": {[]metav1.Condition{synced, available, unreachable}, []metav1.Condition{is("Ready", "Ready", "")},
			cond{"True", "SourceUnreachable", "what is there is served, but no route"}, []string{"Warning SourceUnreachable what is there is served, but no route"}},
		"not ready, and the source is silent": {[]metav1.Condition{notReady, available, unreachable}, nil, cond{"False", "ReleasesNotReady", "v2: it waits"},
			[]string{"Normal ReleasesNotReady v2: it waits"}},
		"nothing can be used": {
			[]metav1.Condition{synced, is(csv1.ConditionReleaseAvailable, csv1.ReasonNoRelease, "none"), source}, nil, cond{"False", "NoRelease", "none"}, []string{
				"Warning NoRelease none",
			},
		},
		"nothing is known": {nil, nil, cond{"Unknown", "NotYetKnown", "ClusterStackReleasesSynced is not known yet"}, []string{
			"Warning NotYetKnown ClusterStackReleasesSynced is not known yet",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			r := newBareReconciler()
			s := newScope(newStack())
			s.object.Status = csv1.ClusterStackStatus{Conditions: c.have, UsableVersions: ptr.To("v1,v2")}
			s.tracked.Initial().Status.Conditions = c.before
			s.source.reason = csv1.ReasonSourceUnreachable
			r.summarize(s)
			if d := cmp.Diff(c.want, conditionsOf(s.object)[csv1.ConditionReady]); d != "" {
				t.Error(d)
			}
			if d := cmp.Diff(c.events, r.drainEvents()); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestProviderRefIsSaidToBeIgnored(t *testing.T) {
	r, s := newBareReconciler(), newScope(newStack())
	s.object.Spec.ProviderRef = &corev1.ObjectReference{Name: "x"}
	r.summarize(s)
	want := cond{"True", "NotActedOn", "spec.providerRef is accepted and not acted on: releases need no object of a provider here"}
	if d := cmp.Diff(want, conditionsOf(s.object)[csv1.ConditionProviderRefIgnored]); d != "" {
		t.Error(d)
	}
	s.object.Spec.ProviderRef = nil
	r.summarize(s)
	if c := meta.FindStatusCondition(s.object.Status.Conditions, csv1.ConditionProviderRefIgnored); c != nil {
		t.Errorf("%+v", c)
	}
}

// Releases and clusters are mapped to their stacks.
func TestRequests(t *testing.T) {
	custom := newStack(func(o *csv1.ClusterStack) { o.Name, o.UID, o.Spec.Channel = "custom", "custom", csv1.ChannelCustom })
	elsewhere := newStack(func(o *csv1.ClusterStack) { o.Namespace, o.UID = "b", "elsewhere" })
	r := newReconciler(t, t.TempDir(), newStack(), custom, elsewhere)
	ownCluster := newClusterOfClass(line + "v1")
	ownCluster.Spec.Topology.ClassRef.Namespace = ""
	for name, c := range map[string]struct {
		of     client.Object
		mapper func(t *testing.T, o client.Object) []string
		want   string
	}{
		"a release by its owner":       {newRelease("x"), r.forRelease, "a/ferrol"},
		"a release by its name":        {newRelease("v1", removeOwner), r.forRelease, "a/ferrol"},
		"a release of another channel": {newRelease("v0-sha-abc", removeOwner), r.forRelease, "a/custom"},
		"both by owner and by name":    {newRelease("v0-sha-abc"), r.forRelease, "a/custom a/ferrol"},
		"a release of nobody":          {newRelease("x", removeOwner), r.forRelease, ""},
		"a cluster":                    {newClusterOfClass(line + "v1"), r.forCluster, "a/ferrol"},
		"a cluster with a dot":         {newClusterOfClass(line + "v0-sha.abc"), r.forCluster, "a/custom"},
		"a cluster of its namespace":   {ownCluster, r.forCluster, "b/ferrol"},
		"a cluster of another class":   {newClusterOfClass("quick-start"), r.forCluster, ""},
		"a cluster without a class":    {&clusterv1.Cluster{}, r.forCluster, ""},
		"something that is no cluster": {newRelease("v1"), r.forCluster, ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := strings.Join(c.mapper(t, c.of), " "); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

func (r *Reconciler) forRelease(t *testing.T, o client.Object) (out []string) {
	for _, q := range r.requestsForRelease(t.Context(), o) {
		out = append(out, q.String())
	}
	return out
}

func (r *Reconciler) forCluster(t *testing.T, o client.Object) (out []string) {
	for _, q := range r.requestsForCluster(t.Context(), o) {
		out = append(out, q.String())
	}
	return out
}
