package clusterstackrelease

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/event"
	ctrlreconcile "sigs.k8s.io/controller-runtime/pkg/reconcile"

	csv1 "github.com/polder-kaas/polder/api/clusterstack/v1alpha1"
	"github.com/polder-kaas/polder/internal/apply"
	"github.com/polder-kaas/polder/internal/lineage"
	"github.com/polder-kaas/polder/internal/reconcile"
	"github.com/polder-kaas/polder/internal/releases"
	"github.com/polder-kaas/polder/stack/fetch"
	"github.com/polder-kaas/polder/stack/finding"
	"github.com/polder-kaas/polder/stack/registry"
	"github.com/polder-kaas/polder/stack/version"
)

func newRelease() *csv1.ClusterStackRelease {
	return &csv1.ClusterStackRelease{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "docker-ferrol-1-27-v1", UID: "release", Generation: 1}}
}

// cond is a condition without the fields that other tests check.
type cond struct{ Status, Reason, Message string }

func conditionOf(o *csv1.ClusterStackRelease, name string) cond {
	c := meta.FindStatusCondition(o.Status.Conditions, name)
	if c == nil {
		return cond{}
	}
	if c.ObservedGeneration != o.Generation {
		return cond{Status: "of another generation"}
	}
	return cond{string(c.Status), c.Reason, c.Message}
}

// drainEvents returns the events recorded so far.
func drainEvents(r *Reconciler) (out []string) {
	for {
		select {
		case e := <-r.Events.(*events.FakeRecorder).Events:
			out = append(out, e)
		default:
			return out
		}
	}
}

// indexer adds indexes to a builder of fake clients.
type indexer struct{ *fake.ClientBuilder }

func (i indexer) IndexField(_ context.Context, o client.Object, field string, f client.IndexerFunc) error {
	i.WithIndex(o, field, f)
	return nil
}

// newBareReconciler returns a reconciler without clients.
func newBareReconciler() *Reconciler {
	return &Reconciler{Events: events.NewFakeRecorder(16), Clock: clock.RealClock{}, Interval: time.Hour}
}

func newReconciler(t *testing.T, objects ...client.Object) *Reconciler {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(clusterv1.AddToScheme(scheme), csv1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	b := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...)
	if err := lineage.IndexClustersByClass(t.Context(), indexer{b}); err != nil {
		t.Fatal(err)
	}
	r := newBareReconciler()
	r.Client = b.Build()
	r.Live = r.Client
	return r
}

func TestReasonOf(t *testing.T) {
	for reason, errs := range map[string][]error{
		csv1.ReasonSourceMissing:     {releases.ErrNoSource},
		csv1.ReasonSourceInvalid:     {releases.ErrInvalidSource, registry.ErrCredentials, fetch.ErrRefused},
		csv1.ReasonNotFound:          {registry.ErrNotFound},
		csv1.ReasonDigestChanged:     {registry.ErrMoved, registry.ErrDigest},
		csv1.ReasonInvalid:           {registry.ErrInvalid},
		csv1.ReasonSourceUnreachable: {errBroken, context.DeadlineExceeded, releases.ErrMissing},
	} {
		for _, err := range errs {
			if got := reasonOf(fmt.Errorf("x: %w", err)); got != reason {
				t.Errorf("%v: %s, want %s", err, got, reason)
			}
		}
	}
}

