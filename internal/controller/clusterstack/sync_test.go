package clusterstack

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	csv1 "github.com/polder-kaas/polder/api/clusterstack/v1alpha1"
)

func versions(v ...string) func(*csv1.ClusterStack) {
	return func(o *csv1.ClusterStack) { o.Spec.Versions = v }
}

func subscribe(b *bool) func(*csv1.ClusterStack) {
	return func(o *csv1.ClusterStack) { o.Spec.AutoSubscribe = b }
}

func TestWantedReleases(t *testing.T) {
	for name, c := range map[string]struct {
		stack *csv1.ClusterStack
		at    []string
		want  []string
		bad   []string // one message for each
	}{
		"the newest, if nothing is said":      {newStack(), []string{"v1", "v2"}, []string{line + "v2"}, nil},
		"the newest, if it is asked for":      {newStack(subscribe(ptr.To(true))), []string{"v1", "v2"}, []string{line + "v2"}, nil},
		"nothing, if nobody wants the newest": {newStack(subscribe(ptr.To(false))), []string{"v1", "v2"}, nil, nil},
		"nothing, if there is nothing":        {newStack(), nil, nil, nil},
		"versions that are named, and the newest": {
			newStack(versions("v1", "v3")), []string{"v1", "v10", "v9"}, []string{line + "v1", line + "v10", line + "v3"}, nil,
		},
		"only versions that are named": {newStack(versions("v1"), subscribe(ptr.To(false))), []string{"v1", "v2"}, []string{line + "v1"}, nil},
		"both spellings are one release": {
			newStack(versions("v0-sha.abc1234", "v0-sha-abc1234")), nil, []string{line + "v0-sha-abc1234"}, nil,
		},
		"versions that are none, each by its name": {newStack(versions("1.0", "v1", "v2-x")), nil, []string{line + "v1"}, []string{`"1.0"`, `"v2-x"`}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScope(c.stack)
			s.source = newSourceState(t, c.at...)
			got, bad := wantedReleases(s)
			if d := cmp.Diff(c.want, slices.Sorted(maps.Keys(got))); d != "" {
				t.Error(d)
			}
			if len(bad) != len(c.bad) {
				t.Fatalf("%q, want %q", bad, c.bad)
			}
			for i, part := range c.bad {
				if !strings.Contains(bad[i], part) {
					t.Errorf("%s, want %s", bad[i], part)
				}
			}
		})
	}
}

func TestNewestAtSource(t *testing.T) {
	for name, c := range map[string]struct {
		at   []string
		want string
	}{
		"nothing":                                {nil, ""},
		"one":                                    {[]string{"v0-sha-abc"}, line + "v0-sha-abc"},
		"numbers are numbers":                    {[]string{"v9", "v10", "v2"}, line + "v10"},
		"the order of the source is none":        {[]string{"v10", "v2", "v9"}, line + "v10"},
		"numbers behind a word are numbers, too": {[]string{"v1-beta-9", "v1-beta-10", "v1-beta-8"}, line + "v1-beta-10"},
		"in whatever order":                      {[]string{"v1-beta-10", "v1-beta-9"}, line + "v1-beta-10"},
		"a first version that is the zeroth":     {[]string{"v0-a-0"}, line + "v0-a-0"},
	} {
		t.Run(name, func(t *testing.T) {
			got, ok := newestAtSource(newSourceState(t, c.at...))
			if ok != (c.want != "") || (ok && got.Tag() != c.want) {
				t.Errorf("%s, %t; want %q", got, ok, c.want)
			}
		})
	}
}

func TestNewestReady(t *testing.T) {
	for name, c := range map[string]struct {
		have []*csv1.ClusterStackRelease
		want string
	}{
		"nothing":       {nil, ""},
		"none is ready": {[]*csv1.ClusterStackRelease{newRelease("v1"), newRelease("v2")}, ""},
		"the newest of those that are": {[]*csv1.ClusterStackRelease{newRelease("v9", markReady), newRelease("v10", markReady), newRelease("v2", markReady),
			newRelease("v11")}, line + "v10"},
		"numbers behind a word": {[]*csv1.ClusterStackRelease{newRelease("v1-beta-10", markReady), newRelease("v1-beta-9", markReady)},
			line + "v1-beta-10"},
		"not one that is being deleted":   {[]*csv1.ClusterStackRelease{newRelease("v1", markReady), newRelease("v2", markReady, markDeleted)}, line + "v1"},
		"not one whose name says nothing": {[]*csv1.ClusterStackRelease{newRelease("x", markReady)}, ""},
		"the zeroth is one":               {[]*csv1.ClusterStackRelease{newRelease("v0", markReady)}, line + "v0"},
		"one that says that it is not ready": {[]*csv1.ClusterStackRelease{newRelease("v1", func(r *csv1.ClusterStackRelease) { r.Status.Ready = ptr.To(false) })},
			""},
	} {
		t.Run(name, func(t *testing.T) {
			got := newestReady(toValues(c.have))
			if (got == nil) != (c.want == "") || (got != nil && got.Name != c.want) {
				t.Errorf("%v, want %q", got, c.want)
			}
		})
	}
}

