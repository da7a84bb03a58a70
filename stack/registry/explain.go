package registry

import (
	"errors"
	"fmt"
	"net/http"

	"oras.land/oras-go/v2/errdef"
	"oras.land/oras-go/v2/registry/remote/auth"
	"oras.land/oras-go/v2/registry/remote/errcode"

	"github.com/polder-kaas/polder/stack/fetch"
)

// explainer makes one sentence of what went wrong with a registry, without secrets.
type explainer struct {
	reference  Reference
	credential auth.Credential
}

// explainedError is such a sentence, with its cause for errors.Is.
type explainedError struct {
	text  string
	cause error
}

func (f *explainedError) Error() string { return f.text }

// Unwrap is the cause.
func (f *explainedError) Unwrap() error { return f.cause }

// explain makes sentences of errors of the library; those of this package are sentences already.
func (e explainer) explain(err error) error {
	var answer *errcode.ErrorResponse
	switch {
	case err == nil:
		return nil
	case errors.As(err, &answer):
		return e.explainStatus(answer)
	case errors.Is(err, auth.ErrBasicCredentialNotFound):
		return e.explainCredentials()
	case errors.Is(err, errdef.ErrNotFound):
		return &explainedError{"it is not in " + e.reference.Location(), ErrNotFound}
	case errors.Is(err, errdef.ErrTooManyPages):
		return &explainedError{
			fmt.Sprintf("registry %s lists its tags on more than %d pages", e.reference.Host, maxPages), errdef.ErrTooManyPages,
		}
	}
	err = fetch.Explain("registry "+e.reference.Host, err)
	if text := redact(err.Error(), e.credential); text != err.Error() {
		return &explainedError{text, nil} // the cause would show what was taken out
	}
	return err
}

// explainStatus makes a sentence of an answer that is an error. What the server says about it is shown, as
// only that may tell which quota or which rule it is.
func (e explainer) explainStatus(answer *errcode.ErrorResponse) error {
	cause := &fetch.StatusError{Host: e.reference.Host, Code: answer.StatusCode}
	text := "registry " + cause.Error()
	switch answer.StatusCode {
	case http.StatusUnauthorized:
		return e.explainCredentials()
	case http.StatusForbidden:
		text = fmt.Sprintf("registry %s does not allow this (403)", e.reference.Host)
	case http.StatusNotFound:
		return &explainedError{"there is no " + e.reference.Location(), ErrNotFound}
	}
	if len(answer.Errors) > 0 {
		text += ": " + fetch.Sanitize(redact(answer.Errors.Error(), e.credential))
	}
	return &explainedError{text, cause}
}

func (e explainer) explainCredentials() error {
	if e.credential == auth.EmptyCredential {
		return &explainedError{
			fmt.Sprintf("registry %s asks for credentials (401); give a user and a password", e.reference.Host), ErrCredentials,
		}
	}
	return &explainedError{
		fmt.Sprintf("registry %s refuses these credentials (401); check the user and the password", e.reference.Host),
		ErrCredentials,
	}
}
