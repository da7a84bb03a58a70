package fetch_test

import (
	"context"
	"crypto/x509"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/polder-kaas/polder/stack/fetch"
)

func TestGet(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/hop" {
			http.Redirect(w, r, "/index.yaml", http.StatusFound)
			return
		}
		_, _ = io.WriteString(w, r.Method+" "+r.UserAgent()+" "+r.Header.Get("Accept-Encoding"))
	})
	c := fetch.New(fetch.Policy{Trusted: []string{host(s)}}, fetch.Limits{})
	for _, path := range []string{"/index.yaml", "/hop"} {
		if b, err := c.Get(t.Context(), s.URL+path, 11); err != nil || string(b) != "GET polder " {
			t.Errorf("%s: %q, %v", path, b, err)
		}
	}
}

func TestGetByHTTPS(t *testing.T) {
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok") }))
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	defer s.Close()
	roots := x509.NewCertPool()
	roots.AddCert(s.Certificate())
	c := fetch.New(fetch.Policy{Trusted: []string{host(s)}, Roots: roots}, fetch.Limits{})
	if b, err := c.Get(t.Context(), s.URL, 2); err != nil || string(b) != "ok" {
		t.Errorf("%q, %v", b, err)
	}
	other := fetch.New(fetch.Policy{Trusted: []string{host(s)}}, fetch.Limits{})
	if _, err := other.Get(t.Context(), s.URL, 2); err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("a certificate nobody vouches for: %v", err)
	}
}

// Every spelling of this machine is refused before a connection is made.
func TestCanary(t *testing.T) {
	v4, reached4 := canary(t, "127.0.0.1")
	v6, reached6 := canary(t, "::1")
	resolver := names(func(name string) []netip.Addr {
		return map[string][]netip.Addr{
			"four.test.": {netip.MustParseAddr("127.0.0.1")},
			"six.test.":  {netip.MustParseAddr("::1")},
			"both.test.": {netip.MustParseAddr("::1"), netip.MustParseAddr("127.0.0.1"), netip.MustParseAddr("10.0.0.1")},
			"nat.test.":  {netip.MustParseAddr("64:ff9b::127.0.0.1")},
		}[name]
	})
	c := fetch.New(fetch.Policy{Trusted: []string{"127.0.0.1:1"}, PlainHTTP: true, Resolver: resolver}, fetch.Limits{Time: 5 * time.Second})
	for _, h := range []string{"127.0.0.1", "127.0.0.2", "localhost", "LOCALHOST", "[::ffff:127.0.0.1]", "[::127.0.0.1]", "0.0.0.0", "four.test", "both.test",
		"nat.test", "[::1]", "[::]", "six.test"} {
		for _, port := range []string{v4, v6} {
			if _, err := c.Get(t.Context(), "https://"+h+":"+port+"/?token=secret", 10); !errors.Is(err, fetch.ErrRefused) || strings.Contains(err.Error(), "secret") {
				t.Errorf("%s: %v", h, err)
			}
		}
	}
	if reached4.Load()+reached6.Load() != 0 {
		t.Errorf("canaries were reached %d and %d times", reached4.Load(), reached6.Load())
	}
}

// Link-local addresses are refused even of hosts that are trusted.
func TestTrustedButForbidden(t *testing.T) {
	resolver := names(func(string) []netip.Addr { return []netip.Addr{netip.MustParseAddr("169.254.169.254")} })
	c := fetch.New(fetch.Policy{Trusted: []string{"meta.test", "169.254.169.254", "fd00:ec2::254"}, PlainHTTP: true, Resolver: resolver}, fetch.Limits{
		Time: 5 * time.Second,
	})
	for _, h := range []string{"meta.test", "169.254.169.254", "[::ffff:169.254.169.254]", "[fd00:ec2::254]"} {
		if _, err := c.Get(t.Context(), "http://"+h+"/latest/meta-data", 10); !errors.Is(err, fetch.ErrRefused) || !strings.Contains(err.Error(), "link-local") &&
			!strings.Contains(err.Error(), "cloud metadata") {
			t.Errorf("%s: %v", h, err)
		}
	}
}

