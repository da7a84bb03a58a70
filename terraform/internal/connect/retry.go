package connect

import (
	"context"
	"crypto/tls"
	"errors"
	"net/http"
	"strconv"
	"time"
)

const (
	attempts   = 6
	firstPause = 250 * time.Millisecond
	maxPause   = 30 * time.Second
)

// retry repeats requests that were not answered, or that the plane has no time for. All requests of the provider can be
// repeated: clusters are made with an Idempotency-Key, and changed with If-Match.
type retry struct {
	next  http.RoundTripper
	pause func(context.Context, time.Duration) error
}

var _ http.RoundTripper = (*retry)(nil)

// RoundTrip returns the last answer, whatever it is.
func (r *retry) RoundTrip(req *http.Request) (*http.Response, error) {
	wait := firstPause
	for i := 1; ; i++ {
		again, err := copyRequest(req, i)
		if err != nil {
			return nil, err
		}
		res, err := r.next.RoundTrip(again)
		if i == attempts || !mayRepeat(req.Context(), res, err) {
			return res, err
		}
		delay := wait
		if res != nil {
			delay = max(delay, retryAfter(res))
			_ = res.Body.Close() // what it says will be said again
		}
		if err := r.pause(req.Context(), delay); err != nil {
			return nil, err
		}
		wait *= 2
	}
}

// copyRequest returns a request with a body that was not read yet.
func copyRequest(req *http.Request, attempt int) (*http.Request, error) {
	if attempt == 1 || req.Body == nil || req.Body == http.NoBody {
		return req, nil
	}
	if req.GetBody == nil {
		return nil, errors.New("the request cannot be repeated")
	}
	body, err := req.GetBody()
	if err != nil {
		return nil, err
	}
	again := req.Clone(req.Context())
	again.Body = body
	return again, nil
}

func mayRepeat(ctx context.Context, res *http.Response, err error) bool {
	if ctx.Err() != nil {
		return false
	}
	if err != nil {
		var untrusted *tls.CertificateVerificationError
		return !errors.As(err, &untrusted)
	}
	switch res.StatusCode {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	}
	return false
}

// retryAfter is how long the plane asks to wait.
func retryAfter(res *http.Response) time.Duration {
	n, err := strconv.Atoi(res.Header.Get("Retry-After"))
	if err != nil || n < 0 || n > int(maxPause/time.Second) {
		return 0
	}
	return time.Duration(n) * time.Second
}

func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(min(d, maxPause))
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
