package fetch_test

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/polder-kaas/polder/stack/fetch"
)

func TestHostileServers(t *testing.T) {
	for name, c := range map[string]struct {
		handler http.HandlerFunc
		is      error
		want    string
	}{
		"a byte now and then": {func(w http.ResponseWriter, r *http.Request) {
			for tick := time.NewTicker(10 * time.Millisecond); ; {
				select {
				case <-r.Context().Done():
					tick.Stop()
					return
				case <-tick.C:
					_, _ = w.Write([]byte("x"))
					_ = http.NewResponseController(w).Flush()
				}
			}
		}, context.DeadlineExceeded, "HOST took too long, and was given up"},
		"never an answer": {func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, context.DeadlineExceeded, "HOST took too long, and was given up"},
		"no end": {func(w http.ResponseWriter, r *http.Request) {
			for r.Context().Err() == nil {
				if _, err := w.Write(make([]byte, 1<<16)); err != nil {
					return
				}
			}
		}, fetch.ErrTooLarge, "HOST sends more than the 1000 bytes that are taken"},
		"one byte too many": {func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write(make([]byte, 500))
			_ = http.NewResponseController(w).Flush() // so that its length is not known
			_, _ = w.Write(make([]byte, 501))
		}, fetch.ErrTooLarge, "more than the 1000 bytes"},
		"a length above the limit": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "1001")
			_, _ = w.Write(make([]byte, 1001))
		}, fetch.ErrTooLarge, "more than the 1000 bytes"},
		"a length beyond all memory": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "1125899906842624")
			_, _ = w.Write(make([]byte, 10))
		}, fetch.ErrTooLarge, "more than the 1000 bytes"},
		"a length above what comes": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "900")
			_, _ = w.Write(make([]byte, 800))
		}, nil, "HOST ended the connection too early"},
		"cut": {func(w http.ResponseWriter, _ *http.Request) {
			conn, _, _ := http.NewResponseController(w).Hijack()
			_ = conn.Close()
		}, nil, "HOST ended the connection too early"},
		"a large header": {func(w http.ResponseWriter, _ *http.Request) {
			for i := range 20 {
				w.Header().Set(fmt.Sprintf("X-%d", i), strings.Repeat("x", 4<<10))
			}
		}, nil, "server response headers exceeded"},
		"a bomb nobody asked for": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip") // it is not unpacked, so it may be
			_, _ = w.Write([]byte("packed"))
		}, nil, ""},
		"an error page": {func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "\x1b[31msecret", http.StatusTeapot) }, nil, "HOST answers 418 I'm a teapot"},
		"a loop": {func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/", http.StatusFound) }, fetch.ErrRefused,
			"HOST redirects more than 5 times"},
		"credentials": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://user:secret@"+r.Host+"/", http.StatusFound)
		}, fetch.ErrRefused, "HOST redirects to HOST with credentials in the address"},
		"to metadata":          {redirect("http://169.254.169.254/latest"), fetch.ErrRefused, "169.254.169.254 is asked for by plain http"},
		"to metadata by https": {redirect("https://169.254.169.254/latest"), fetch.ErrRefused, "169.254.169.254 has the link-local address"},
		"to a file":            {redirect("file:///etc/passwd"), fetch.ErrRefused, `is asked for by "file"`},
		"to nowhere":           {redirect("http://%zz"), nil, "HOST: failed to parse Location header"},
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, c.handler)
			before := time.Now()
			b, err := fetch.New(fetch.Policy{Trusted: []string{host(s)}}, fetch.Limits{Time: 300 * time.Millisecond}).Get(t.Context(), s.URL+"/?token=secret", 1000)
			if c.want == "" {
				if err != nil || string(b) != "packed" {
					t.Errorf("%q, %v", b, err)
				}
				return
			}
			if want := strings.ReplaceAll(c.want, "HOST", host(s)); err == nil || b != nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%v, want %s", err, want)
			}
			if c.is != nil && !errors.Is(err, c.is) {
				t.Errorf("%v is no %v", err, c.is)
			}
			if err != nil && (strings.Contains(err.Error(), "secret") || strings.Contains(err.Error(), "\n") || len(err.Error()) > 400) ||
				time.Since(before) > 3*time.Second {
				t.Errorf("%q after %s", err, time.Since(before))
			}
		})
	}
}

func redirect(to string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Location", to)
		w.WriteHeader(http.StatusFound)
	}
}

func TestStatusError(t *testing.T) {
	s := serve(t, http.NotFound)
	_, err := fetch.New(fetch.Policy{Trusted: []string{host(s)}}, fetch.Limits{}).Get(t.Context(), s.URL, 10)
	var status *fetch.StatusError
	if !errors.As(err, &status) || status.Code != http.StatusNotFound || status.Host != host(s) {
		t.Errorf("%v", err)
	}
}

