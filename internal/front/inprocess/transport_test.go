package inprocess

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
)

func get(ctx context.Context, t *testing.T, h http.HandlerFunc) (*http.Response, error) {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://plane/a?b=c", strings.NewReader("question"))
	if err != nil {
		t.Fatal(err)
	}
	return (&http.Client{Transport: Transport{Handler: h}}).Do(req)
}

func TestTransport(t *testing.T) {
	r, err := get(WithRemoteAddr(t.Context(), "192.0.2.1:5"), t, func(w http.ResponseWriter, r *http.Request) {
		b, err := io.ReadAll(r.Body)
		w.Header().Set("A", "b")
		w.WriteHeader(http.StatusTeapot)
		w.Header().Set("A", "too late")
		w.WriteHeader(http.StatusOK)
		fmt.Fprint(w, r.Host, " ", r.RequestURI, " ", r.RemoteAddr, " ", string(b), " ", err)
	})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	b, err := io.ReadAll(r.Body)
	if got, want := string(b), "plane /a?b=c 192.0.2.1:5 question <nil>"; got != want || err != nil || r.StatusCode != http.StatusTeapot || r.Header.Get("A") != "b" {
		t.Errorf("%d %v %q %v, want %q", r.StatusCode, r.Header, got, err, want)
	}
}

// An answer is read while it is written, and its end is the handler's.
func TestTransportStreams(t *testing.T) {
	ended := make(chan struct{})
	r, err := get(t.Context(), t, func(w http.ResponseWriter, r *http.Request) {
		defer close(ended)
		w.(http.Flusher).Flush()
		fmt.Fprintln(w, "first")
		<-w.(http.CloseNotifier).CloseNotify() //nolint:staticcheck // Kubernetes uses it
		<-r.Context().Done()
	})
	if err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 6)
	if _, err := io.ReadFull(r.Body, b); err != nil || string(b) != "first\n" {
		t.Fatalf("%q %v", b, err)
	}
	if err := r.Body.Close(); err != nil {
		t.Error(err)
	}
	<-ended
}

// An answer that is broken off is no whole one, and nothing said at all is an empty one.
func TestTransportFailures(t *testing.T) {
	r, err := get(t.Context(), t, func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, "half")
		panic(http.ErrAbortHandler)
	})
	if err != nil {
		t.Fatal(err)
	}
	if b, err := io.ReadAll(r.Body); err == nil || string(b) != "half" {
		t.Errorf("broken off: %q %v", b, err)
	}
	r, err = get(t.Context(), t, func(http.ResponseWriter, *http.Request) {})
	if err != nil {
		t.Fatal(err)
	}
	if b, err := io.ReadAll(r.Body); err != nil || len(b) > 0 || r.StatusCode != http.StatusOK {
		t.Errorf("nothing: %d %q %v", r.StatusCode, b, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	returned, ended := make(chan struct{}), make(chan struct{})
	if _, err := get(ctx, t, func(w http.ResponseWriter, _ *http.Request) {
		defer close(ended)
		cancel()
		<-returned
		fmt.Fprint(w, "nobody reads this") // and it may not hang
	}); !errors.Is(err, context.Canceled) {
		t.Errorf("canceled: %v", err)
	}
	close(returned)
	<-ended
}
