package apply

import (
	"cmp"
	"errors"
	"slices"
)

// IsPending says that all that failed needs only time.
func IsPending(results []Result) bool {
	return !slices.ContainsFunc(results, func(r Result) bool { return r.Err != nil && !errors.Is(r.Err, ErrPending) })
}

// JoinErrors is an error with all errors of results, or nil. It is pending, or refused, if all are.
func JoinErrors(results []Result) error {
	var failed failures
	for _, r := range results {
		if r.Err != nil {
			failed = append(failed, r.Err)
		}
	}
	return failed.sortedOrNil()
}

type failures []error

// sortedOrNil puts first what needs more than time.
func (f failures) sortedOrNil() error {
	if len(f) == 0 {
		return nil
	}
	slices.SortStableFunc(f, func(a, b error) int {
		return cmp.Compare(pendingRank(a), pendingRank(b))
	})
	return f
}

func pendingRank(err error) int {
	if errors.Is(err, ErrPending) {
		return 1
	}
	return 0
}

func (f failures) Error() string { return formatErrors(f) }

func (f failures) Is(target error) bool {
	return !slices.ContainsFunc(f, func(err error) bool { return !errors.Is(err, target) })
}
