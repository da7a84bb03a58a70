package rest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/polder-kaas/polder/internal/apierror"
)

// Problem is what went wrong, as RFC 9457 has it.
type Problem struct {
	Type   string         `json:"type" doc:"about:blank: title and status say what kind of problem it is."`
	Title  string         `json:"title" doc:"The status in words."`
	Status int            `json:"status" doc:"The status of the answer."`
	Reason string         `json:"reason,omitempty" doc:"What kind of problem, for programs, as Kubernetes names it." example:"AlreadyExists"`
	Detail string         `json:"detail,omitempty" doc:"What is wrong, and what to do, for people."`
	Errors []ProblemField `json:"errors,omitempty" nullable:"false" doc:"What is wrong with single fields."`

	header http.Header
}

// ProblemField is what is wrong with one field.
type ProblemField struct {
	Location string `json:"location,omitempty" doc:"The field." example:"spec.workers[0].replicas"`
	Message  string `json:"message" doc:"What is wrong with it."`
}

var (
	_ huma.StatusError       = (*Problem)(nil)
	_ huma.HeadersError      = (*Problem)(nil)
	_ huma.ContentTypeFilter = (*Problem)(nil)
)

// Error is what is wrong.
func (p *Problem) Error() string { return p.Detail }

// GetStatus is the status of the answer.
func (p *Problem) GetStatus() int { return p.Status }

// GetHeaders are those of the answer.
func (p *Problem) GetHeaders() http.Header { return p.header }

// ContentType is that of problems.
func (p *Problem) ContentType(string) string { return "application/problem+json" }

// write writes it where huma does not.
func (p *Problem) write(w http.ResponseWriter) {
	for name, values := range p.header {
		w.Header()[name] = values
	}
	w.Header().Set("Content-Type", p.ContentType(""))
	w.WriteHeader(p.Status)
	_ = json.NewEncoder(w).Encode(p) // the client may be gone
}

// WriteProblem answers with a problem, for what is in front of the API.
func WriteProblem(w http.ResponseWriter, status int, detail string) {
	newProblem(status, detail).write(w)
}

func newProblem(status int, detail string) *Problem {
	return &Problem{Type: "about:blank", Title: http.StatusText(status), Status: status, Detail: oneLine(detail)}
}

func problemf(status int, format string, args ...any) *Problem {
	return newProblem(status, fmt.Sprintf(format, args...))
}

// oneLine makes one line of what may quote somebody's input.
func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

func unauthorized(detail string) *Problem {
	p := newProblem(http.StatusUnauthorized, detail)
	p.header = http.Header{"Www-Authenticate": {`Bearer realm="polder"`}}
	return p
}

// What huma finds wrong with a request is said in the same form. The variable is huma's way of asking for it.
func init() { //nolint:gochecknoinits // it must be set before the first API is made, and never again
	huma.NewError = func(status int, detail string, errs ...error) huma.StatusError {
		p := newProblem(status, detail)
		for _, err := range errs {
			var d huma.ErrorDetailer
			switch {
			case err == nil:
			case errors.As(err, &d):
				e := d.ErrorDetail()
				p.Errors = append(p.Errors, ProblemField{Location: e.Location, Message: oneLine(e.Message)})
			default:
				p.Errors = append(p.Errors, ProblemField{Message: oneLine(err.Error())})
			}
		}
		return p
	}
}

// explain makes a problem of what the plane, or a client of it, returned.
func explain(err error) error {
	var p *Problem
	var status apierrors.APIStatus
	switch {
	case err == nil:
		return nil
	case errors.As(err, &p):
		return p
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		p := newProblem(http.StatusServiceUnavailable, "the plane did not answer in time; try again")
		p.header = http.Header{"Retry-After": {"1"}}
		return p
	case !errors.As(err, &status):
		return problemf(http.StatusBadGateway, "the plane could not be asked: %v", err)
	}
	return explainStatus(status.Status())
}

func explainStatus(s metav1.Status) *Problem {
	if s.Code == http.StatusUnauthorized {
		return unauthorized("the plane does not believe this token: it is wrong, or it has ended; polder login gets another")
	}
	code := int(s.Code)
	if code < http.StatusBadRequest || code > 599 { //nolint:mnd // as HTTP has it
		code = http.StatusInternalServerError
	}
	p := newProblem(code, apierror.TrimDenialPrefix(s.Message))
	p.Reason = string(s.Reason)
	if m, ok := apierror.ReadMissingRight(s); ok {
		where := "; an admin of the tenant can give you another role"
		if m.Namespace == "" {
			where = "; only operators of the plane may"
		}
		p.Detail = oneLine(fmt.Sprintf("%s may not %s %s%s", m.User, m.Verb, m.Resource, where))
	}
	for _, c := range apierror.Causes(s) {
		p.Errors = append(p.Errors, ProblemField{Location: c.Field, Message: oneLine(c.Message)})
	}
	if s.Details != nil && s.Details.RetryAfterSeconds > 0 {
		p.header = http.Header{"Retry-After": {strconv.Itoa(int(s.Details.RetryAfterSeconds))}}
	}
	return p
}