func TestCheckName(t *testing.T) {
	for name, c := range map[string]struct{ name, want string }{
		"a stable release": {"docker-ferrol-1-27-v1", ""},
		"a word":           {"docker-ferrol-1-27-v0-sha-abc1234", ""},
		"the spelling of a class": {"docker-ferrol-1-27-v0-sha.abc1234",
			"docker-ferrol-1-27-v0-sha.abc1234 is not how a release is spelled here; call it docker-ferrol-1-27-v0-sha-abc1234"},
		"something else": {"quick-start", `release "quick-start" is not of the form provider-name-1-36-v1`},
	} {
		t.Run(name, func(t *testing.T) {
			o := newRelease()
			o.Name = c.name
			s := newScope(o)
			err := (&Reconciler{}).checkName(t.Context(), s)
			if c.want == "" {
				if err != nil || s.name.Tag() != c.name || len(o.Status.Conditions) > 0 {
					t.Errorf("%v, %s, %v", err, s.name, o.Status.Conditions)
				}
				return
			}
			if !errors.Is(err, ctrlreconcile.TerminalError(nil)) {
				t.Errorf("error %v", err)
			}
			if d := cmp.Diff(cond{"False", csv1.ReasonNameInvalid, c.want}, conditionOf(o, csv1.ConditionDownloaded)); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestSummarize(t *testing.T) {
	is := func(name, reason, message string) metav1.Condition {
		c := metav1.Condition{Type: name, Status: metav1.ConditionFalse, Reason: reason, Message: message, ObservedGeneration: 1}
		if reason == csv1.ReasonReady {
			c.Status = metav1.ConditionTrue
		}
		return c
	}
	downloaded, applied, class := is(csv1.ConditionDownloaded, "Ready", ""), is(csv1.ConditionApplied, "Ready", ""), is(csv1.ConditionClassReady, "Ready", "")
	well := []metav1.Condition{class, applied, downloaded}
	removing := cond{"False", "Deleting", "the class and its templates are being removed"}
	for name, c := range map[string]struct {
		have, before []metav1.Condition
		deleted      bool
		want         cond
		events       []string
	}{
		"all is well":            {have: well, want: cond{"True", "Ready", ""}, events: []string{"Normal Ready clusters can be made of it, with Kubernetes v1.27.3"}},
		"all is well, as it was": {have: well, before: []metav1.Condition{is("Ready", "Ready", "")}, want: cond{"True", "Ready", ""}},
		"all is well again": {
			have: well, before: []metav1.Condition{is("Ready", "Refused", "")}, want: cond{"True", "Ready", ""},
			events: []string{"Normal Ready clusters can be made of it, with Kubernetes v1.27.3"},
		},
		"nothing is known": {want: cond{"Unknown", "NotYetKnown", "ClusterStackReleaseDownloaded is not known yet"}},
		"it is not there": {
			have: []metav1.Condition{is(csv1.ConditionDownloaded, "NotFound", "no such"), applied, class}, want: cond{"False", "NotFound", "no such"},
			events: []string{"Warning NotFound no such"},
		},
		"it is not there, still": {
			have: []metav1.Condition{is(csv1.ConditionDownloaded, "NotFound", "no such"), applied, class}, before: []metav1.Condition{is("Ready", "NotFound", "")},
			want: cond{"False", "NotFound", "no such"},
		},
		"an object is missing": {
			have: []metav1.Condition{downloaded, is(csv1.ConditionApplied, "ApplyFailed", "no"), class}, before: []metav1.Condition{is("Ready", "Ready", "")},
			want: cond{"False", "ApplyFailed", "no"}, events: []string{"Warning ApplyFailed no"},
		},
		"the class is looked at: that is no alarm": {
			have: []metav1.Condition{downloaded, applied, is(csv1.ConditionClassReady, "ClassNotReady", "not yet")}, before: []metav1.Condition{
				is("Ready", "Ready", ""),
			},
			want: cond{"False", "ClassNotReady", "not yet"},
		},
		"it is deleted":                      {have: well, deleted: true, before: []metav1.Condition{is("Ready", "Ready", "")}, want: removing},
		"it is deleted, and was never there": {deleted: true, want: removing},
		"it is deleted, and used": {
			have: []metav1.Condition{downloaded, is(csv1.ConditionApplied, "InUse", "used by a/b"), class}, deleted: true, want: cond{"False", "InUse", "used by a/b"},
			events: []string{"Warning InUse used by a/b"},
		},
		"it is deleted, and used, as it was": {
			have: []metav1.Condition{downloaded, is(csv1.ConditionApplied, "InUse", "used by a/b"), class}, deleted: true, before: []metav1.Condition{
				is("Ready", "InUse", ""),
			},
			want: cond{"False", "InUse", "used by a/b"},
		},
		"it is deleted, and objects are leaving": {
			have: []metav1.Condition{downloaded, is(csv1.ConditionApplied, "Deleting", "one leaves"), class}, deleted: true, want: removing,
		},
	} {
		t.Run(name, func(t *testing.T) {
			r, o := newBareReconciler(), newRelease()
			o.Status.Conditions, o.Status.KubernetesVersion = c.have, "v1.27.3"
			if c.deleted {
				o.DeletionTimestamp = ptr.To(metav1.Now())
			}
			s := newScope(o)
			s.tracked.Initial().Status.Conditions = c.before
			r.summarize(s)
			if d := cmp.Diff(c.want, conditionOf(o, csv1.ConditionReady)); d != "" {
				t.Error(d)
			}
			if o.Status.Ready == nil || *o.Status.Ready != (c.want.Status == "True") {
				t.Errorf("ready: %v", o.Status.Ready)
			}
			if d := cmp.Diff(c.events, drainEvents(r)); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestProviderRefIsSaidToBeIgnored(t *testing.T) {
	r, o := newBareReconciler(), newRelease()
	o.Spec.ProviderRef = &corev1.ObjectReference{Name: "x"}
	r.summarize(newScope(o))
	want := cond{"True", "NotActedOn", "spec.providerRef is accepted and not acted on: releases need no object of a provider here"}
	if d := cmp.Diff(want, conditionOf(o, csv1.ConditionProviderRefIgnored)); d != "" {
		t.Error(d)
	}
	o.Spec.ProviderRef = nil
	r.summarize(newScope(o))
	if d := cmp.Diff(cond{}, conditionOf(o, csv1.ConditionProviderRefIgnored)); d != "" {
		t.Error(d)
	}
}

// The kind of error decides when it is tried again: at once, after a while, or not before something changes.
func TestWhatGoesWrong(t *testing.T) {
	found := finding.List{{File: "x", Severity: finding.Error, Rule: "y", What: "z"}}
	refusal := &apply.RefusedError{Reasons: []error{errBroken}}
	r := newBareReconciler()
	for name, c := range map[string]struct {
		say             func(*Reconciler, *scope, error) error
		err             error
		reason          string
		waits, terminal bool
	}{
		"the renderer fails":             {(*Reconciler).reportRenderError, errBroken, csv1.ReasonApplyFailed, false, false},
		"the release cannot be rendered": {(*Reconciler).reportRenderError, fmt.Errorf("x: %w", found), csv1.ReasonInvalid, true, false},
		"an object is not allowed":       {(*Reconciler).reportPrepareError, fmt.Errorf("x: %w", refusal), csv1.ReasonRefused, false, true},
		"the API server does not answer": {(*Reconciler).reportPrepareError, errBroken, csv1.ReasonApplyFailed, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScope(newRelease())
			err := c.say(r, s, c.err)
			if reconcile.IsWait(err) != c.waits || errors.Is(err, ctrlreconcile.TerminalError(nil)) != c.terminal || (!c.waits && !errors.Is(err, c.err)) {
				t.Errorf("error %v", err)
			}
			if d := cmp.Diff(cond{"False", c.reason, c.err.Error()}, conditionOf(s.object, csv1.ConditionApplied)); d != "" {
				t.Error(d)
			}
		})
	}
	result, err := reconcile.Run(t.Context(), newScope(newRelease()), func(_ context.Context, s *scope) error { return r.reportRenderError(s, found) })
	if err != nil || result.RequeueAfter != r.Interval {
		t.Errorf("%v, %v: what is unsound is rendered again and again", result, err)
	}
}

func TestCheckNotInUse(t *testing.T) {
	uses := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "b", Name: "demo"}}
	uses.Spec.Topology.ClassRef = clusterv1.ClusterClassRef{Namespace: "a", Name: "docker-ferrol-1-27-v1"}
	s := newScope(newRelease())
	if err := newReconciler(t).checkNotInUse(t.Context(), s); err != nil || len(s.object.Status.Conditions) > 0 {
		t.Errorf("%v, %v", err, s.object.Status.Conditions)
	}
	if err := newReconciler(t, uses).checkNotInUse(t.Context(), s); !reconcile.IsWait(err) {
		t.Errorf("error %v", err)
	}
	want := cond{"False", "InUse", "the release is to be deleted and is used by b/demo; give them another class, or delete them"}
	if d := cmp.Diff(want, conditionOf(s.object, csv1.ConditionApplied)); d != "" {
		t.Error(d)
	}
}

// An object that could never be created need not be deleted, even if it may not be read.
func TestIgnoreNeverApplied(t *testing.T) {
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "images"}, "x", nil)
	for name, c := range map[string]struct {
		resource csv1.Resource
		err      error
		gone     bool
	}{
		"never made":           {csv1.Resource{Kind: "Image", Name: "x", Status: csv1.ResourceNotSynced}, fmt.Errorf("deleting: %w", forbidden), true},
		"made":                 {csv1.Resource{Kind: "Image", Name: "x", Status: csv1.ResourceSynced}, forbidden, false},
		"made, and failed now": {csv1.Resource{Kind: "Image", Name: "x", Status: csv1.ResourceNotSynced, UID: "uid"}, forbidden, false},
		"another error":        {csv1.Resource{Kind: "Image", Name: "x", Status: csv1.ResourceNotSynced}, errBroken, false},
		"another object":       {csv1.Resource{Kind: "Image", Name: "y", Status: csv1.ResourceNotSynced}, forbidden, false},
	} {
		t.Run(name, func(t *testing.T) {
			results := []apply.Result{{Ref: apply.Ref{Kind: "Image", Name: "x"}, Err: c.err}}
			ignoreNeverApplied([]csv1.Resource{c.resource}, results)
			if gone := results[0].Err == nil; gone != c.gone {
				t.Errorf("gone: %t", gone)
			}
		})
	}
}

func TestWaitForClass(t *testing.T) {
	is := func(name string, status metav1.ConditionStatus, generation int64) metav1.Condition {
		return metav1.Condition{Type: name, Status: status, ObservedGeneration: generation, Message: "no"}
	}
	variables, refs := clusterv1.ClusterClassVariablesReadyCondition, clusterv1.ClusterClassRefVersionsUpToDateCondition
	old := is(refs, "False", 2)
	old.Reason = clusterv1.ClusterClassRefVersionsNotUpToDateReason
	old.Message = "These are old:\n* KubeadmControlPlaneTemplate x: current: v1beta1\n* KubeadmConfigTemplate y: current: v1beta1"
	notYet := "Cluster API has not looked at the class yet"
	for name, c := range map[string]struct {
		have []metav1.Condition
		want cond
	}{
		"nobody has looked at it":  {nil, cond{"False", "ClassNotSeen", notYet}},
		"it was looked at in part": {[]metav1.Condition{is(variables, "True", 2)}, cond{"False", "ClassNotSeen", notYet}},
		"it was changed since":     {[]metav1.Condition{is(variables, "True", 2), is(refs, "True", 1)}, cond{"False", "ClassNotSeen", notYet}},
		"it is not taken": {[]metav1.Condition{is(variables, "False", 2), is(refs, "True", 2)}, cond{
			"False", "ClassNotReady", "Cluster API does not take the class: VariablesReady is False: no",
		}},
		"nobody knows": {[]metav1.Condition{is(variables, "True", 2), is(refs, "Unknown", 2)}, cond{
			"False", "ClassNotReady", "Cluster API does not take the class: RefVersionsUpToDate is Unknown: no",
		}},
		"its references are old": {[]metav1.Condition{is(variables, "True", 2), old}, cond{
			"True", "Ready", "clusters can be made of class docker-ferrol-1-27-v0-sha.abc",
		}},
		"it is taken": {[]metav1.Condition{is(variables, "True", 2), is(refs, "True", 2)}, cond{
			"True", "Ready", "clusters can be made of class docker-ferrol-1-27-v0-sha.abc",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			class := &clusterv1.ClusterClass{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "docker-ferrol-1-27-v0-sha.abc", Generation: 2}}
			class.Status.Conditions = c.have
			s := newScope(newRelease())
			var err error
			if s.name, err = version.ParseReleaseName("docker-ferrol-1-27-v0-sha-abc"); err != nil {
				t.Fatal(err)
			}
			err = newReconciler(t, class).waitForClass(t.Context(), s)
			if (err == nil) != (c.want.Status == "True") || (err != nil && !reconcile.IsWait(err)) {
				t.Errorf("error %v", err)
			}
			if d := cmp.Diff(c.want, conditionOf(s.object, csv1.ConditionClassReady)); d != "" {
				t.Error(d)
			}
			warned := meta.FindStatusCondition(s.object.Status.Conditions, csv1.ConditionOldReferences)
			if (warned != nil) != (name == "its references are old") {
				t.Errorf("old references: %v", warned)
			} else if warned != nil && !strings.HasSuffix(warned.Message,
				": KubeadmControlPlaneTemplate x: current: v1beta1, KubeadmConfigTemplate y: current: v1beta1") {
				t.Error(warned.Message)
			}
		})
	}
	s := newScope(newRelease())
	if err := newReconciler(t).waitForClass(t.Context(), s); err == nil || conditionOf(s.object, csv1.ConditionClassReady).Reason != "ClassNotReady" {
		t.Errorf("there is no class: %v", err)
	}
}

func TestPredicates(t *testing.T) {
	stack := func(asked string) client.Object {
		return &csv1.ClusterStack{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{csv1.RequestedAtAnnotation: asked, "other": asked + "x"}}}
	}
	held := newRelease()
	held.Finalizers = []string{csv1.ReleaseFinalizer}
	told := newRelease()
	told.Status.Conditions = []metav1.Condition{{Type: "Ready"}}
	for name, c := range map[string]struct{ got, want bool }{
		"somebody asks":              {reconcileRequested().Update(event.UpdateEvent{ObjectOld: stack("a"), ObjectNew: stack("b")}), true},
		"nobody asks again":          {reconcileRequested().Update(event.UpdateEvent{ObjectOld: stack("a"), ObjectNew: stack("a")}), false},
		"a finalizer is there":       {finalizerMissing().Update(event.UpdateEvent{ObjectOld: held, ObjectNew: held}), false},
		"a finalizer was taken away": {finalizerMissing().Update(event.UpdateEvent{ObjectOld: held, ObjectNew: newRelease()}), true},
		"the status is lost":         {statusLost().Update(event.UpdateEvent{ObjectOld: told, ObjectNew: newRelease()}), true},
		"the status is there":        {statusLost().Update(event.UpdateEvent{ObjectOld: newRelease(), ObjectNew: told}), false},
	} {
		if c.got != c.want {
			t.Errorf("%s: %t, want %t", name, c.got, c.want)
		}
	}
}

// Clusters and stacks are mapped to their releases.
func TestRequests(t *testing.T) {
	s := &csv1.ClusterStack{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "ferrol", UID: "stack"}}
	s.Spec = csv1.ClusterStackSpec{Provider: "docker", Name: "ferrol", KubernetesVersion: "1.27", Channel: csv1.ChannelStable}
	byOwner, other, elsewhere := newRelease(), newRelease(), newRelease()
	byOwner.Name, byOwner.OwnerReferences = "docker-ferrol-1-27-v0-sha-abc", []metav1.OwnerReference{
		{Kind: "ClusterStack", Name: "ferrol", UID: "stack", Controller: ptr.To(true)},
	}
	other.Name, elsewhere.Namespace = "docker-ferrol-1-28-v1", "b"
	r := newReconciler(t, newRelease(), byOwner, other, elsewhere)
	cluster := func(class string) client.Object {
		c := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "b", Name: "demo"}}
		c.Spec.Topology.ClassRef = clusterv1.ClusterClassRef{Namespace: "a", Name: class}
		return c
	}
	for name, c := range map[string]struct {
		of     client.Object
		mapper func(context.Context, client.Object) []ctrlreconcile.Request
		want   string
	}{
		"a stack asks for those it owns and those of its line": {s, r.requestsForStack, "a/docker-ferrol-1-27-v0-sha-abc a/docker-ferrol-1-27-v1"},
		"what is no stack asks for none":                       {newRelease(), r.requestsForStack, ""},
		"a cluster asks for its own":                           {cluster("docker-ferrol-1-27-v0-sha.abc"), requestForCluster, "a/docker-ferrol-1-27-v0-sha-abc"},
		"a cluster of another class asks for none":             {cluster("quick-start"), requestForCluster, ""},
		"a cluster without a class asks for none":              {cluster(""), requestForCluster, ""},
		"what is no cluster asks for none":                     {newRelease(), requestForCluster, ""},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, q := range c.mapper(t.Context(), c.of) {
				got = append(got, q.String())
			}
			if strings.Join(got, " ") != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}
