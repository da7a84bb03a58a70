package reconciletest

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// gust is the time between two writes to each object.
const gust = 50 * time.Millisecond

func stormCases(h *harness) []testCase { return []testCase{{"labels and annotations", h.storm}} }

// storm writes to all objects while they are created and settle, and then looks whether all of it is
// still there: not before they have settled, or a reconciler that is slow has not taken it away yet.
func (h *harness) storm(ctx context.Context) (string, error) {
	l, err := h.begin(ctx, plan{})
	if err != nil {
		return "", err
	}
	n, said, err := l.blow(ctx)
	if err == nil {
		err = l.settle(ctx, h.subject.Timeout)
	}
	if err == nil {
		err = l.keeps(ctx, said)
	}
	return fmt.Sprintf("%d writes to each object", n), l.finish(ctx, err)
}

// blow keeps writing, and returns the last value written to each object.
func (l *life) blow(ctx context.Context) (n int, said map[types.UID]string, err error) {
	d := 3 * time.Second
	if l.h.long {
		d = time.Minute
	}
	end := time.Now().Add(d)
	tick := time.NewTicker(gust)
	defer tick.Stop()
	said = map[types.UID]string{}
	for ; time.Now().Before(end); <-tick.C {
		n++
		if err := l.writeAll(ctx, strconv.Itoa(n), said); err != nil {
			return n, said, err
		}
	}
	return n, said, nil
}

func (l *life) keeps(ctx context.Context, said map[types.UID]string) error {
	s, err := l.h.snapshot(ctx, l.namespace)
	for _, key := range s.keys() {
		o := s[key]
		if want := said[o.GetUID()]; want != "" && (o.GetLabels()[prefix+"storm"] != want || o.GetAnnotations()[prefix+"storm"] != want) {
			return fmt.Errorf("a user's write to %s is lost: labels %v, annotations %v, want %s in both", key, o.GetLabels(), o.GetAnnotations(), want)
		}
	}
	return err
}

func (l *life) writeAll(ctx context.Context, value string, said map[types.UID]string) error {
	s, err := l.h.snapshot(ctx, l.namespace)
	if err != nil {
		return err
	}
	mine := map[string]any{prefix + "storm": value}
	for _, o := range s {
		err := l.h.patch(ctx, &o, map[string]any{"metadata": map[string]any{"labels": mine, "annotations": mine}})
		if client.IgnoreNotFound(err) != nil {
			return err
		}
		if err == nil {
			said[o.GetUID()] = value
		}
	}
	return nil
}

// patch changes an object as it is read here, whatever has become of it, unless it is another by now.
func (h *harness) patch(ctx context.Context, o *unstructured.Unstructured, change map[string]any) error {
	b, err := json.Marshal(change)
	if err != nil {
		return err
	}
	return h.client.Patch(ctx, o.DeepCopy(), client.RawPatch(types.MergePatchType, b))
}

func keyOf(o client.Object) types.NamespacedName { return client.ObjectKeyFromObject(o) }
