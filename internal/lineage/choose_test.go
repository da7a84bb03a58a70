package lineage_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	csv1 "github.com/polder-kaas/polder/api/clusterstack/v1alpha1"
	"github.com/polder-kaas/polder/api/v1alpha1"
	"github.com/polder-kaas/polder/internal/lineage"
	"github.com/polder-kaas/polder/stack/version"
)

// ref makes a stack reference that asks for Kubernetes 1.36 of the stable channel.
func ref(changes ...func(*v1alpha1.StackReference)) v1alpha1.StackReference {
	r := v1alpha1.StackReference{Name: "scs", KubernetesVersion: "1.36", Channel: v1alpha1.ChannelStable}
	for _, change := range changes {
		change(&r)
	}
	return r
}

func pin(v string) func(*v1alpha1.StackReference) {
	return func(r *v1alpha1.StackReference) { r.Version = v }
}

func ofCustom(r *v1alpha1.StackReference) { r.Channel = v1alpha1.ChannelCustom }

func TestChoose(t *testing.T) {
	own, all := stack("a", "1.36"), stack(shared, "1.36")
	naming := func(v string) func(*csv1.ClusterStack) {
		return func(s *csv1.ClusterStack) { s.Spec.Versions = []string{v} }
	}
	for name, c := range map[string]struct {
		ref  v1alpha1.StackReference
		have []client.Object
		want string
	}{
		"the newest, by number": {ref(), []client.Object{own, release("a", "local-scs-1-36-v9"), release("a", "local-scs-1-36-v10")},
			"a/local-scs-1-36-v10"},
		"a newer one that is not ready hides no older": {ref(),
			[]client.Object{own, release("a", "local-scs-1-36-v1"), release("a", "local-scs-1-36-v2", notReady)}, "a/local-scs-1-36-v1"},
		"one that is being deleted counts as not ready": {ref(),
			[]client.Object{own, release("a", "local-scs-1-36-v1"), release("a", "local-scs-1-36-v2", markDeleted)}, "a/local-scs-1-36-v1"},
		"another minor is another line": {ref(),
			[]client.Object{own, release("a", "local-scs-1-36-v1"), stack("a", "1.37"), release("a", "local-scs-1-37-v7")}, "a/local-scs-1-36-v1"},
		"its own comes before the catalogue's newer": {ref(), []client.Object{own, release("a", "local-scs-1-36-v1"), all, release(shared, "local-scs-1-36-v2")},
			"a/local-scs-1-36-v1"},
		"its own is not ready, the catalogue's is": {ref(),
			[]client.Object{own, release("a", "local-scs-1-36-v1", notReady), all, release(shared, "local-scs-1-36-v1")}, shared + "/local-scs-1-36-v1"},
		"the catalogue's if there is none of its own": {ref(), []client.Object{all, release(shared, "local-scs-1-36-v2")}, shared + "/local-scs-1-36-v2"},
		"a version that a stable stack names is no news": {ref(),
			[]client.Object{stack("a", "1.36", naming("v9-rc.1")), release("a", "local-scs-1-36-v1"), release("a", "local-scs-1-36-v9-rc-1")}, "a/local-scs-1-36-v1"},
		"the custom channel has no stable ones": {ref(ofCustom),
			[]client.Object{own, release("a", "local-scs-1-36-v1"), stack("a", "1.36", custom), release("a", "local-scs-1-36-v0-sha-abc")},
			"a/local-scs-1-36-v0-sha-abc"},
		"one that is pinned is not left for a newer": {ref(pin("v1")), []client.Object{own, release("a", "local-scs-1-36-v1"), release("a", "local-scs-1-36-v2")},
			"a/local-scs-1-36-v1"},
		"a pin in either spelling": {ref(pin("v0-sha-abc")),
			[]client.Object{stack("a", "1.36", custom), release("a", "local-scs-1-36-v0-sha-abc")}, "a/local-scs-1-36-v0-sha-abc"},
		"a pin beside the channel": {ref(pin("v9-rc.1")),
			[]client.Object{stack("a", "1.36", naming("v9-rc.1")), release("a", "local-scs-1-36-v1"), release("a", "local-scs-1-36-v9-rc-1")},
			"a/local-scs-1-36-v9-rc-1"},
		"a pin that only the catalogue has": {ref(pin("v2")),
			[]client.Object{own, release("a", "local-scs-1-36-v1"), all, release(shared, "local-scs-1-36-v2")}, shared + "/local-scs-1-36-v2"},
		"a pin that both have": {ref(pin("v1")),
			[]client.Object{own, release("a", "local-scs-1-36-v1"), all, release(shared, "local-scs-1-36-v1")}, "a/local-scs-1-36-v1"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := readCatalogue(t, "a", c.have...).Choose("local", c.ref)
			if err != nil || got.Key().String() != c.want {
				t.Errorf("%v, %v; want %s", got, err, c.want)
			}
		})
	}
}

