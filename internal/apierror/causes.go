package apierror

import (
	"regexp"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Cause is one thing that is wrong with a request.
type Cause struct {
	Field   string // empty if it is none of one field
	Message string
}

// invalidValuePrefix is how an API server begins what is wrong with a value; of a whole object it says no more than
// that it is one.
var invalidValuePrefix = regexp.MustCompile(`^Invalid value: (("object"|"array"|"map"): )?`)

// uncheckedRulesMessage is how the API server says that it stopped at what is wrong.
const uncheckedRulesMessage = "some validation rules were not checked because the object was invalid"

// inBodyPattern is how the API server names a field once more.
var inBodyPattern = regexp.MustCompile(`[^ ]+ in body `)

// Causes returns what is wrong, if the server has said more than one sentence about all of it. They are the server's
// words, without what it says of itself.
func Causes(s metav1.Status) []Cause {
	if s.Details == nil {
		return nil
	}
	var out []Cause
	for _, c := range s.Details.Causes {
		if strings.Contains(c.Message, uncheckedRulesMessage) && len(s.Details.Causes) > 1 {
			continue // it goes without saying
		}
		text := TrimDenialPrefix(invalidValuePrefix.ReplaceAllString(c.Message, ""))
		cause := Cause{Field: c.Field, Message: inBodyPattern.ReplaceAllString(text, "it ")}
		if cause.Field == "<nil>" {
			cause.Field = ""
		}
		out = append(out, cause)
	}
	return out
}

// TrimDenialPrefix leaves out which part of an API server has refused something.
func TrimDenialPrefix(message string) string {
	for _, before := range []string{"denied request: ", "denied the request: "} {
		if _, text, found := strings.Cut(message, before); found {
			message = text
		}
	}
	return message
}

// MissingRight is what somebody lacks a right to.
type MissingRight struct {
	User, Verb, Resource string
	Namespace            string // empty: in all of them
}

// forbiddenPattern is how an API server says that somebody lacks a right.
var forbiddenPattern = regexp.MustCompile(
	`User "([^"]*)" cannot (\S+) resource "([^"]*)" in API group "([^"]*)"(?: in the namespace "([^"]*)"| at the cluster scope)?`,
)

// ReadMissingRight returns which right is missing, if that is why a request was refused.
func ReadMissingRight(s metav1.Status) (MissingRight, bool) {
	m := forbiddenPattern.FindStringSubmatch(s.Message)
	if s.Reason != metav1.StatusReasonForbidden || m == nil {
		return MissingRight{}, false
	}
	return MissingRight{User: m[1], Verb: m[2], Resource: m[3], Namespace: m[5]}, true
}
