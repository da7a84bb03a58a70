package apply

import (
	"errors"
	"fmt"
	"strings"
)

// ErrPending is what errors are that need time and nothing else: an object is on its way out, or has
// to wait for another.
var ErrPending = errors.New("not yet")

// ErrRefused is what errors are that stay until the objects, the rules or the cluster change.
var ErrRefused = errors.New("refused")

type pending string

func (p pending) Error() string        { return string(p) }
func (p pending) Is(target error) bool { return target == ErrPending }

func deleting(ref Ref) error {
	return pending(ref.String() + " is being deleted; it can be applied once it is gone")
}

type refusal string

func (r refusal) Error() string        { return string(r) }
func (r refusal) Is(target error) bool { return target == ErrRefused }

// Refuse is an ErrRefused in somebody's own words.
func Refuse(format string, args ...any) error { return refusal(fmt.Sprintf(format, args...)) }

// RefusedError has all that keeps a set from being applied. It is an ErrRefused.
type RefusedError struct{ Reasons []error }

func (e *RefusedError) Error() string { return list(e.Reasons) }

// Is tells that it is an ErrRefused.
func (e *RefusedError) Is(target error) bool { return target == ErrRefused }

// shown is how many errors are spelled out; nobody reads more at once.
const shown = 10

// list says errors in one line.
func list(all []error) string {
	var text []string
	for _, err := range all[:min(shown, len(all))] {
		text = append(text, err.Error())
	}
	if more := len(all) - shown; more > 0 {
		text = append(text, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(text, "; ")
}
