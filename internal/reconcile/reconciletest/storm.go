package reconciletest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// stormInterval is the time between two writes to each object.
const stormInterval = 50 * time.Millisecond

func stormCases(h *harness) []testCase {
	out := []testCase{{"labels and annotations", h.storm}}
	i := slices.IndexFunc(h.subject.BadInputs, func(f Fault) bool { return f.Timing == AnyTime })
	if i >= 0 {
		out = append(out, testCase{
			"inputs", func(ctx context.Context) (string, error) { return h.stormInputs(ctx, h.subject.BadInputs[i]) },
		})
	}
	return out
}

// stormInputs breaks and repairs an input again and again; the last word is what counts in the end.
func (h *harness) stormInputs(ctx context.Context, f Fault) (string, error) {
	l, err := h.startScenario(ctx, faultPlan{})
	if err != nil {
		return "", err
	}
	n, err := l.repeat(func(int) error {
		return errors.Join(l.runAction(ctx, f.Break), l.runAction(ctx, f.Repair))
	})
	if err == nil {
		err = l.waitUntilSettled(ctx, h.subject.Timeout)
	}
	return fmt.Sprintf("broken and repaired %d times", n), l.finish(ctx, err)
}

// storm writes to all objects while they are created and settle, and then checks that all of it is still there:
// not before they have settled, since a slow reconciler might not have removed it yet.
func (h *harness) storm(ctx context.Context) (string, error) {
	l, err := h.startScenario(ctx, faultPlan{})
	if err != nil {
		return "", err
	}
	n, lastWritten, err := l.writeRepeatedly(ctx)
	if err == nil {
		err = l.waitUntilSettled(ctx, h.subject.Timeout)
	}
	if err == nil {
		err = l.checkWritesKept(ctx, lastWritten)
	}
	return fmt.Sprintf("%d writes to each object", n), l.finish(ctx, err)
}

// writeRepeatedly writes to all objects for some time, and returns the last value written to each object.
func (l *scenario) writeRepeatedly(ctx context.Context) (n int, lastWritten map[types.UID]string, err error) {
	lastWritten = map[types.UID]string{}
	n, err = l.repeat(func(n int) error { return l.writeAll(ctx, strconv.Itoa(n), lastWritten) })
	return n, lastWritten, err
}

// repeat calls write for some time, and returns how often.
func (l *scenario) repeat(write func(n int) error) (n int, err error) {
	d := 3 * time.Second
	if l.h.fullDurations {
		d = time.Minute
	}
	end := time.Now().Add(d)
	tick := time.NewTicker(stormInterval)
	defer tick.Stop()
	for ; time.Now().Before(end); <-tick.C {
		n++
		if err := write(n); err != nil {
			return n, err
		}
	}
	return n, nil
}

func (l *scenario) checkWritesKept(ctx context.Context, lastWritten map[types.UID]string) error {
	s, err := l.h.snapshot(ctx, l.namespace)
	for _, key := range s.keys() {
		o := s[key]
		if want := lastWritten[o.GetUID()]; want != "" &&
			(o.GetLabels()[harnessPrefix+"storm"] != want || o.GetAnnotations()[harnessPrefix+"storm"] != want) {
			return fmt.Errorf("a user's write to %s is lost: labels %v, annotations %v, want %s in both", key, o.GetLabels(),
				o.GetAnnotations(), want)
		}
	}
	return err
}

func (l *scenario) writeAll(ctx context.Context, value string, lastWritten map[types.UID]string) error {
	s, err := l.h.snapshot(ctx, l.namespace)
	if err != nil {
		return err
	}
	mine := map[string]any{harnessPrefix + "storm": value}
	for _, o := range s {
		err := l.h.patch(ctx, &o, map[string]any{"metadata": map[string]any{"labels": mine, "annotations": mine}})
		if client.IgnoreNotFound(err) != nil {
			return err
		}
		if err == nil {
			lastWritten[o.GetUID()] = value
		}
	}
	return nil
}

// patch changes an object by a merge patch, whatever version the object has by now.
func (h *harness) patch(ctx context.Context, o *unstructured.Unstructured, change map[string]any) error {
	b, err := json.Marshal(change)
	if err != nil {
		return err
	}
	return h.client.Patch(ctx, o.DeepCopy(), client.RawPatch(types.MergePatchType, b))
}

func keyOf(o client.Object) types.NamespacedName { return client.ObjectKeyFromObject(o) }
