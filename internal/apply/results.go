package apply

import (
	"cmp"
	"errors"
	"slices"
)

// Pending says that all that failed needs only time.
func Pending(results []Result) bool {
	return !slices.ContainsFunc(results, func(r Result) bool { return r.Err != nil && !errors.Is(r.Err, ErrPending) })
}

// Failed is an error with all errors of results, or nil. It is pending, or refused, if all are.
func Failed(results []Result) error {
	var failed failures
	for _, r := range results {
		if r.Err != nil {
			failed = append(failed, r.Err)
		}
	}
	return failed.orNil()
}

type failures []error

// orNil puts first what needs more than time.
func (f failures) orNil() error {
	if len(f) == 0 {
		return nil
	}
	slices.SortStableFunc(f, func(a, b error) int {
		return cmp.Compare(waits(a), waits(b))
	})
	return f
}

func waits(err error) int {
	if errors.Is(err, ErrPending) {
		return 1
	}
	return 0
}

func (f failures) Error() string { return list(f) }

func (f failures) Is(target error) bool {
	return !slices.ContainsFunc(f, func(err error) bool { return !errors.Is(err, target) })
}
