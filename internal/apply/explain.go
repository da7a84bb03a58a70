package apply

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// explainedError is an error of the API server in our words.
type explainedError struct {
	text string
	err  error
}

func (e *explainedError) Error() string { return e.text }
func (e *explainedError) Unwrap() error { return e.err }

// explainError adds to an error which object it is about and, where that is known, what to do.
func explainError(doing string, ref Ref, err error) error {
	if errors.Is(err, ErrPending) || errors.Is(err, ErrRefused) || isNotServed(err) {
		return err // its text has both already
	}
	immutable, others := causeFields(err)
	switch {
	case apierrors.IsConflict(err) || slices.Contains(immutable, "metadata.uid"):
		return &explainedError{ref.String() + " was changed by somebody else at the same moment; it is looked at again", err}
	case len(immutable) > 0:
		return &explainedError{fmt.Sprintf("%s is there and cannot be changed in %s; give it another name in the chart, or let it be made anew with %s",
			ref, strings.Join(immutable, ", "), ref.kubectlCommand("delete")), err}
	case isNamespaceMissing(err):
		return &explainedError{
			fmt.Sprintf("%s has no namespace to be in; let the chart bring Namespace %s, or make it", ref, ref.Namespace), err,
		}
	case ref.Group == "" && ref.Kind == "Secret" && mayQuoteContent(err):
		return &explainedError{redactedMessage(doing, ref, err, others), err}
	}
	return fmt.Errorf("%s %s: %w", doing, ref, err)
}

// causeFields names the fields an error is about: those that cannot be changed, and others.
func causeFields(err error) (immutable, others []string) {
	var s apierrors.APIStatus
	if !errors.As(err, &s) || s.Status().Details == nil {
		return nil, nil
	}
	for _, c := range s.Status().Details.Causes {
		if c.Field == "" {
			continue
		}
		if isImmutableMessage(c.Message) {
			immutable = append(immutable, c.Field)
		} else {
			others = append(others, c.Field)
		}
	}
	return immutable, others
}

// isImmutableMessage knows the words in which API servers and webhooks say that a field cannot be changed: no
// error has a type for it.
func isImmutableMessage(message string) bool {
	return slices.ContainsFunc([]string{"immutable", "updates to ", "cannot change ", "may not change"},
		func(words string) bool {
			return strings.Contains(message, words)
		})
}

func isNamespaceMissing(err error) bool {
	var s apierrors.APIStatus
	return apierrors.IsNotFound(err) && errors.As(err, &s) && s.Status().Details != nil &&
		s.Status().Details.Kind == "namespaces"
}

// mayQuoteContent says whether the text of an error may repeat parts of the object it is about.
func mayQuoteContent(err error) bool {
	var s apierrors.APIStatus
	if !errors.As(err, &s) {
		return false // not an answer of the API server
	}
	switch s.Status().Reason {
	case metav1.StatusReasonInvalid, metav1.StatusReasonBadRequest, metav1.StatusReasonInternalError,
		metav1.StatusReasonUnknown:
		return true
	}
	return false
}

// redactedMessage describes an error about a Secret without the words of the API server.
func redactedMessage(doing string, ref Ref, err error, fields []string) string {
	reason := apierrors.ReasonForError(err)
	if reason == metav1.StatusReasonUnknown {
		reason = "that it cannot be"
	}
	text := fmt.Sprintf("%s %s: the API server says %s", doing, ref, reason)
	if len(fields) > 0 {
		text += ", because of " + strings.Join(fields, ", ")
	}
	return text + "; its words are left out, since they may have secrets in them"
}