// Five redirects are followed, six are not.
func TestRedirectsAreCounted(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if path := strings.TrimPrefix(r.URL.Path, "/x"); path != "" {
			http.Redirect(w, r, "/x"+path[1:], http.StatusFound)
		}
	})
	c := fetch.New(fetch.Policy{Trusted: []string{host(s)}}, fetch.Limits{})
	if _, err := c.Get(t.Context(), s.URL+"/x12345", 10); err != nil {
		t.Error(err)
	}
	if _, err := c.Get(t.Context(), s.URL+"/x123456", 10); !errors.Is(err, fetch.ErrRefused) {
		t.Error(err)
	}
}

// A trusted server cannot redirect to hosts that are not trusted, not even to another port of its own machine.
func TestRedirectInside(t *testing.T) {
	port, reached := canary(t, "127.0.0.1")
	var to string
	s := serve(t, func(w http.ResponseWriter, r *http.Request) { redirect(to)(w, r) })
	c := fetch.New(fetch.Policy{Trusted: []string{host(s)}, PlainHTTP: true}, fetch.Limits{Time: 5 * time.Second})
	for _, h := range []string{"127.0.0.1", "localhost", "[::ffff:127.0.0.1]"} {
		for _, scheme := range []string{"http", "https"} {
			to = scheme + "://" + h + ":" + port
			if _, err := c.Get(t.Context(), s.URL, 10); !errors.Is(err, fetch.ErrRefused) {
				t.Errorf("%s: %v", to, err)
			}
		}
	}
	if reached.Load() != 0 {
		t.Errorf("the canary was reached %d times", reached.Load())
	}
}

func TestRedirectFromHTTPS(t *testing.T) {
	var reached atomic.Int32
	plain := serve(t, func(http.ResponseWriter, *http.Request) { reached.Add(1) })
	s := httptest.NewTLSServer(redirect(plain.URL))
	defer s.Close()
	roots := x509.NewCertPool()
	roots.AddCert(s.Certificate())
	c := fetch.New(fetch.Policy{Trusted: []string{host(s), host(plain)}, Roots: roots, PlainHTTP: true}, fetch.Limits{})
	_, err := c.Get(t.Context(), s.URL, 10)
	if want := fmt.Sprintf("%s redirects from https to %s by \"http\"", host(s), host(plain)); !errors.Is(err, fetch.ErrRefused) || err.Error() != want ||
		reached.Load() != 0 {
		t.Errorf("%v, want %s; reached %d times", err, want, reached.Load())
	}
}

// Another port gets no credentials that were meant for the first, and neither does a redirect back.
func TestRedirectTakesNoCredentials(t *testing.T) {
	var first, second *httptest.Server
	var mu sync.Mutex
	seen := map[string]string{}
	record := func(name string, next func() string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			mu.Lock()
			defer mu.Unlock()
			seen[name+r.URL.Path] = r.Header.Get("Authorization") + r.Header.Get("Cookie") + r.Header.Get("Referer")
			if to := next(); r.URL.Path == "/" {
				http.Redirect(w, r, to, http.StatusFound)
			}
		}
	}
	first = serve(t, record("first", func() string { return second.URL + "/?q=secret" }))
	second = serve(t, record("second", func() string { return first.URL + "/back" }))
	c := fetch.New(fetch.Policy{Trusted: []string{host(first), host(second)}}, fetch.Limits{})
	req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, first.URL+"/?q=secret", nil)
	req.Header.Set("Authorization", "Bearer secret")
	req.Header.Set("Cookie", "secret")
	resp, err := c.HTTP().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	mu.Lock()
	defer mu.Unlock()
	if seen["first/"] != "Bearer secretsecret" || seen["second/"] != "" || seen["first/back"] != "" || len(seen) != 3 {
		t.Errorf("%q", seen)
	}
}

func TestExplain(t *testing.T) {
	for name, c := range map[string]struct {
		err  error
		want string
	}{
		"nothing": {nil, ""},
		"addresses in texts": {errors.New("GET \"https://u:secret@host.test/a?q=secret\": no\n\x1b[31m good; see ftp://x/?secret"),
			"host.test: GET \"https://host.test/a\": no [31m good; see ftp://x/"},
		"long": {errors.New(strings.Repeat("é", 1000)), "host.test: " + strings.Repeat("é", 148) + "…"},
	} {
		got := fetch.Explain("host.test", c.err)
		if c.want == "" && got != nil || c.want != "" && (got == nil || got.Error() != c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