// An error says which releases there are instead, and what can be done.
func TestChooseFindsNone(t *testing.T) {
	one := []client.Object{
		stack("a", "1.35"), stack("a", "1.36"), release("a", "local-scs-1-36-v1"), release("a", "local-scs-1-36-v2"), release("a", "local-scs-1-36-v3", notReady),
	}
	empty := stack("a", "1.36", func(s *csv1.ClusterStack) {
		s.Status.Conditions = []metav1.Condition{{Type: csv1.ConditionReady, Message: "the source sleeps"}}
	})
	for name, c := range map[string]struct {
		ref  v1alpha1.StackReference
		have []client.Object
		want lineage.ReleaseUnavailableError
	}{
		"no stack at all": {ref(), nil, lineage.ReleaseUnavailableError{
			Reason: v1alpha1.ReasonStackMissing, Field: "name", Actor: v1alpha1.PlatformOperator,
			Text: `there is no stack "scs" for provider local that serves namespace a, and no other`,
			Next: "make a ClusterStack of local scs in namespace a, or in polder-catalogue with spec.allowedNamespaces",
		}},
		"another stack": {ref(func(r *v1alpha1.StackReference) { r.Name = "sCs" }), one, lineage.ReleaseUnavailableError{
			Reason: v1alpha1.ReasonStackMissing, Field: "name", Actor: v1alpha1.Customer, Next: "choose a stack that is there in spec.stack.name",
			Text: `there is no stack "sCs" for provider local that serves namespace a; there is scs of local (1.35, 1.36)`,
		}},
		"another minor": {ref(func(r *v1alpha1.StackReference) { r.KubernetesVersion = "1.34" }), append(one, stack(shared, "1.36")), lineage.ReleaseUnavailableError{
			Reason: v1alpha1.ReasonStackMissing, Field: "kubernetesVersion", Actor: v1alpha1.Customer,
			Next: "choose a version that is there in spec.stack.kubernetesVersion",
			Text: "stack scs has no Kubernetes 1.34; it has 1.35, 1.36",
		}},
		"another channel": {ref(ofCustom), one, lineage.ReleaseUnavailableError{
			Reason: v1alpha1.ReasonStackMissing, Field: "channel", Actor: v1alpha1.Customer, Next: "choose the channel that is there in spec.stack.channel",
			Text: "stack scs for Kubernetes 1.36 has no channel custom here; it has stable",
		}},
		"another channel, of whatever minor": {ref(ofCustom, func(r *v1alpha1.StackReference) { r.KubernetesVersion = "" }), one, lineage.ReleaseUnavailableError{
			Reason: v1alpha1.ReasonStackMissing, Field: "channel", Actor: v1alpha1.Customer, Next: "choose a channel that is there in spec.stack.channel",
			Text: "stack scs has nothing in channel custom; it has the channel stable",
		}},
		"a stack without releases": {ref(), []client.Object{empty}, lineage.ReleaseUnavailableError{
			Reason: v1alpha1.ReasonReleaseMissing, Field: "name", Actor: v1alpha1.PlatformOperator, Next: "see why: polder stack status scs-1-36 -n a",
			Text: "ClusterStack a/scs-1-36 has no release yet: the source sleeps",
		}},
		"a stack without releases beside one of another channel": {ref(),
			[]client.Object{stack("a", "1.36", custom), release("a", "local-scs-1-36-v0-sha-abc"), stack(shared, "1.36")}, lineage.ReleaseUnavailableError{
				Reason: v1alpha1.ReasonReleaseMissing, Field: "name", Actor: v1alpha1.Nobody,
				Text: "ClusterStack polder-catalogue/scs-1-36 has no release yet",
			}},
		"none is ready: the newest is told": {ref(),
			[]client.Object{stack("a", "1.36"), release("a", "local-scs-1-36-v1", notReady),
				release("a", "local-scs-1-36-v2", notReady)}, lineage.ReleaseUnavailableError{
				Reason: v1alpha1.ReasonReleaseNotReady, Field: "version", Actor: v1alpha1.PlatformOperator, Next: "see why: polder stack status -n a",
				Text: "release a/local-scs-1-36-v2 is not ready yet: it rains",
			}},
		"one that Cluster API has not seen": {ref(), []client.Object{stack("a", "1.36"), release("a", "local-scs-1-36-v1", markUnseen)},
			lineage.ReleaseUnavailableError{
				Reason: v1alpha1.ReasonReleaseNotReady, Field: "version", Actor: v1alpha1.Nobody, Text: "release a/local-scs-1-36-v1 is not ready yet: it comes",
			}},
		"one that nobody has looked at": {ref(pin("v1")), []client.Object{stack("a", "1.36"), release("a", "local-scs-1-36-v1", clearStatus)},
			lineage.ReleaseUnavailableError{
				Reason: v1alpha1.ReasonReleaseNotReady, Field: "version", Actor: v1alpha1.Nobody, Text: "release a/local-scs-1-36-v1 is not ready yet",
			}},
		"a pin that is not ready stays one": {ref(pin("v3")), one, lineage.ReleaseUnavailableError{
			Reason: v1alpha1.ReasonReleaseNotReady, Field: "version", Actor: v1alpha1.PlatformOperator, Next: "see why: polder stack status -n a",
			Text: "release a/local-scs-1-36-v3 is not ready yet: it rains",
		}},
		"a pin that is not there": {ref(pin("v7")), one, lineage.ReleaseUnavailableError{
			Reason: v1alpha1.ReasonReleaseMissing, Field: "version", Actor: v1alpha1.Customer,
			Text: "stack scs for Kubernetes 1.36 has no release v7 here; it has v2, v1",
			Next: "choose a release that is there in spec.stack.version, or ask the platform operator to add v7 to spec.versions of ClusterStack a/scs-1-36",
		}},
		"a pin, and there are none": {ref(pin("v7")), []client.Object{stack("a", "1.36")}, lineage.ReleaseUnavailableError{
			Reason: v1alpha1.ReasonReleaseMissing, Field: "version", Actor: v1alpha1.Customer, Text: "stack scs for Kubernetes 1.36 has no release v7 here",
			Next: "choose a release that is there in spec.stack.version, or ask the platform operator to add v7 to spec.versions of ClusterStack a/scs-1-36",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := readCatalogue(t, "a", c.have...).Choose("local", c.ref)
			var got *lineage.ReleaseUnavailableError
			if !errors.As(err, &got) {
				t.Fatalf("%v", err)
			}
			if d := cmp.Diff(c.want, *got); d != "" {
				t.Error(d)
			}
		})
	}
	t.Run("the catalogue itself has each of its own once", func(t *testing.T) {
		_, err := readCatalogue(t, shared, stack(shared, "1.36"), release(shared, "local-scs-1-36-v1")).Choose("local", ref(pin("v7")))
		if want := "stack scs for Kubernetes 1.36 has no release v7 here; it has v1"; err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	})
	t.Run("a pin that is no version", func(t *testing.T) {
		_, err := readCatalogue(t, "a", one...).Choose("local", ref(pin("newest")))
		var got *lineage.ReleaseUnavailableError
		if !errors.As(err, &got) || got.Field != "version" || got.Actor != v1alpha1.Customer || got.Next != "correct spec.stack.version" {
			t.Errorf("%+v", err)
		}
	})
}