func toValues(have []*csv1.ClusterStackRelease) (out []csv1.ClusterStackRelease) {
	for _, r := range have {
		out = append(out, *r)
	}
	return out
}

// newClusterOfClass makes a cluster with a class, in a namespace that is not the stack's.
func newClusterOfClass(class string) *clusterv1.Cluster {
	c := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "b", Name: "demo"}}
	c.Spec.Topology.ClassRef = clusterv1.ClusterClassRef{Namespace: "a", Name: class}
	return c
}

// A star marks releases that the stack owns in the end.
func TestSyncReleases(t *testing.T) {
	otherOwner := func(r *csv1.ClusterStackRelease) {
		r.OwnerReferences[0].UID, r.OwnerReferences[0].Name = "other", "sines"
	}
	for name, c := range map[string]struct {
		stack  *csv1.ClusterStack // newStack() if nil
		have   []client.Object
		look   sourceState
		want   []string
		reason string // of ReleasesSynced
		says   []string
		events []string
	}{
		"what is wanted is made": {
			stack: newStack(versions("v1")), look: newSourceState(t, "v1", "v2"), want: []string{"v1*", "v2*"},
			events: []string{"Normal ReleaseAdded release " + line + "v1 is wanted now", "Normal ReleaseAdded release " + line + "v2 is wanted now"},
		},
		"a newer one comes, and the old one goes as soon as the newer one is ready": {
			have: []client.Object{newRelease("v1", markReady), newRelease("v2", markReady)}, look: newSourceState(t, "v1", "v2"), want: []string{"v2*"},
		},
		"until then the newest that works stays": {
			have: []client.Object{newRelease("v1", markReady), newRelease("v2", markReady), newRelease("v3")}, look: newSourceState(t, "v1", "v2", "v3"), want: []string{
				"v2*", "v3*",
			},
		},
		"what clusters use stays": {
			have: []client.Object{newRelease("v1", markReady), newRelease("v2", markReady), newClusterOfClass(line + "v1")}, look: newSourceState(t, "v1", "v2"),
			want: []string{"v1*", "v2*"},
		},
		"what clusters use stays, though its class is spelled with a dot": {
			stack: newStack(func(o *csv1.ClusterStack) { o.Spec.Channel = csv1.ChannelCustom }),
			have:  []client.Object{newRelease("v0-sha-abc", markReady), newRelease("v1-sha-abc", markReady), newClusterOfClass(line + "v0-sha.abc")},
			look:  newSourceState(t, "v1-sha-abc"), want: []string{"v0-sha-abc*", "v1-sha-abc*"},
		},
		"what is in the spec stays": {
			stack: newStack(versions("v1")), have: []client.Object{newRelease("v1", markReady), newRelease("v2", markReady)}, look: newSourceState(t, "v2"),
			want: []string{"v1*", "v2*"},
		},
		"what the source has no more is not needed, unless it is the newest that works": {
			have: []client.Object{newRelease("v1"), newRelease("v2", markReady), newRelease("v3")}, look: newSourceState(t, "v4"), want: []string{"v2*", "v4*"},
			events: []string{"Normal ReleaseAdded release " + line + "v4 is wanted now"},
		},
		"a source that has nothing any more takes nothing away": {
			have: []client.Object{newRelease("v1"), newRelease("v2", markReady), newRelease("v3")}, look: newSourceState(t), want: []string{"v1*", "v2*", "v3*"},
		},
		"a source that never had any of the channel is no such": {
			have: []client.Object{newRelease("v0-sha-abc")}, look: newSourceState(t), want: nil,
		},
		"as long as the source has not answered, nothing goes": {
			have: []client.Object{newRelease("v1"), newRelease("v2", markReady), newRelease("v3")}, look: sourceState{err: errors.New("no")}, want: []string{
				"v1*", "v2*", "v3*",
			},
		},
		"what is named is made, though the source has not answered": {
			stack: newStack(versions("v1")), look: sourceState{err: errors.New("no")}, want: []string{"v1*"},
			events: []string{"Normal ReleaseAdded release " + line + "v1 is wanted now"},
		},
		"a version that is none: the others are made, and nothing goes": {
			stack: newStack(versions("1.0", "v2", "v4-x")), have: []client.Object{newRelease("v1")}, look: newSourceState(t, "v3"), want: []string{"v1*", "v2*", "v3*"},
			reason: csv1.ReasonNameInvalid, says: []string{"spec.versions: ", `"1.0"`, `"v4-x"`},
			events: []string{"Normal ReleaseAdded release " + line + "v2 is wanted now", "Normal ReleaseAdded release " + line + "v3 is wanted now"},
		},
		"an owner that was taken away comes back": {
			have: []client.Object{newRelease("v1", removeOwner)}, look: newSourceState(t, "v1"), want: []string{"v1*"},
		},
		"it comes back to what is in the spec and of another channel, too": {
			stack: newStack(versions("v0-sha.abc")), have: []client.Object{newRelease("v0-sha-abc", removeOwner)}, look: newSourceState(t), want: []string{
				"v0-sha-abc*",
			},
		},
		"without its owner, it goes all the same": {
			have: []client.Object{newRelease("v1", removeOwner)}, look: newSourceState(t, "v2"), want: []string{"v2*"},
			events: []string{"Normal ReleaseAdded release " + line + "v2 is wanted now"},
		},
		"what is of another channel and nobody's stays nobody's": {
			have: []client.Object{newRelease("v0-sha-abc", removeOwner)}, look: newSourceState(t), want: []string{"v0-sha-abc"},
		},
		"what is of another stack stays": {
			have: []client.Object{newRelease("v1", otherOwner)}, look: newSourceState(t), want: []string{"v1"},
		},
		"what is wanted and belongs to another stack": {
			have: []client.Object{newRelease("v1", otherOwner)}, look: newSourceState(t, "v1"), want: []string{"v1"},
			reason: csv1.ReasonNotOurs, says: []string{"release " + line + "v1 belongs to ClusterStack sines already; delete one of the two"},
		},
		"what belongs to another stack keeps nothing else from coming or going": {
			stack: newStack(versions("v1", "v2", "v3")), have: []client.Object{newRelease("v0"), newRelease("v1", otherOwner), newRelease("v2", otherOwner)},
			look: newSourceState(t, "v3"),
			want: []string{"v1", "v2", "v3*"}, reason: csv1.ReasonNotOurs, says: []string{line + "v1 belongs to", line + "v2 belongs to"},
			events: []string{"Normal ReleaseAdded release " + line + "v3 is wanted now"},
		},
		"a version that is none, and what belongs to another": {
			stack: newStack(versions("1.0", "v1")), have: []client.Object{newRelease("v0"), newRelease("v1", otherOwner)}, look: newSourceState(t),
			want: []string{"v0*", "v1"}, reason: csv1.ReasonNameInvalid, says: []string{`"1.0"`, line + "v1 belongs to"},
		},
		"a name that the API does not take": {
			stack: newStack(versions("v0-a-refused", "v1")), look: newSourceState(t), want: []string{"v1*"}, reason: csv1.ReasonNameInvalid, says: []string{
				line + "v0-a-refused cannot be made",
			},
			events: []string{"Normal ReleaseAdded release " + line + "v1 is wanted now"},
		},
		"what is being deleted is left alone": {
			have: []client.Object{newRelease("v1", removeOwner, markDeleted)}, look: newSourceState(t, "v1"), want: []string{"v1"},
		},
		"a name that is spelled in another way is none of ours": {
			stack: newStack(func(o *csv1.ClusterStack) { o.Spec.Channel = csv1.ChannelCustom }),
			have:  []client.Object{newRelease("v0-sha.abc")}, look: newSourceState(t, "v0-sha-abc"), want: []string{"v0-sha-abc*", "v0-sha.abc*"},
			events: []string{"Normal ReleaseAdded release " + line + "v0-sha-abc is wanted now"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if c.stack == nil {
				c.stack = newStack()
			}
			r, asked := newReconciler(t, t.TempDir(), c.have...), 0
			r.Client = interceptor.NewClient(r.Client.(client.WithWatch), interceptor.Funcs{
				Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
					if strings.HasSuffix(o.GetName(), "refused") {
						return apierrors.NewInvalid(csv1.GroupVersion.WithKind("ClusterStackRelease").GroupKind(), o.GetName(), nil)
					}
					asked++
					return c.Create(ctx, o, opts...)
				},
			})
			s := newScope(c.stack)
			s.source = c.look
			if err := r.gatherReleases(t.Context(), s); err != nil {
				t.Fatal(err)
			}
			if err := r.syncReleases(t.Context(), s); err != nil {
				t.Error(err)
			}
			if got := reasonIn(c.stack, csv1.ConditionReleasesSynced); got != c.reason {
				t.Errorf("reason %q, want %q", got, c.reason)
			}
			for _, part := range c.says {
				if m := conditionsOf(c.stack)[csv1.ConditionReleasesSynced].Message; strings.Count(m, part) != 1 {
					t.Errorf("it says %q, want %s once", m, part)
				}
			}
			if d := cmp.Diff(c.want, releasesIn(t, r.Client, c.stack)); d != "" {
				t.Error(d)
			}
			if d := cmp.Diff(c.events, r.drainEvents()); d != "" {
				t.Error(d)
			}
			// No release that exists is created.
			if asked != len(c.events) && !strings.Contains(strings.Join(c.says, " "), "belongs to") {
				t.Errorf("%d releases were to be made, want %d", asked, len(c.events))
			}
		})
	}
}

