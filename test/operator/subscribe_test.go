package operator

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	csv1 "github.com/polder-kaas/polder/api/clusterstack/v1alpha1"
	"github.com/polder-kaas/polder/test/testenv"
)

// releases returns the names of all releases of the namespace.
func (w *walk) releases(t *testing.T) string {
	t.Helper()
	var l csv1.ClusterStackReleaseList
	if err := w.mgmt.List(t.Context(), &l, client.InNamespace(w.ns)); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, r := range l.Items {
		names = append(names, strings.TrimPrefix(r.Name, "local-scs-1-36-"))
	}
	return strings.Join(names, ",")
}

func TestStableChannelTakesTheNewest(t *testing.T) {
	t.Parallel()
	w := newWalk(t)
	for _, v := range []string{"v2", "v9", "v10", "v11-beta.1", "v12-sha.abc1234"} {
		w.publish(t, "1.36", v, nil)
	}
	w.publish(t, "1.37", "v20", nil) // of another line
	w.stack(t, "stack", "1.36", nil)
	w.becomesReady(t, "stack", "v10")
	if got := w.releases(t); got != "v10" {
		t.Errorf("releases %s, want v10 alone", got)
	}
	w.publish(t, "1.36", "v11", nil)
	w.ask(t, "stack")
	w.becomesReady(t, "stack", "v11")
	w.isGone(t, "local-scs-1-36-v10", &csv1.ClusterStackRelease{})
	w.isGone(t, "local-scs-1-36-v10", &clusterv1.ClusterClass{})
}

// What the operator that came before could not do at all: versions are compared as numbers, both spellings
// are one release, and one that is used is neither given up nor deleted.
func TestCustomChannelTakesTheNewest(t *testing.T) {
	t.Parallel()
	w := newWalk(t)
	there := newRegistry()
	behind.set(w.ns, there)
	w.repository = at(door, w.ns)
	for _, v := range []string{"v5", "v0-sha.abc1234", "v1-beta.9", "v1-beta.10", "v1-beta.2"} {
		w.publish(t, "1.36", v, nil)
	}
	tagAs(t, there, w.ns, "local-scs-1-36-v5", "latest", "openstack-scs-v5", "openstack-scs-1-29-v2-test", "local-scs-1-36-v01", "v9")
	custom := func(s *csv1.ClusterStack) { s.Spec.Channel = csv1.ChannelCustom }
	w.stack(t, "stack", "1.36", custom)
	w.becomesReady(t, "stack", "v1-beta.10")
	if got := w.releases(t); got != "v1-beta-10" {
		t.Errorf("releases %s, want v1-beta-10 alone", got)
	}
	s := &csv1.ClusterStack{}
	if err := w.get(t, "stack", s); err != nil || ptr.Deref(s.Status.LatestRelease, "") != "local-scs-1-36-v1-beta-10 | "+kubernetesOf(t, "1.36") {
		t.Errorf("latest release %v, %v", ptr.Deref(s.Status.LatestRelease, ""), err)
	}

	used := paused(w.ns, "user", "local-scs-1-36-v1-beta.10", kubernetesOf(t, "1.36"))
	if err := w.mgmt.Create(t.Context(), used); err != nil {
		t.Fatal(err)
	}
	w.publish(t, "1.36", "v2-sha.abc1234", nil)
	w.publish(t, "1.36", "v3-sha.def5678", nil)
	w.ask(t, "stack")
	w.becomesReady(t, "stack", "v1-beta.10,v3-sha.def5678")
	for _, o := range []client.Object{s, &csv1.ClusterStackRelease{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: "local-scs-1-36-v1-beta-10"}}} {
		if err := w.mgmt.Delete(t.Context(), o); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), w.ns+"/user") {
			t.Errorf("deleting %T, which a cluster uses: %v", o, err)
		}
	}
}

