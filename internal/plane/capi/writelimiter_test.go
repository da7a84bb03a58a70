package capi

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
	"time"
)

// counter counts requests under way until they are released.
type counter struct {
	under   chan struct{} // one for each request under way
	release chan struct{}
}

func (c *counter) RoundTrip(*http.Request) (*http.Response, error) {
	c.under <- struct{}{}
	<-c.release
	<-c.under
	return &http.Response{StatusCode: http.StatusOK}, nil
}

// Not more requests than the limit write at once. The others wait for a slot, though not for ever, and requests
// that read do not wait.
func TestWriteLimiter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		below := &counter{under: make(chan struct{}, 10), release: make(chan struct{})}
		transport := make(writeLimiter, 2).wrapTransport(below)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		results := make(chan error, 10)
		send := func(ctx context.Context, method string) {
			go func() {
				r, err := http.NewRequestWithContext(ctx, method, "https://plane", http.NoBody)
				if err == nil {
					_, err = transport.RoundTrip(r)
				}
				results <- err
			}()
		}
		expect := func(n int, when string) {
			t.Helper()
			synctest.Wait()
			if got := len(below.under); got != n {
				t.Fatalf("%s: %d requests are under way, want %d", when, got, n)
			}
		}
		send(t.Context(), http.MethodPatch)
		send(t.Context(), http.MethodPost)
		expect(2, "two that write")
		send(ctx, http.MethodPut)
		expect(2, "a third one")
		send(t.Context(), http.MethodGet)
		expect(3, "one that reads")
		cancel() // the third gives up
		if err := <-results; !errors.Is(err, context.Canceled) {
			t.Fatalf("a request whose caller gave up: %v", err)
		}
		send(t.Context(), http.MethodDelete)
		expect(3, "a fourth one")
		below.release <- struct{}{}
		below.release <- struct{}{}
		below.release <- struct{}{}
		expect(1, "after those before it") // the fourth has had its turn
		send(t.Context(), http.MethodPatch)
		send(t.Context(), http.MethodPatch)
		expect(2, "with the fourth not answered")
		time.Sleep(writeWaitTimeout) // of the bubble
		expect(3, "after its patience")
		for range 3 {
			below.release <- struct{}{}
		}
		for range 6 {
			if err := <-results; err != nil {
				t.Error(err)
			}
		}
	})
}
