package capi

import (
	"net/http"
	"runtime"
	"time"
)

const (
	// writesPerCore is how many requests that write all managers together may have under way, for each core.
	writesPerCore = 2
	// writeWaitTimeout is how long a request waits for a slot. Then it is sent all the same: those before it may
	// wait for somebody else's webhook that does not answer, and that must not hold up everybody.
	writeWaitTimeout = 3 * time.Second
)

// writeLimiter bounds how much Cluster API writes at the same time (docs/adr/0012). Its controllers work on many
// objects at once, and each waits for the API server, which is in this process: requests beyond what the cores
// can do make nothing faster. They only delay the watches, so that the controllers act on what has long changed,
// meet conflicts, and start again. With twenty clusters at once two requests of three failed like that.
//
// Requests that read have no bound: webhooks read while a request that writes waits for them.
type writeLimiter chan struct{}

func newWriteLimiter() writeLimiter { return make(writeLimiter, writesPerCore*runtime.GOMAXPROCS(0)) }

// wrapTransport is a rest.Config's WrapTransport.
func (w writeLimiter) wrapTransport(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		if r.Method == http.MethodGet {
			return next.RoundTrip(r)
		}
		timeout := time.NewTimer(writeWaitTimeout)
		defer timeout.Stop()
		select {
		case w <- struct{}{}:
			defer func() { <-w }()
		case <-timeout.C:
		case <-r.Context().Done():
			return nil, r.Context().Err()
		}
		return next.RoundTrip(r)
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
