package apply

import (
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
)

// ErrPending is matched by errors that need time and nothing else: an object is being deleted, or has to wait for
// another.
var ErrPending = errors.New("not yet")

// ErrRefused is matched by errors that stay until the objects, the rules or the cluster change.
var ErrRefused = errors.New("refused")

type pendingError string

func (p pendingError) Error() string        { return string(p) }
func (p pendingError) Is(target error) bool { return target == ErrPending }

func deletingError(ref Ref) error {
	return pendingError(ref.String() + " is being deleted; it can be applied once it is gone")
}

// notServedError leaves open whether an object exists: the API server does not know its kind, or not yet, or
// somebody else answered in its place.
type notServedError struct {
	ref Ref
	err error
}

func (e *notServedError) Error() string {
	return fmt.Sprintf("the API server does not serve %s, so nobody knows whether it exists; it is looked at again: %v",
		e.ref, e.err)
}

func (e *notServedError) Unwrap() error { return e.err }

// asNotServed turns an answer that does not speak of the object itself into a notServedError.
func asNotServed(ref Ref, err error) error {
	if meta.IsNoMatchError(err) || apierrors.IsNotFound(err) && !isNamespaceMissing(err) {
		return &notServedError{ref, err}
	}
	return err
}

func isNotServed(err error) bool {
	var e *notServedError
	return errors.As(err, &e)
}

type refusal string

func (r refusal) Error() string        { return string(r) }
func (r refusal) Is(target error) bool { return target == ErrRefused }

// Refusef returns an ErrRefused with a formatted text.
func Refusef(format string, args ...any) error { return refusal(fmt.Sprintf(format, args...)) }

// RefusedError has all reasons why a set cannot be applied. It is an ErrRefused.
type RefusedError struct{ Reasons []error }

func (e *RefusedError) Error() string { return formatErrors(e.Reasons) }

// Is says that the error is an ErrRefused.
func (e *RefusedError) Is(target error) bool { return target == ErrRefused }

// maxShownErrors is how many errors are spelled out; nobody reads more at once.
const maxShownErrors = 10

// formatErrors writes errors in one line.
func formatErrors(all []error) string {
	var text []string
	for _, err := range all[:min(maxShownErrors, len(all))] {
		text = append(text, err.Error())
	}
	if more := len(all) - maxShownErrors; more > 0 {
		text = append(text, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(text, "; ")
}
