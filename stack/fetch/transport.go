package fetch

import (
	"context"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"syscall"
	"time"

	"k8s.io/utils/clock"
)

const dialTimeout = 15 * time.Second

// policyTransport checks every request, every redirect and every connection against the policy.
type policyTransport struct {
	trusted      trustedHosts
	plainHTTP    bool
	resolver     *net.Resolver
	maxRedirects int
	stall        time.Duration
	clock        clock.WithDelayedExecution
	next         *http.Transport
}

var _ http.RoundTripper = (*policyTransport)(nil)

// RoundTrip checks the scheme, also of requests that libraries make with the client.
func (g *policyTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	if err := g.checkScheme(req.URL); err != nil {
		if req.Body != nil {
			_ = req.Body.Close() // a RoundTripper must close it, also on errors
		}
		return nil, err
	}
	ctx, cancel := context.WithCancelCause(req.Context())
	resp, err := g.next.RoundTrip(req.WithContext(ctx))
	if err != nil || resp.Body == http.NoBody {
		cancel(nil)
		return resp, err
	}
	resp.Request = req
	resp.Body = &stallReader{ReadCloser: resp.Body, clock: g.clock, limit: g.stall, cancel: cancel}
	return resp, nil
}

// CloseIdleConnections is for http.Client.
func (g *policyTransport) CloseIdleConnections() { g.next.CloseIdleConnections() }

func (g *policyTransport) checkScheme(u *url.URL) error {
	host, port := hostPort(u)
	switch u.Scheme {
	case "https":
		return nil
	case "http":
		if !g.trusted.has(host, port) {
			return policyErrorf("%s is asked for by plain http, and is not trusted; use https", u.Host)
		}
		if !g.plainHTTP && !IsLoopback(host) {
			return policyErrorf("%s is asked for by plain http, which is not allowed; use https, or allow plain http", u.Host)
		}
		return nil
	}
	return policyErrorf("%s is asked for by %q; only https is spoken", u.Host, Sanitize(u.Scheme))
}

// dial checks each address at the moment of connecting to it: changing the address of a name after a
// check does not help.
func (g *policyTransport) dial(ctx context.Context, network, address string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	trusted := g.trusted.has(host, port)
	d := net.Dialer{Timeout: dialTimeout, Resolver: g.resolver}
	d.ControlContext = func(_ context.Context, _, at string, _ syscall.RawConn) error {
		a, err := netip.ParseAddrPort(at)
		if err != nil {
			return err
		}
		return checkAddress(host, a.Addr(), trusted)
	}
	return d.DialContext(ctx, network, address)
}

// checkRedirect checks a redirect before it is followed. Another host than the first gets no credentials that
// were meant for that one.
func (g *policyTransport) checkRedirect(req *http.Request, via []*http.Request) error {
	first, last := via[0].URL, via[len(via)-1].URL
	switch {
	case len(via) > g.maxRedirects:
		return policyErrorf("%s redirects more than %d times", first.Host, g.maxRedirects)
	case req.URL.User != nil:
		return policyErrorf("%s redirects to %s with credentials in the address", last.Host, req.URL.Host)
	case last.Scheme == "https" && req.URL.Scheme != "https":
		return policyErrorf("%s redirects from https to %s by %q", last.Host, req.URL.Host, Sanitize(req.URL.Scheme))
	}
	req.Header.Del("Referer") // it would have the query of the last request
	// A request that comes back to the first host gets none either: another host has chosen its address.
	for _, hop := range append(via[1:len(via):len(via)], req) {
		if origin(hop.URL) != origin(first) { // net/http only compares names, not ports
			req.Header.Del("Authorization")
			req.Header.Del("Cookie")
		}
	}
	return nil
}

func origin(u *url.URL) string {
	host, port := hostPort(u)
	return u.Scheme + "://" + net.JoinHostPort(host, port)
}

func hostPort(u *url.URL) (host, port string) {
	host, port = normalizeHost(u.Hostname()), u.Port()
	if port == "" && u.Scheme == "https" {
		port = "443"
	} else if port == "" {
		port = "80"
	}
	return host, port
}

// trustedHosts is a set of host and host:port.
type trustedHosts map[string]bool

func newTrustedHosts(names []string) trustedHosts {
	t := trustedHosts{}
	for _, n := range names {
		if host, port, err := net.SplitHostPort(n); err == nil {
			t[net.JoinHostPort(normalizeHost(host), port)] = true
			continue
		}
		t[normalizeHost(strings.Trim(n, "[]"))] = true
	}
	return t
}

func (t trustedHosts) has(host, port string) bool {
	host = normalizeHost(host)
	return t[host] || t[net.JoinHostPort(host, port)]
}

// normalizeHost gives a host one spelling, for comparing it.
func normalizeHost(host string) string {
	if a, err := netip.ParseAddr(host); err == nil {
		return a.Unmap().String()
	}
	return strings.TrimSuffix(strings.ToLower(host), ".")
}

// IsLoopback says whether a host is this machine, by its name or address; nothing is looked up.
func IsLoopback(host string) bool {
	host = normalizeHost(host)
	a, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && a.IsLoopback()
}

// Dial connects to a host as the policy allows, and carries anything.
func (p Policy) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	g := &policyTransport{trusted: newTrustedHosts(p.Trusted), resolver: p.Resolver}
	return g.dial(ctx, network, address)
}