// releasesIn returns the versions that exist, with a star if the stack owns them.
func releasesIn(t *testing.T, c client.Client, s *csv1.ClusterStack) (out []string) {
	t.Helper()
	var l csv1.ClusterStackReleaseList
	if err := c.List(t.Context(), &l, client.InNamespace("a")); err != nil {
		t.Fatal(err)
	}
	for _, rel := range l.Items {
		v := strings.TrimPrefix(rel.Name, line)
		if metav1.IsControlledBy(&rel, s) {
			v += "*"
		}
		if len(rel.OwnerReferences) > 1 {
			t.Errorf("%s has owners %v", rel.Name, rel.OwnerReferences)
		}
		out = append(out, v)
	}
	return out
}

func reasonIn(o *csv1.ClusterStack, name string) string {
	if c := meta.FindStatusCondition(o.Status.Conditions, name); c != nil {
		return c.Reason
	}
	return ""
}

// A release that the cache does not have yet is no problem: nothing is reported, and it is looked at again.
func TestSyncReleasesWithAnOldCache(t *testing.T) {
	r := newReconciler(t, t.TempDir(), newRelease("v1", markReady))
	s := newScope(newStack())
	s.source = newSourceState(t, "v1") // and s.releases is empty
	if err := r.syncReleases(t.Context(), s); err != nil || len(s.object.Status.Conditions) != 0 {
		t.Errorf("%v, %v", err, s.object.Status.Conditions)
	}
}

