package runtimehooks

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"

	"k8s.io/apimachinery/pkg/runtime"
	runtimehooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// maxBody bounds the body of a response; even the patches of a large topology are far
	// smaller.
	maxBody = 20 << 20

	// maxQuote bounds what an error repeats of the body of a response.
	maxQuote = 512
)

// externalTarget is a target on an extension server.
type externalTarget struct {
	server  *server
	err     error  // why there is no server
	handler string // the name without that of the ExtensionConfig
}

func (e externalTarget) call(
	ctx context.Context,
	r *registration,
	_ client.Object,
	request runtimehooksv1.RequestObject,
	response runtimehooksv1.ResponseObject,
) error {
	if e.err != nil {
		return e.err
	}
	return e.server.post(ctx, e.server.url(r.hook, e.handler, r.timeout), request, response)
}

// post sends a request and reads the response to it. All errors but those of our own making are ignorableErrors.
func (s *server) post(ctx context.Context, to *url.URL, request, response runtime.Object) error {
	body, err := json.Marshal(request)
	if err != nil {
		return fmt.Errorf("encoding the request: %w", err)
	}
	post, err := http.NewRequestWithContext(ctx, http.MethodPost, to.String(), bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("making the request: %w", err)
	}
	post.Header.Set("Content-Type", "application/json")
	post.Header.Set("Accept", "application/json")

	got, err := s.http.Do(post)
	if err != nil {
		return ignorableError{fmt.Errorf("sending the request: %w", err)}
	}
	defer got.Body.Close() //nolint:errcheck // the body was read or is not wanted
	if err := readResponse(got, response); err != nil {
		return ignorableError{err}
	}
	return nil
}

// readResponse decodes a good response, and quotes the beginning of any other.
func readResponse(got *http.Response, response runtime.Object) error {
	if got.StatusCode != http.StatusOK {
		var quote bytes.Buffer
		// What could be read is quoted; if nothing could, the status alone says enough.
		_, _ = quote.ReadFrom(io.LimitReader(got.Body, maxQuote))
		return fmt.Errorf("got status %d, want 200: %q", got.StatusCode, quote.String())
	}
	var body bytes.Buffer
	if _, err := body.ReadFrom(io.LimitReader(got.Body, maxBody+1)); err != nil {
		return fmt.Errorf("reading the response: %w", err)
	}
	if body.Len() > maxBody {
		return fmt.Errorf("reading the response: it is larger than %d bytes", maxBody)
	}
	if err := json.Unmarshal(body.Bytes(), response); err != nil {
		return fmt.Errorf("decoding the response: %w", err)
	}
	return nil
}
