// Package health decides who sees what of the plane's health checks.
package health

import (
	"fmt"
	"io"
	"net/http"

	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/request"
)

// Config says who sees the checks, and what they see beyond them.
type Config struct {
	Authorizer authorizer.Authorizer
	// Warnings are what people should know though the plane is ready, each a line; optional.
	Warnings func() []string
}

// HideChecks answers requests for /livez and /readyz with the status alone, unless who asks may read the single checks.
// Their names say what the plane is made of and which part of it fails, and warnings have names that are others'; both
// are for operators. It must be behind authentication.
func HideChecks(next http.Handler, cfg Config) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/livez" && r.URL.Path != "/readyz" {
			next.ServeHTTP(w, r)
			return
		}
		if cfg.mayReadChecks(r) {
			next.ServeHTTP(w, r)
			cfg.writeWarnings(w, r)
			return
		}
		// Without its query: excluding one check after the other would tell which of them fails.
		bare := r.Clone(r.Context())
		bare.URL.RawQuery = ""
		s := &statusWriter{ResponseWriter: w, code: http.StatusOK}
		next.ServeHTTP(s, bare)
		text := "ok"
		if s.code != http.StatusOK {
			text = "not ready\n"
		}
		w.Header().Del("Content-Length")
		w.WriteHeader(s.code)
		_, _ = io.WriteString(w, text) // the client may be gone
	})
}

// mayReadChecks says whether who asks has the right to read one check alone. Everybody may ask for all of them at once.
func (c Config) mayReadChecks(r *http.Request) bool {
	u, ok := request.UserFrom(r.Context())
	if !ok || u.GetName() == user.Anonymous {
		return false
	}
	decision, _, err := c.Authorizer.Authorize(r.Context(),
		authorizer.AttributesRecord{User: u, Verb: "get", Path: r.URL.Path + "/ping"})
	return err == nil && decision == authorizer.DecisionAllow
}

// writeWarnings adds the warnings to a list of all checks, with a mark that means neither ok nor failed.
func (c Config) writeWarnings(w io.Writer, r *http.Request) {
	if r.URL.Path != "/readyz" || !r.URL.Query().Has("verbose") || c.Warnings == nil {
		return
	}
	for _, text := range c.Warnings() {
		_, _ = fmt.Fprintf(w, "[!]%s\n", text) // the client may be gone
	}
}

// statusWriter keeps the status of an answer, and drops the rest.
type statusWriter struct {
	http.ResponseWriter
	code int
	sent bool
}

// WriteHeader keeps the first status.
func (s *statusWriter) WriteHeader(code int) {
	if !s.sent {
		s.code, s.sent = code, true
	}
}

// Write drops a part of the body.
func (s *statusWriter) Write(b []byte) (int, error) {
	s.sent = true
	return len(b), nil
}
