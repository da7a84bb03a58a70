package clusterstack

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	csv1 "github.com/polder-kaas/polder/api/clusterstack/v1alpha1"
	"github.com/polder-kaas/polder/internal/releases"
	"github.com/polder-kaas/polder/stack/fetch"
	"github.com/polder-kaas/polder/stack/registry"
)

// brokenSource returns a source that is a file: it fails, like one that cannot be reached.
func brokenSource(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "releases")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// repairSource makes a broken source a directory with some releases.
func repairSource(t *testing.T, path string, names ...string) {
	t.Helper()
	if err := errors.Join(os.Remove(path), os.Mkdir(path, 0o700)); err != nil {
		t.Fatal(err)
	}
	for _, n := range names {
		publish(t, path, n)
	}
}

// checkSourceOf runs the phase and returns what was seen.
func (r *Reconciler) checkSourceOf(t *testing.T, o *csv1.ClusterStack) sourceState {
	t.Helper()
	s := newScope(o)
	if err := r.checkSource(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	return s.source
}

// checkNextTime checks that a time is so far away, or up to a fifth more.
func checkNextTime(t *testing.T, next time.Time, want time.Duration) {
	t.Helper()
	if got := time.Until(next); got < want || got > want+want/5 {
		t.Errorf("the next look is after %s, want %s", got, want)
	}
}

func TestListAnAnsweringSource(t *testing.T) {
	dir := t.TempDir()
	for _, n := range []string{"v1", "v10", "v0-sha-abc"} {
		publish(t, dir, line+n)
	}
	publish(t, dir, "docker-ferrol-1-28-v1")
	publish(t, dir, "docker-sines-1-27-v1")
	if err := os.Mkdir(filepath.Join(dir, "something"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		stack   *csv1.ClusterStack
		want    []string
		message string
		next    time.Duration
	}{
		"stable": {newStack(), []string{line + "v1", line + "v10"}, "directory here has 2 releases of docker-ferrol-1-27 in channel stable", 10 * time.Minute},
		"custom": {newStack(func(o *csv1.ClusterStack) { o.Spec.Channel = csv1.ChannelCustom }), []string{line + "v0-sha-abc"},
			"directory here has 1 release of docker-ferrol-1-27 in channel custom", 10 * time.Minute},
		"its own interval": {
			newStack(func(o *csv1.ClusterStack) { o.Spec.Interval = &metav1.Duration{Duration: time.Hour} }),
			[]string{line + "v1", line + "v10"}, "directory here has 2 releases of docker-ferrol-1-27 in channel stable", time.Hour,
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newReconciler(t, dir)
				got := r.checkSourceOf(t, c.stack)
				var names []string
				for _, e := range got.entries {
					names = append(names, e.Release.Tag())
					if found, ok := got.findEntry(e.Release.Tag()); !ok || found.Digest != e.Digest || e.Digest == "" {
						t.Errorf("%s: %v", e.Release, found)
					}
				}
				if d := cmp.Diff(c.want, names); d != "" || got.err != nil || !got.answered {
					t.Error(d, got.err, got.answered)
				}
				checkNextTime(t, got.nextCheck, c.next)
				is := meta.FindStatusCondition(c.stack.Status.Conditions, csv1.ConditionSourceAvailable)
				if is == nil || is.Status != metav1.ConditionTrue || is.Message != c.message {
					t.Errorf("%+v", is)
				}
			})
		})
	}
}

