package capi

import (
	"net/http"
	"runtime"
)

// writesPerCore is how many requests that write all managers together have under way, for each core.
const writesPerCore = 2

// writes bounds how much Cluster API writes at the same time. Its controllers work on many objects at once, and each waits
// for the API server, which is in this process: what is asked at once beyond what the cores can do makes nothing faster.
// It only delays the watches, so that the controllers act on what has long changed, meet conflicts, and start again. With
// twenty clusters at once two requests of three failed like that.
//
// Requests that read have no bound: webhooks read while a request that writes waits for them.
type writes chan struct{}

func newWrites() writes { return make(writes, writesPerCore*runtime.GOMAXPROCS(0)) }

// wrap is a rest.Config's WrapTransport.
func (w writes) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		if r.Method == http.MethodGet {
			return next.RoundTrip(r)
		}
		select {
		case w <- struct{}{}:
		case <-r.Context().Done():
			return nil, r.Context().Err()
		}
		defer func() { <-w }()
		return next.RoundTrip(r)
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
