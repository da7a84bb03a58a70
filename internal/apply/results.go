package apply

import (
	"cmp"
	"errors"
	"slices"
)

// IsPending says whether all results that failed need only time.
func IsPending(results []Result) bool {
	return !slices.ContainsFunc(results, func(r Result) bool { return r.Err != nil && !errors.Is(r.Err, ErrPending) })
}

// JoinErrors joins the errors of all results, or returns nil. The joined error is pending, or refused, if all of
// them are.
func JoinErrors(results []Result) error {
	var failed failures
	for _, r := range results {
		if r.Err != nil {
			failed = append(failed, r.Err)
		}
	}
	return failed.sortedOrNil()
}

// failures is a list of errors that is one kind of error only if all of them are.
type failures []error

// sortedOrNil sorts errors that need more than time to the front, where they are not cut off.
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
