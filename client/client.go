// Package client is a Go client of the REST API: clusters, tenants and what belongs to them, without Kubernetes.
//
// What is in client.gen.go is made of the published document, docs/reference/openapi.json. Its kinds are those of
// package v1alpha1.
package client

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
)

// New makes a client for the API at a URL, which ends with /v1, and the token that a function returns for each request.
// Without further options it uses http.DefaultClient.
func New(url string, token func(context.Context) (string, error), options ...ClientOption) (*ClientWithResponses,
	error) {
	authorize := func(ctx context.Context, r *http.Request) error {
		t, err := token(ctx)
		if err != nil {
			return err
		}
		r.Header.Set("Authorization", "Bearer "+t)
		return nil
	}
	return NewClientWithResponses(trimVersion(url), append([]ClientOption{WithRequestEditorFn(authorize)}, options...)...)
}

// trimVersion leaves out /v1, which all paths have.
func trimVersion(url string) string {
	const version = "/v1"
	for len(url) > 0 && url[len(url)-1] == '/' {
		url = url[:len(url)-1]
	}
	if n := len(url) - len(version); n >= 0 && url[n:] == version {
		return url[:n]
	}
	return url
}

// maxProblem is how much of a refusal is read.
const maxProblem = 1 << 20

// ReadProblem returns why a request was refused as an error, and nil if it was not. Of an answer whose body was read
// already, give the body; else nil.
func ReadProblem(res *http.Response, body []byte) error {
	if res.StatusCode < http.StatusBadRequest {
		return nil
	}
	if body == nil {
		var err error
		if body, err = io.ReadAll(io.LimitReader(res.Body, maxProblem)); err != nil {
			return err
		}
	}
	p := &Problem{}
	if err := json.Unmarshal(body, p); err != nil || p.Status == 0 {
		return fmt.Errorf("%s: the answer is none of this API", res.Status)
	}
	return p
}

// Error is what is wrong, in the words of the plane.
func (p *Problem) Error() string {
	if p.Detail == "" {
		return p.Title
	}
	return p.Detail
}