func TestVersionsAreWantedInBothSpellings(t *testing.T) {
	t.Parallel()
	w := newWalk(t)
	for _, v := range []string{"v1", "v2", "v3", "v0-sha.abc1234", "v0-git.def5678"} {
		w.publish(t, "1.36", v, nil)
	}
	w.stack(t, "stack", "1.36", func(s *csv1.ClusterStack) {
		s.Spec.AutoSubscribe = ptr.To(false)
		s.Spec.Versions = []string{"v1", "v2", "v0-sha.abc1234", "v0-sha-abc1234", "v0-git-def5678"}
	})
	w.becomesReady(t, "stack", "v0-git.def5678,v0-sha.abc1234,v1,v2")
	if got := w.releases(t); got != "v0-git-def5678,v0-sha-abc1234,v1,v2" {
		t.Errorf("releases %s", got)
	}
	s := &csv1.ClusterStack{}
	if err := w.get(t, "stack", s); err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(summaryOf(s)); got != "map[v0-git.def5678:done v0-sha.abc1234:done v1:done v2:done]" {
		t.Errorf("summary %s", got)
	}
	before := s.DeepCopy()
	s.Spec.Versions = []string{"v2"}
	if err := w.mgmt.Patch(t.Context(), s, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
	w.becomesReady(t, "stack", "v2")
	for _, v := range []string{"v1", "v10-x", "v-1", "latest"} {
		s := &csv1.ClusterStack{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: "bad"}}
		s.Spec = csv1.ClusterStackSpec{Provider: "local", Name: "scs", KubernetesVersion: "1.36", Versions: []string{v}}
		if err := w.mgmt.Create(t.Context(), s, client.DryRunAll); (err == nil) != (v == "v1") || err != nil && !apierrors.IsInvalid(err) {
			t.Errorf("version %s: %v", v, err)
		}
	}
}

func summaryOf(s *csv1.ClusterStack) map[string]string {
	out := map[string]string{}
	for _, r := range s.Status.Summary {
		out[r.Name] = ptr.Deref(r.Phase, "")
	}
	return out
}

// A registry lists its tags in pages, and the newest release is on the last.
func TestNewestReleaseIsOnTheLastPage(t *testing.T) {
	t.Parallel()
	w := newWalk(t)
	there := newRegistry()
	behind.set(w.ns, inPages(30, there))
	w.repository = at(door, w.ns)
	w.publish(t, "1.36", "v1", nil)
	var more []string
	for i := range 140 {
		more = append(more, fmt.Sprintf("docker-ferrol-1-27-v%d", i))
	}
	for i := range 40 {
		more = append(more, fmt.Sprintf("local-scs-1-36-v1%d", i))
	}
	tagAs(t, there, w.ns, "local-scs-1-36-v1", more...)
	w.publish(t, "1.36", "v200", nil)
	w.stack(t, "stack", "1.36", nil)
	w.becomesReady(t, "stack", "v200")
	w.says(t, &csv1.ClusterStack{}, "stack", csv1.ConditionSourceAvailable, metav1.ConditionTrue, csv1.ReasonAvailable, "has 42 releases of local-scs-1-36")
}

// A tag that was moved is an alarm; what was published first is served.
func TestTagIsMoved(t *testing.T) {
	t.Parallel()
	w := newWalk(t)
	w.publish(t, "1.36", "v1", nil)
	w.stack(t, "stack", "1.36", nil)
	w.becomesReady(t, "stack", "v1")
	rel := &csv1.ClusterStackRelease{}
	if err := w.get(t, "local-scs-1-36-v1", rel); err != nil {
		t.Fatal(err)
	}
	was := rel.Status.Digest
	w.overwrite(t, "1.36", "v1", withClass(`{{- fail "this is another content" }}`))
	w.ask(t, "stack")
	testenv.Eventually(t, soon, func() error {
		s := &csv1.ClusterStack{}
		if err := w.get(t, "stack", s); err != nil {
			return err
		}
		if len(s.Status.Summary) != 1 || !strings.Contains(ptr.Deref(s.Status.Summary[0].Message, ""), "the source has another content under this name by now") {
			return fmt.Errorf("the summary does not say it: %+v", s.Status.Summary)
		}
		return nil
	})
	w.eventOf(t, "ClusterStack", "stack", "Warning", csv1.ReasonDigestChanged, "local-scs-1-36-v1: the source has another content")
	w.becomesReady(t, "stack", "v1")
	w.classIsRestored(t, "local-scs-1-36-v1")
	if err := os.RemoveAll(filepath.Join(shared.Get(t).Data, "releases", strings.Replace(was, ":", "-", 1))); err != nil {
		t.Fatal(err)
	}
	w.classIsRestored(t, "local-scs-1-36-v1") // the registry still has it, if not under its name
	if err := w.get(t, "local-scs-1-36-v1", rel); err != nil || rel.Status.Digest != was {
		t.Errorf("the release has digest %s, want %s: %v", rel.Status.Digest, was, err)
	}
}
