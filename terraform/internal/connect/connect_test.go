package connect

import (
	"context"
	"encoding/pem"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/polder-kaas/polder/client"
)

func serve(t *testing.T, h http.HandlerFunc) Settings {
	t.Helper()
	s := httptest.NewTLSServer(h)
	t.Cleanup(s.Close)
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	return Settings{Endpoint: s.URL + "/v1", Token: "t", CA: string(ca), UserAgent: "test"}
}

func (s Settings) mustClient(t *testing.T) *client.ClientWithResponses {
	t.Helper()
	c, err := s.Client()
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestRepeats: a request whose answer was lost, and one that the plane has no time for, come again with the same body.
func TestRepeats(t *testing.T) {
	var bodies []string
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		bodies = append(bodies, r.Header.Get("Idempotency-Key")+string(b))
		switch len(bodies) {
		case 1:
			panic(http.ErrAbortHandler) // the connection ends without an answer
		case 2:
			w.Header().Set("Retry-After", "0")
			w.WriteHeader(http.StatusTooManyRequests)
		default:
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusCreated)
			_, _ = w.Write([]byte(`{"metadata":{"name":"demo"}}`))
		}
	}).mustClient(t)
	res, err := c.CreateClusterWithBodyWithResponse(t.Context(), "acme", &client.CreateClusterParams{IdempotencyKey: "k"}, "application/json", strings.NewReader(`{"a":1}`))
	if err != nil || res.JSON201 == nil || res.JSON201.Name != "demo" {
		t.Fatalf("%v", err)
	}
	if want := []string{`k{"a":1}`, `k{"a":1}`, `k{"a":1}`}; !slices.Equal(bodies, want) {
		t.Errorf("%q was sent, not %q", bodies, want)
	}
}

func TestRepeatsNotForEver(t *testing.T) {
	n := 0
	r := &retry{pause: func(context.Context, time.Duration) error { return nil }, next: roundTripper(func(*http.Request) (*http.Response, error) {
		n++
		return &http.Response{StatusCode: http.StatusServiceUnavailable, Body: http.NoBody}, nil
	})}
	res, err := r.RoundTrip(httptest.NewRequest(http.MethodGet, "/", http.NoBody))
	if err != nil || res.StatusCode != http.StatusServiceUnavailable || n != attempts {
		t.Errorf("%d requests, %v %v", n, res, err)
	}
	n = 0
	r.next = roundTripper(func(*http.Request) (*http.Response, error) {
		n++
		return &http.Response{StatusCode: http.StatusUnprocessableEntity, Body: http.NoBody}, nil
	})
	if _, err := r.RoundTrip(httptest.NewRequest(http.MethodGet, "/", http.NoBody)); err != nil || n != 1 {
		t.Errorf("a refusal was asked for %d times (%v)", n, err)
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// TestTokenStaysAtItsAddress: an answer that sends elsewhere is not followed.
func TestTokenStaysAtItsAddress(t *testing.T) {
	stolen := ""
	other := serve(t, func(_ http.ResponseWriter, r *http.Request) { stolen = r.Header.Get("Authorization") })
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, other.Endpoint, http.StatusTemporaryRedirect)
	}).mustClient(t)
	res, err := c.GetSelfWithResponse(t.Context())
	if err != nil || res.StatusCode() != http.StatusTemporaryRedirect || stolen != "" {
		t.Errorf("%v %v: %q", res, err, stolen)
	}
}

func TestTokenFileIsReadAgain(t *testing.T) {
	var got []string
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		got = append(got, r.Header.Get("Authorization"), r.Header.Get("User-Agent"))
		w.WriteHeader(http.StatusUnauthorized)
	})
	s.Token, s.TokenFile = "", filepath.Join(t.TempDir(), "token")
	c := s.mustClient(t)
	for _, token := range []string{"one", "two\n"} {
		if err := os.WriteFile(s.TokenFile, []byte(token), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := c.GetSelfWithResponse(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if want := []string{"Bearer one", "test", "Bearer two", "test"}; !slices.Equal(got, want) {
		t.Errorf("%q, not %q", got, want)
	}
	for _, bad := range []string{"", "two words", strings.Repeat("a", maxTokenFile+1)} {
		if err := os.WriteFile(s.TokenFile, []byte(bad), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := c.GetSelfWithResponse(t.Context()); err == nil || strings.Contains(err.Error(), "words") {
			t.Errorf("%.20q: %v", bad, err)
		}
	}
}

func TestBadSettings(t *testing.T) {
	for want, s := range map[string]Settings{
		"must be as https://": {Endpoint: "http://polder.example.org/v1"},
		"must end with /v1":   {Endpoint: "https://polder.example.org"},
		"is no URL":           {Endpoint: "https://a b/v1"},
		"no certificate":      {Endpoint: "https://polder.example.org/v1", CA: "x"},
	} {
		if _, err := s.Client(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, and not %q", s, err, want)
		}
	}
	s := serve(t, func(http.ResponseWriter, *http.Request) {})
	s.CA = ""
	begin := time.Now()
	if _, err := s.mustClient(t).GetSelfWithResponse(t.Context()); err == nil || time.Since(begin) > 5*time.Second {
		t.Errorf("a plane of an unknown authority: %v after %s", err, time.Since(begin))
	}
}