// A failed source is tried again ever more rarely, but at least as often as one that answers.
// What is named like a release of the stack and is none is said; of other things at the source, nothing is.
func TestListKeepsWarningsOfItsLine(t *testing.T) {
	dir := t.TempDir()
	others := []string{"something", "docker-ferrol-1-28-x", "mydocker-ferrol-1-27-x", "docker-sines-1-27-v0-a.b"}
	for _, n := range append(others, line+"latest", line+"v0-sha.abc", line+"v7") {
		if err := os.Mkdir(filepath.Join(dir, n), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, line+"v8"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	want := []string{
		`"docker-ferrol-1-27-v8" is left out: it is no directory`,
		`directory "docker-ferrol-1-27-v0-sha.abc" is left out: the name of this release is spelled docker-ferrol-1-27-v0-sha-abc`,
		`directory is left out: release "docker-ferrol-1-27-latest" is not of the form provider-name-1-36-v1`,
		`docker-ferrol-1-27-v7 is left out: release docker-ferrol-1-27-v7: metadata.yaml is missing, so this is no release`,
	}
	if d := cmp.Diff(want, newReconciler(t, dir).checkSourceOf(t, newStack()).rejected); d != "" {
		t.Error(d)
	}
}

func TestListASourceThatDoesNotAnswer(t *testing.T) {
	s, m := time.Second, time.Minute
	for name, c := range map[string]struct {
		interval time.Duration
		want     []time.Duration
	}{
		"with time":        {0, []time.Duration{5 * s, 10 * s, 20 * s, 40 * s, 80 * s, 160 * s, 5 * m, 5 * m, 5 * m, 5 * m, 5 * m, 5 * m, 5 * m}},
		"a short interval": {12 * s, []time.Duration{5 * s, 10 * s, 12 * s, 12 * s}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				path := brokenSource(t)
				r, o := newReconciler(t, path), newStack()
				if c.interval > 0 {
					o.Spec.Interval = &metav1.Duration{Duration: c.interval}
				}
				for i, want := range c.want {
					got := r.checkSourceOf(t, o)
					if got.failures != i+1 || got.answered || got.reason != csv1.ReasonSourceUnreachable {
						t.Errorf("look %d: %+v", i, got)
					}
					checkNextTime(t, got.nextCheck, want)
					time.Sleep(time.Until(got.nextCheck) - 1)
					if again := r.checkSourceOf(t, o); again.failures != i+1 || !again.nextCheck.Equal(got.nextCheck) {
						t.Errorf("it was looked at before it was time: %+v", again)
					}
					is := meta.FindStatusCondition(o.Status.Conditions, csv1.ConditionSourceAvailable)
					if is == nil || is.Status != metav1.ConditionFalse || is.Reason != csv1.ReasonSourceUnreachable || strings.Contains(is.Message, path) {
						t.Errorf("%+v", is)
					}
					time.Sleep(time.Nanosecond)
				}
				repairSource(t, path, line+"v1")
				got := r.checkSourceOf(t, o)
				if got.failures != 0 || got.err != nil || got.reason != "" || !got.answered || len(got.entries) != 1 {
					t.Errorf("it answers: %+v", got)
				}
			})
		})
	}
}

// What a source has listed is kept when it does not answer any more. Of another source nothing is known.
func TestCheckSourceKeepsWhatWasListed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "releases")
		publish(t, dir, line+"v1")
		r, o := newReconciler(t, dir), newStack()
		first := r.checkSourceOf(t, o)
		if err := errors.Join(os.RemoveAll(dir), os.WriteFile(dir, nil, 0o600)); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Until(first.nextCheck))
		got := r.checkSourceOf(t, o)
		if got.err == nil || !got.answered || len(got.entries) != 1 || got.location != "directory here" {
			t.Errorf("the source does not answer: %+v", got)
		}
		o.Generation++
		got = r.checkSourceOf(t, o)
		if got.err == nil || got.answered || len(got.entries) != 0 || got.failures != 1 {
			t.Errorf("the stack was changed: %+v", got)
		}
		if again := r.checkSourceOf(t, o); !again.nextCheck.Equal(got.nextCheck) {
			t.Error("a change is looked at twice")
		}
	})
}

func TestCheckSourceOfAnotherStackWithTheName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := brokenSource(t)
		r, o := newReconciler(t, path), newStack()
		r.checkSourceOf(t, o)
		repairSource(t, path, line+"v1")
		o.UID = "another"
		if got := r.checkSourceOf(t, o); !got.answered || got.uid != "another" {
			t.Errorf("what was seen for the one that is gone is believed: %+v", got)
		}
		r.sources.Forget(client.ObjectKeyFromObject(o))
		if _, known := r.sources.Load(client.ObjectKeyFromObject(o)); known {
			t.Error("it is not forgotten")
		}
	})
}

