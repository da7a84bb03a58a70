package restplane

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/polder-kaas/polder/client"
)

// ReasonNoCounterpart is why something is refused that the REST API does not have.
const ReasonNoCounterpart metav1.StatusReason = "NoCounterpart"

// errChanged is why something is in conflict.
var errChanged = errors.New("somebody else has changed it meanwhile")

// maxAnswer is how much of an answer is read.
const maxAnswer = 64 << 20

// read reads an answer of the REST API into a value, if there is one. What is wrong is an error as a client of
// Kubernetes knows it.
func (c *call) read(ctx context.Context, res *http.Response, err error, into any) error {
	if err != nil {
		return err
	}
	defer res.Body.Close() //nolint:errcheck // read only
	c.header = res.Header
	b, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer+1))
	if err != nil {
		return err
	}
	if len(b) > maxAnswer {
		return errors.New("its answer is too large")
	}
	if res.StatusCode >= http.StatusMultipleChoices {
		var p *client.Problem
		if errors.As(client.ReadProblem(res, b), &p) {
			return c.explain(ctx, p)
		}
		return apierrors.NewGenericServerResponse(res.StatusCode, c.verb, c.groupResource(), c.name,
			"the answer is none of the REST API", 0, true)
	}
	if into == nil {
		return nil
	}
	if err := utiljson.Unmarshal(b, into); err != nil {
		return fmt.Errorf("its answer is none of the REST API: %w", err)
	}
	return nil
}

// missingRightPattern is how the REST API says that somebody lacks a right. Of a server that says it in another way,
// people read its own sentence.
var missingRightPattern = regexp.MustCompile(`^(.+) may not (get|list|create|update|patch|delete) (\S+); `)

// explain makes of a problem what the Kubernetes API would have said.
func (c *call) explain(ctx context.Context, p *client.Problem) error {
	switch m := missingRightPattern.FindStringSubmatch(p.Detail); {
	case p.Status == http.StatusNotFound:
		return c.notFound(ctx)
	case p.Status == http.StatusForbidden && m != nil:
		return c.missingRight(m[1])
	}
	s := metav1.Status{
		Status: metav1.StatusFailure,
		Code:   int32(p.Status), Reason: metav1.StatusReason(p.Reason), Message: cmp.Or(p.Detail, p.Title), //nolint:gosec // a status of HTTP
		Details: &metav1.StatusDetails{Name: c.name, Group: c.group, Kind: c.groupResource().Resource},
	}
	if p.Status == http.StatusPreconditionFailed {
		s.Code, s.Reason = http.StatusConflict, metav1.StatusReasonConflict
	}
	if s.Reason == "" {
		s.Reason = reasons[int(s.Code)]
	}
	for _, e := range p.Errors {
		s.Details.Causes = append(s.Details.Causes, metav1.StatusCause{
			Type: metav1.CauseTypeFieldValueInvalid, Field: e.Location, Message: e.Message,
		})
	}
	if seconds, err := strconv.ParseInt(c.header.Get("Retry-After"), 10, 32); err == nil {
		s.Details.RetryAfterSeconds = int32(seconds)
	}
	return &apierrors.StatusError{ErrStatus: s}
}

// reasons are those of Kubernetes for problems that say none.
var reasons = map[int]metav1.StatusReason{
	http.StatusBadRequest: metav1.StatusReasonBadRequest, http.StatusUnauthorized: metav1.StatusReasonUnauthorized,
	http.StatusForbidden: metav1.StatusReasonForbidden, http.StatusConflict: metav1.StatusReasonConflict,
	http.StatusMethodNotAllowed:      metav1.StatusReasonMethodNotAllowed,
	http.StatusRequestEntityTooLarge: metav1.StatusReasonRequestEntityTooLarge,
	http.StatusUnsupportedMediaType:  metav1.StatusReasonUnsupportedMediaType,
	http.StatusUnprocessableEntity:   metav1.StatusReasonInvalid,
	http.StatusTooManyRequests:       metav1.StatusReasonTooManyRequests,
	http.StatusInternalServerError:   metav1.StatusReasonInternalError,
	http.StatusServiceUnavailable:    metav1.StatusReasonServiceUnavailable,
	http.StatusGatewayTimeout:        metav1.StatusReasonTimeout,
}

// notFound tells a tenant that somebody does not belong to, of which Kubernetes says that it is forbidden, from one
// that has no such object.
func (c *call) notFound(ctx context.Context) error {
	if c.resource == "tenants" {
		return c.forbidden(ctx)
	}
	if c.needsTenant() {
		res, err := c.api.GetTenant(ctx, c.tenant())
		if err != nil {
			return err
		}
		_ = res.Body.Close() // only its status counts
		if res.StatusCode == http.StatusNotFound {
			return c.forbidden(ctx)
		}
	}
	return apierrors.NewNotFound(c.groupResource(), c.name)
}

// forbidden is that the caller has no right to this.
func (c *call) forbidden(ctx context.Context) error {
	who, err := c.self(ctx)
	if err != nil {
		return err
	}
	return c.missingRight(who.Username)
}

// missingRight is forbidden in the words of Kubernetes.
func (c *call) missingRight(user string) error {
	where := "at the cluster scope"
	if c.namespace != "" {
		where = fmt.Sprintf("in the namespace %q", c.namespace)
	}
	return apierrors.NewForbidden(c.groupResource(), c.name,
		fmt.Errorf("User %q cannot %s resource %q in API group %q %s", user, c.verb, c.resource, c.group, where)) //nolint:staticcheck // the words of Kubernetes
}

// refuse is for what customers have no rights to: the REST API does not have it at all.
func (c *call) refuse(ctx context.Context) (any, error) { return nil, c.forbidden(ctx) }

// noCounterpart refuses what the REST API does not have.
func (c *call) noCounterpart(why string) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure,
		Code:   http.StatusNotImplemented, Reason: ReasonNoCounterpart,
		Message: cmp.Or(why, "the REST API has nothing for it; use the kubeconfig that the plane's operator has"),
	}}
}