// A name that changes its address between two looks is caught: there is only one look, and what it
// finds is what is checked and connected to.
func TestRebinding(t *testing.T) {
	port, reached := canary(t, "127.0.0.1")
	var looks atomic.Int32
	resolver := names(func(string) []netip.Addr {
		looks.Add(1)
		return []netip.Addr{netip.MustParseAddr("127.0.0.1")}
	})
	c := fetch.New(fetch.Policy{Resolver: resolver}, fetch.Limits{})
	if _, err := c.Get(t.Context(), "https://rebind.test:"+port, 10); !errors.Is(err, fetch.ErrRefused) ||
		err.Error() != "rebind.test has the loopback address 127.0.0.1, and is not trusted; if you mean this host, name it as trusted" {
		t.Errorf("the loopback address: %v", err)
	}
	if reached.Load() != 0 || looks.Load() != 2 { // one look asks twice, for the addresses of IPv4 and of IPv6
		t.Errorf("reached %d times after %d looks", reached.Load(), looks.Load())
	}
}

func TestSchemes(t *testing.T) {
	resolver := names(func(string) []netip.Addr { return []netip.Addr{netip.MustParseAddr("127.0.0.1")} })
	s := serve(t, func(http.ResponseWriter, *http.Request) {})
	_, port, _ := net.SplitHostPort(host(s))
	for name, c := range map[string]struct {
		url   string
		plain bool
		want  string
	}{
		"loopback, trusted": {s.URL, false, ""},
		"a trusted name": {"http://named.test:" + port, false,
			"named.test:" + port + " is asked for by plain http, which is not allowed; use https, or allow plain http"},
		"a trusted name, allowed":  {"http://named.test:" + port, true, ""},
		"nobody named it":          {"http://other.test:" + port, true, "other.test:" + port + " is asked for by plain http, and is not trusted; use https"},
		"files":                    {"file://named.test/etc/passwd", true, `named.test is asked for by "file"; only https is spoken`},
		"ftp":                      {"ftp://named.test/x", true, `named.test is asked for by "ftp"; only https is spoken`},
		"no scheme":                {"named.test/x", true, "this is no URL with a host; write https://host/path"},
		"a file without a host":    {"file:///etc/passwd", true, "this is no URL with a host; write https://host/path"},
		"no URL, with a password":  {"https://u:secret@named.test/%zz", true, "this is no URL with a host; write https://host/path"},
		"nobody has the name":      {"https://u:secret@nobody.invalid/?q=secret", true, "nobody.invalid is not known: there is no such host"},
		"a server that is not TLS": {"https://u:secret@" + host(s) + "/?q=secret", true, host(s) + " speaks plain http, not https"},
		"nobody listens, a secret": {"http://u:secret@localhost:1/?q=secret", true, "localhost:1 cannot be reached: connect: connection refused"},
	} {
		t.Run(name, func(t *testing.T) {
			r := resolver
			if strings.Contains(c.url, "nobody") {
				r = names(func(string) []netip.Addr { return nil })
			}
			client := fetch.New(fetch.Policy{Trusted: []string{host(s), "named.test", "localhost:1"}, PlainHTTP: c.plain, Resolver: r}, fetch.Limits{})
			_, err := client.Get(t.Context(), c.url, 10)
			if c.want == "" && err != nil || c.want != "" && (err == nil || err.Error() != c.want) {
				t.Errorf("%v, want %s", err, c.want)
			}
		})
	}
}

func TestCancelled(t *testing.T) {
	s := serve(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(20*time.Millisecond, cancel)
	c := fetch.New(fetch.Policy{Trusted: []string{host(s)}}, fetch.Limits{})
	if _, err := c.Get(ctx, s.URL+"/?q=secret", 10); !errors.Is(err, context.Canceled) || err.Error() != host(s)+": the request was cancelled" {
		t.Error(err)
	}
}
