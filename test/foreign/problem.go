package foreign

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
)

// problem is a refusal.
type problem struct {
	Type   string      `json:"type"`
	Title  string      `json:"title"`
	Status int         `json:"status"`
	Reason string      `json:"reason,omitempty"`
	Detail string      `json:"detail"`
	Errors []wrongPart `json:"errors,omitempty"`

	allow string
}

type wrongPart struct {
	Location string `json:"location,omitempty"`
	Message  string `json:"message"`
}

func problemf(status int, format string, args ...any) *problem {
	detail := strings.Join(strings.Fields(fmt.Sprintf(format, args...)), " ")
	return &problem{Type: "about:blank", Title: http.StatusText(status), Status: status, Detail: detail}
}

func notFound(format string, args ...any) *problem {
	p := problemf(http.StatusNotFound, format, args...)
	p.Reason = "NotFound"
	return p
}

func wrongField(field, message string) *problem {
	p := problemf(http.StatusUnprocessableEntity, "%s: %s", field, message)
	p.Reason, p.Errors = "Invalid", []wrongPart{{field, message}}
	return p
}

func (s *Server) writeProblem(w http.ResponseWriter, p *problem) {
	kind := "application/problem+json"
	if s.is(ProblemType) {
		kind = "application/json"
	}
	if s.is(NoLocation) {
		p.Errors = nil
	}
	w.Header().Set("Content-Type", kind)
	if p.allow != "" {
		w.Header().Set("Allow", p.allow)
	}
	if p.Status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", `Bearer realm="foreign"`)
	}
	w.WriteHeader(p.Status)
	_ = json.NewEncoder(w).Encode(p)
}
