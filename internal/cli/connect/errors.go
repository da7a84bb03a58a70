package connect

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/polder-kaas/polder/internal/apierror"
	"github.com/polder-kaas/polder/internal/cli/output"
	"github.com/polder-kaas/polder/internal/program/exit"
)

// forbiddenPattern is how an API server says that somebody lacks a right.
var forbiddenPattern = regexp.MustCompile(
	`User "([^"]*)" cannot (\S+) resource "([^"]*)" in API group "([^"]*)"(?: in the namespace "([^"]*)"| at the cluster scope)?`,
)

// invalidValuePrefix is how an API server begins what is wrong with a value; of a whole object it says no more than
// that it is one.
var invalidValuePrefix = regexp.MustCompile(`^Invalid value: (("object"|"array"|"map"): )?`)

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
	return fmt.Errorf("the plane at %s does not answer: %w; check the address in your kubeconfig; for a plane on this machine, see: polder status and polder up", a.Address, err)
}

// explainForbidden is either a missing right, or a refusal of what was wanted.
func (a *Access) explainForbidden(doing string, s metav1.Status) error {
	m := forbiddenPattern.FindStringSubmatch(s.Message)
	if m == nil {
		return fmt.Errorf("%s: the plane refuses it: %s", doing, trimDenialPrefix(s.Message))
	}
	where := "in all namespaces"
	if m[5] != "" {
		where = "in namespace " + m[5]
	}
	return fmt.Errorf("%s: %s may not %s %s %s; ask the plane's operator for the right, or choose another namespace with -n", doing, m[1], m[2], m[3], where)
}

// isUnknownKind tells a missing kind from a missing object: only of the latter an API server speaks itself, by name.
func isUnknownKind(err error, s metav1.Status) bool {
	return s.Reason == metav1.StatusReasonNotFound &&
		(s.Details == nil || s.Details.Name == "" || apierror.IsUnexpectedResponse(err))
}

// uncheckedRulesMessage is how the API server says that it stopped at what is wrong.
const uncheckedRulesMessage = "some validation rules were not checked because the object was invalid"

// inBodyPattern is how the API server names a field once more.
var inBodyPattern = regexp.MustCompile(`[^ ]+ in body `)

// describeCauses are what is wrong, each in a line of its own if there are several or a field is known.
func describeCauses(s metav1.Status) string {
	if s.Details == nil || len(s.Details.Causes) == 0 {
		return " " + trimDenialPrefix(s.Message)
	}
	var lines []string
	for _, c := range s.Details.Causes {
		if strings.Contains(c.Message, uncheckedRulesMessage) && len(s.Details.Causes) > 1 {
			continue // it goes without saying
		}
		text := output.Sanitize(trimDenialPrefix(invalidValuePrefix.ReplaceAllString(c.Message, "")))
		text = inBodyPattern.ReplaceAllString(text, "it ")
		if c.Field != "" && c.Field != "<nil>" {
			text = c.Field + ": " + text
		}
		lines = append(lines, "\n  "+text)
	}
	return strings.Join(lines, "")
}

// trimDenialPrefix leaves out which part of an API server has refused something.
func trimDenialPrefix(message string) string {
	for _, before := range []string{"denied request: ", "denied the request: "} {
		if _, text, found := strings.Cut(message, before); found {
			message = text
		}
	}
	return output.Sanitize(message)
}
