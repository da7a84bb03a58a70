package reconciletest

import (
	"context"
	"fmt"
)

// mostLost is the rarest loss that is tried: every twentieth event.
const mostLost = 20

func missedCases(h *harness) []testCase {
	var out []testCase
	for k := range mostLost {
		out = append(out, testCase{fmt.Sprintf("every %d", k+1), func(ctx context.Context) (string, error) {
			_, err := h.wholeLife(ctx, h.subject.Timeout, plan{lose: k + 1}, plan{})
			return "", err
		}})
	}
	if h.full {
		return out
	}
	return append(out[:1:1], h.sample([]testCase{out[1], out[2], out[4], out[mostLost-1]}, 1)...)
}