func TestDeleteOrAdoptAsks(t *testing.T) {
	resource := schema.GroupResource{Group: csv1.GroupVersion.Group, Resource: "clusterstackreleases"}
	errBroken, nobody := errors.New("broken"), newClient(t)
	for name, c := range map[string]struct{ answer, want error }{
		"it is deleted":                               {nil, nil},
		"somebody has begun to use it":                {apierrors.NewForbidden(resource, line+"v1", errBroken), nil},
		"it is gone":                                  {apierrors.NewNotFound(resource, line+"v1"), nil},
		"something else is wrong":                     {errBroken, errBroken},
		"it is another by now, so we must look again": {apierrors.NewConflict(resource, line+"v1", errBroken), errBroken},
	} {
		t.Run(name, func(t *testing.T) {
			r := newBareReconciler()
			var asked []string
			r.Client = interceptor.NewClient(nobody, interceptor.Funcs{
				Delete: func(_ context.Context, _ client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
					do := (&client.DeleteOptions{}).ApplyOptions(opts)
					if do.Preconditions == nil || do.Preconditions.UID == nil || *do.Preconditions.UID != "uid" {
						t.Error("it could be another of the same name")
					}
					asked = append(asked, o.GetName())
					return c.answer
				},
			})
			err := r.deleteOrAdopt(t.Context(), newScope(newStack()), newRelease("v1"), false)
			if (err == nil) != (c.want == nil) || (c.want != nil && !errors.Is(err, c.answer)) {
				t.Errorf("error %v, want %v", err, c.want)
			}
			if d := cmp.Diff([]string{line + "v1"}, asked); d != "" {
				t.Error(d)
			}
		})
	}
}
