package reconciletest

import (
	"context"
	"fmt"
	"strings"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// expireAfter is after how many events watches expire.
var expireAfter = []int{1, 3, 10}

func staleCases(h *harness) []testCase {
	delay := time.Second
	if h.fullDurations {
		delay = 5 * time.Second
	}
	first := []testCase{
		{"deletes carry UIDs", h.expectGuardedDeletes},
		h.staleCase("all kinds are late", watchFault{delay: delay}),
		h.staleCase("every event comes twice", watchFault{repeat: true}),
	}
	var more []testCase
	for _, r := range h.resources() {
		more = append(more, h.staleCase(r+" are late", watchFault{delay: delay, resource: r}))
	}
	for _, n := range expireAfter {
		more = append(more, h.staleCase(fmt.Sprintf("watches expire after %d", n), watchFault{expireAfter: n}))
	}
	return append(first, h.sample(more, 2)...)
}

// resources are those of the subject's kinds, as they are in the paths of requests.
func (h *harness) resources() (out []string) {
	for _, k := range h.subject.Kinds {
		gvk, err := apiutil.GVKForObject(k, h.api.Scheme)
		if err != nil {
			continue // the baseline would have failed
		}
		if m, err := h.client.RESTMapper().RESTMapping(gvk.GroupKind(), gvk.Version); err == nil {
			out = append(out, m.Resource.Resource)
		}
	}
	return out
}

func (h *harness) staleCase(name string, f watchFault) testCase {
	return testCase{name, func(ctx context.Context) (string, error) {
		p := faultPlan{watches: f}
		l, err := h.runScenario(ctx, h.subject.Timeout+10*f.delay, p, p)
		if err != nil {
			return "", fmt.Errorf("%s: %w", name, err)
		}
		return fmt.Sprintf("%d writes", len(l.process.transport.listWrites())), nil
	}}
}

// expectGuardedDeletes checks that what the subject deletes is the object it has seen, and not another that has its
// name by now.
func (h *harness) expectGuardedDeletes(context.Context) (string, error) {
	if len(h.baseline.unguardedDeletes) > 0 {
		return "", fmt.Errorf("deleted by name alone, so whatever has it by then: %s",
			strings.Join(h.baseline.unguardedDeletes, ", "))
	}
	return "", nil
}
