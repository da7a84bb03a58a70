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
	at         Reference
	credential auth.Credential
}

// failure is such a sentence, with its cause for errors.Is.
type failure struct {
	text  string
	cause error
}

func (f *failure) Error() string { return f.text }

// Unwrap is the cause.
func (f *failure) Unwrap() error { return f.cause }

// explain takes errors as they come from the library; those of this package are sentences already.
func (e explainer) explain(err error) error {
	var answer *errcode.ErrorResponse
	switch {
	case err == nil:
		return nil
	case errors.As(err, &answer):
		return e.status(answer)
	case errors.Is(err, auth.ErrBasicCredentialNotFound):
		return e.credentials()
	case errors.Is(err, errdef.ErrNotFound):
		return &failure{"it is not in " + e.at.Location(), ErrNotFound}
	case errors.Is(err, errdef.ErrTooManyPages):
		return &failure{fmt.Sprintf("registry %s lists its tags on more than %d pages", e.at.Host, maxPages), errdef.ErrTooManyPages}
	}
	err = fetch.Explain("registry "+e.at.Host, err)
	if text := redact(err.Error(), e.credential); text != err.Error() {
		return &failure{text, nil} // the cause says what was taken out
	}
	return err
}

// status is a sentence for an answer that is an error. What the server says about it is shown, as
// only that may tell which quota or which rule it is.
func (e explainer) status(answer *errcode.ErrorResponse) error {
	cause := &fetch.StatusError{Host: e.at.Host, Code: answer.StatusCode}
	text := "registry " + cause.Error()
	switch answer.StatusCode {
	case http.StatusUnauthorized:
		return e.credentials()
	case http.StatusForbidden:
		text = fmt.Sprintf("registry %s does not allow this (403)", e.at.Host)
	case http.StatusNotFound:
		return &failure{"there is no " + e.at.Location(), ErrNotFound}
	}
	if len(answer.Errors) > 0 {
		text += ": " + fetch.Clean(redact(answer.Errors.Error(), e.credential))
	}
	return &failure{text, cause}
}

func (e explainer) credentials() error {
	if e.credential == auth.EmptyCredential {
		return &failure{fmt.Sprintf("registry %s asks for credentials (401); give a user and a password", e.at.Host), ErrCredentials}
	}
	return &failure{fmt.Sprintf("registry %s refuses these credentials (401); check the user and the password", e.at.Host), ErrCredentials}
}