func TestCheckSourceIsRequested(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := brokenSource(t)
		r, o := newReconciler(t, path), newStack()
		for range 5 {
			time.Sleep(time.Until(r.checkSourceOf(t, o).nextCheck))
		}
		if o.Status.LastHandledReconcileAt != nil {
			t.Error("nobody has asked")
		}
		time.Sleep(time.Until(r.checkSourceOf(t, o).nextCheck) / 2)
		o.Annotations = map[string]string{csv1.RequestedAtAnnotation: "now"}
		got := r.checkSourceOf(t, o)
		if got.failures != 1 || got.request != "now" || ptr.Deref(o.Status.LastHandledReconcileAt, "") != "now" {
			t.Errorf("%+v, handled %v", got, o.Status.LastHandledReconcileAt)
		}
		checkNextTime(t, got.nextCheck, initialBackoff) // somebody is working on it
		repairSource(t, path, line+"v1")
		if again := r.checkSourceOf(t, o); !again.nextCheck.Equal(got.nextCheck) || again.answered {
			t.Errorf("a request is answered twice: %+v", again)
		}
		o.Annotations[csv1.RequestedAtAnnotation] = "and now"
		if again := r.checkSourceOf(t, o); !again.answered || ptr.Deref(o.Status.LastHandledReconcileAt, "") != "and now" {
			t.Errorf("another request is not answered: %+v", again)
		}
		publish(t, path, line+"v2")
		delete(o.Annotations, csv1.RequestedAtAnnotation)
		if again := r.checkSourceOf(t, o); ptr.Deref(o.Status.LastHandledReconcileAt, "") != "and now" || again.failures != 0 {
			t.Errorf("%+v, handled %v", again, o.Status.LastHandledReconcileAt)
		}
	})
}

// A check that was cancelled because we stop says nothing about the source.
func TestCheckSourceThatIsCutShort(t *testing.T) {
	r, s := newReconciler(t, brokenSource(t)), newScope(newStack())
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := r.checkSource(ctx, s); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	if last, known := r.sources.Load(client.ObjectKeyFromObject(s.object)); known || len(s.object.Status.Conditions) != 0 {
		t.Errorf("it is remembered: %v, %v", last, s.object.Status.Conditions)
	}
}

func TestReasonOfAListing(t *testing.T) {
	for reason, errs := range map[string][]error{
		csv1.ReasonSourceMissing:     {releases.ErrNoSource},
		csv1.ReasonSourceInvalid:     {releases.ErrInvalidSource, registry.ErrCredentials, registry.ErrNotFound, fetch.ErrRefused},
		csv1.ReasonSourceUnreachable: {errors.New("no route"), context.DeadlineExceeded, registry.ErrInvalid},
	} {
		for _, err := range errs {
			if got := reasonOf(fmt.Errorf("x: %w", err)); got != reason {
				t.Errorf("%v: %s, want %s", err, got, reason)
			}
		}
	}
}

// A stack is reconciled again when its source is due.
func TestReconcileComesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		publish(t, dir, line+"v1")
		o := newStack()
		r := newReconciler(t, dir, o)
		req := ctrl.Request{NamespacedName: client.ObjectKeyFromObject(o)}
		got, err := r.Reconcile(t.Context(), req)
		if err != nil || got.RequeueAfter < 10*time.Minute || got.RequeueAfter > 12*time.Minute {
			t.Errorf("%v, %v", got, err)
		}
		if err := r.Client.Get(t.Context(), req.NamespacedName, o); err != nil {
			t.Fatal(err)
		}
		ready := meta.FindStatusCondition(o.Status.Conditions, csv1.ConditionReady)
		if ready == nil || ready.Reason != csv1.ReasonReleasesNotReady || ready.Message != line+"v1: it has not been looked at yet" {
			t.Errorf("%+v", ready)
		}
		if err := r.Client.Delete(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		got, err = r.Reconcile(t.Context(), req)
		if _, known := r.sources.Load(req.NamespacedName); err != nil || got != (ctrl.Result{}) || known {
			t.Errorf("a stack that is gone: %v, %v, known: %t", got, err, known)
		}
	})
}
