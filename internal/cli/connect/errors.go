package connect

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/polder-kaas/polder/internal/apierror"
	"github.com/polder-kaas/polder/internal/cli/output"
	"github.com/polder-kaas/polder/internal/cli/restplane"
	"github.com/polder-kaas/polder/internal/program/exit"
)

// Explain says in clear words why the plane did not do something, and with which exit code to end. doing is what, as in
// `making cluster "a"`; err is what a client of the plane returned, and nothing if that is nil.
func (a *Access) Explain(doing string, err error) error {
	var transport *url.Error
	var status apierrors.APIStatus
	switch {
	case err == nil:
		return nil
	case errors.Is(err, context.Canceled):
		return exit.Errorf(exit.Interrupted, "%s was interrupted", doing)
	case errors.As(err, &transport):
		return a.explainUnreachable(transport.Err)
	case !errors.As(err, &status):
		return fmt.Errorf("%s: %w", doing, err)
	}
	s := status.Status()
	switch {
	case s.Reason == restplane.ReasonNoCounterpart:
		return exit.Errorf(exit.Usage, "%s needs the plane's Kubernetes API, and %s is its REST API: %s", doing, a.Address,
			s.Message)
	case isUnknownKind(err, s):
		return fmt.Errorf("the plane at %s does not know the kinds of Polder: it is another cluster, its polderd is older than this polder, or something in front of it answers in its place", a.Address)
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err):
		return exit.Errorf(exit.Usage, "%s: the plane refuses it:%s", doing, describeCauses(s))
	case apierrors.IsForbidden(err):
		return a.explainForbidden(doing, s)
	case apierrors.IsUnauthorized(err):
		return fmt.Errorf("the plane at %s does not know who you are: your certificate or token is wrong or has ended; ask the plane's operator for a new kubeconfig", a.Address)
	case apierrors.IsConflict(err):
		return fmt.Errorf("%s: somebody else changed it at the same time; look at it and try again", doing)
	}
	return fmt.Errorf("%s: the plane at %s says: %s", doing, a.Address, trimDenialPrefix(s.Message))
}

// explainUnreachable knows how to start a plane on this machine, and nothing about others.
func (a *Access) explainUnreachable(err error) error {
	if a.Local {
		return fmt.Errorf("the plane at %s does not answer: %w; see how it is with: %s, start it with: %s", a.Address, err,
			a.Globals.Hint("status"), a.Globals.Hint("up"))
	}
	if a.Globals.server != "" {
		return fmt.Errorf("the plane at %s does not answer: %w; check the address that --server has", a.Address, err)
	}
	return fmt.Errorf("the plane at %s does not answer: %w; check the address in your kubeconfig; for a plane on this machine, see: polder status and polder up", a.Address, err)
}

// explainForbidden is either a missing right, or a refusal of what was wanted.
func (a *Access) explainForbidden(doing string, s metav1.Status) error {
	m, ok := apierror.ReadMissingRight(s)
	if !ok {
		return fmt.Errorf("%s: the plane refuses it: %s", doing, trimDenialPrefix(s.Message))
	}
	where := "in all namespaces"
	if m.Namespace != "" {
		where = "in namespace " + m.Namespace
	}
	return fmt.Errorf("%s: %s may not %s %s %s; ask the plane's operator for the right, or choose another namespace with -n", doing, m.User, m.Verb, m.Resource, where)
}

// isUnknownKind tells a missing kind from a missing object: only of the latter an API server speaks itself, by name.
func isUnknownKind(err error, s metav1.Status) bool {
	return s.Reason == metav1.StatusReasonNotFound &&
		(s.Details == nil || s.Details.Name == "" || apierror.IsUnexpectedResponse(err))
}

// describeCauses are what is wrong, each in a line of its own if there are several or a field is known.
func describeCauses(s metav1.Status) string {
	causes := apierror.Causes(s)
	if len(causes) == 0 {
		return " " + trimDenialPrefix(s.Message)
	}
	var lines []string
	for _, c := range causes {
		text := output.Sanitize(c.Message)
		if c.Field != "" {
			text = c.Field + ": " + text
		}
		lines = append(lines, "\n  "+text)
	}
	return strings.Join(lines, "")
}

// trimDenialPrefix leaves out which part of an API server has refused something.
func trimDenialPrefix(message string) string {
	return output.Sanitize(apierror.TrimDenialPrefix(message))
}
