package reconciletest

import (
	"context"
	"fmt"
)

// maxLossInterval is the rarest loss that is tested: every twentieth event.
const maxLossInterval = 20

func missedCases(h *harness) []testCase {
	var out []testCase
	for k := range maxLossInterval {
		out = append(out, testCase{fmt.Sprintf("every %d", k+1), func(ctx context.Context) (string, error) {
			_, err := h.runScenario(ctx, h.subject.Timeout, faultPlan{loseEvery: k + 1}, faultPlan{})
			return "", err
		}})
	}
	if h.allCases {
		return out
	}
	return append(out[:1:1], h.sample([]testCase{out[1], out[2], out[4], out[maxLossInterval-1]}, 1)...)
}