func TestUpdates(t *testing.T) {
	var many []client.Object
	for i := range 40 {
		many = append(many, release("a", fmt.Sprintf("local-scs-1-36-v%d", i+1)))
	}
	next := []client.Object{stack("a", "1.37"), release("a", "local-scs-1-37-v1"), release("a", "local-scs-1-37-v2"), release("a", "local-scs-1-37-v3", notReady)}
	far := []client.Object{stack("a", "1.38"), release("a", "local-scs-1-38-v1"), stack("a", "1.35"), release("a", "local-scs-1-35-v9")}
	for name, c := range map[string]struct {
		ref  v1alpha1.StackReference
		have []client.Object
		want []string
	}{
		"nothing is newer": {ref(), []client.Object{release("a", "local-scs-1-36-v1"), release("a", "local-scs-1-36-v2")}, nil},
		"newer ones, newest first": {ref(), []client.Object{release("a", "local-scs-1-36-v3"), release("a", "local-scs-1-36-v10")}, []string{
			"1.36 v10 v1.36.3", "1.36 v3 v1.36.3",
		}},
		"not those that are not ready": {ref(), []client.Object{release("a", "local-scs-1-36-v3"), release("a", "local-scs-1-36-v4", notReady)},
			[]string{"1.36 v3 v1.36.3"}},
		"not those of an older Kubernetes": {ref(),
			[]client.Object{release("a", "local-scs-1-36-v3", patch("v1.36.2")), release("a", "local-scs-1-36-v4", patch("v1.36.4"))}, []string{"1.36 v4 v1.36.4"}},
		"not those of another channel":               {ref(), []client.Object{stack("a", "1.36", custom), release("a", "local-scs-1-36-v4-sha-abc")}, nil},
		"the newest of the next minor, and no other": {ref(), append(far, next...), []string{"1.37 v2 v1.37.3"}},
		"what two stacks have is told once": {ref(),
			[]client.Object{release("a", "local-scs-1-36-v3"), stack(shared, "1.36"), release(shared, "local-scs-1-36-v3")}, []string{"1.36 v3 v1.36.3"}},
		"another stack's are not its":                    {ref(func(r *v1alpha1.StackReference) { r.Name = "other" }), next, nil},
		"many are cut, and the next minor is still told": {ref(), append(many, next...), append(versions(40, 26), "1.37 v2 v1.37.3")},
	} {
		t.Run(name, func(t *testing.T) {
			name, err := version.ParseReleaseName("local-scs-1-36-v2")
			if err != nil {
				t.Fatal(err)
			}
			at := lineage.CatalogueEntry{ReleaseName: name, Object: release("a", "local-scs-1-36-v2")}
			var got []string
			for _, u := range readCatalogue(t, "a", append(c.have, stack("a", "1.36"))...).Updates("local", c.ref, at) {
				got = append(got, u.KubernetesVersion+" "+u.Version+" "+u.Kubernetes)
			}
			if d := cmp.Diff(c.want, got); d != "" || len(got) > 16 {
				t.Error(len(got), d)
			}
		})
	}
}

func patch(kubernetes string) func(*csv1.ClusterStackRelease) {
	return func(r *csv1.ClusterStackRelease) { r.Status.KubernetesVersion = kubernetes }
}

// versions lists updates of Kubernetes 1.36, from the newest release down to the oldest.
func versions(from, to int) (out []string) {
	for i := from; i >= to; i-- {
		out = append(out, fmt.Sprintf("1.36 v%d v1.36.3", i))
	}
	return out
}
