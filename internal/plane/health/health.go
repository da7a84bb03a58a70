// Package health decides who sees what of the plane's health checks.
package health

import (
	"io"
	"net/http"

	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"
)

// HideChecks answers anonymous requests for /livez and /readyz with the status alone. Names of checks, which say what
// the plane is made of and which part of it fails, are for those who have logged in. It must be behind authentication.
func HideChecks(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		u, ok := request.UserFrom(r.Context())
		if (r.URL.Path != "/livez" && r.URL.Path != "/readyz") || ok && u.GetName() != user.Anonymous {
			next.ServeHTTP(w, r)
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
