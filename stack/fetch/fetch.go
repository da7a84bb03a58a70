// Package fetch makes all requests to the network. Which hosts it talks to is a policy, checked at the
// address a connection is really made to; limits bound the time, the redirects and the size.
package fetch

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"

	"k8s.io/utils/clock"
)

// Policy says which hosts we may talk to: those with a public address by https, and those the user or
// the operator named. Nobody may lead us to a host that is not allowed, by a redirect or by a name
// that changes its address.
type Policy struct {
	// Trusted are hosts, or host:port, that may have loopback or private addresses.
	Trusted []string
	// PlainHTTP allows http with trusted hosts. Those that are loopback are always allowed it.
	PlainHTTP bool
	// Roots are the certificate authorities for hosts; nil means the system's.
	Roots *x509.CertPool
	// Resolver looks up names; nil means the system's.
	Resolver *net.Resolver
}

// Limits bound one request. Zero means the default.
type Limits struct {
	Time      time.Duration // of the whole request, with redirects and the body; 60 s
	Stall     time.Duration // of waiting for the header, and for each 4 KiB of the body, or what is left of it; 20 s
	Redirects int           // 5
	Header    int64         // bytes of the answer's header; 64 KiB
}

func (l Limits) withDefaults() Limits {
	if l.Time == 0 {
		l.Time = 60 * time.Second
	}
	if l.Stall == 0 {
		l.Stall = 20 * time.Second
	}
	if l.Redirects == 0 {
		l.Redirects = 5
	}
	if l.Header == 0 {
		l.Header = 64 << 10
	}
	return l
}

// userAgent is what servers see us as.
const userAgent = "polder"

// Client keeps to a policy and limits. It is safe for concurrent use.
type Client struct{ http *http.Client }

// New makes a client. It takes no proxy from the environment, and unpacks nothing on the way: a
// body is what was sent.
func New(p Policy, l Limits) *Client {
	l = l.withDefaults()
	g := &policyTransport{
		trusted: newTrustedHosts(p.Trusted), plainHTTP: p.PlainHTTP, resolver: p.Resolver, maxRedirects: l.Redirects,
		stall: l.Stall, clock: clock.RealClock{},
	}
	g.next = &http.Transport{
		DialContext:            g.dial,
		TLSClientConfig:        &tls.Config{RootCAs: p.Roots, MinVersion: tls.VersionTLS12},
		TLSHandshakeTimeout:    10 * time.Second,
		ResponseHeaderTimeout:  l.Stall,
		MaxResponseHeaderBytes: l.Header,
		DisableCompression:     true,
		ForceAttemptHTTP2:      true, // a DialContext switches it off otherwise
		MaxIdleConnsPerHost:    4,
		IdleConnTimeout:        15 * time.Second,
	}
	return &Client{http: &http.Client{Transport: g, CheckRedirect: g.checkRedirect, Timeout: l.Time}}
}

// HTTP gives the client for libraries that need one. Explain makes sentences of its errors. Whoever
// reads a body must bound its size.
func (c *Client) HTTP() *http.Client { return c.http }

// Get reads what is at an address, at most so many bytes. An error is one sentence with the host,
// and has nothing of the address that may be secret.
func (c *Client) Get(ctx context.Context, address string, most int64) ([]byte, error) {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" { // what url says would have the address in it
		return nil, errors.New("this is no URL with a host; write https://host/path")
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, Explain(u.Host, err)
	}
	req.Header.Set("User-Agent", userAgent)
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, Explain(u.Host, err)
	}
	defer resp.Body.Close() //nolint:errcheck // read only
	host := resp.Request.URL.Host
	if resp.StatusCode != http.StatusOK {
		return nil, &StatusError{Host: host, Code: resp.StatusCode}
	}
	return readBody(resp, host, most)
}

func readBody(resp *http.Response, host string, most int64) ([]byte, error) {
	if resp.ContentLength > most {
		return nil, tooLargeError(host, most)
	}
	var b bytes.Buffer
	if resp.ContentLength > 0 {
		// ReadFrom wants MinRead bytes of room at the end, and would grow the buffer again without.
		b.Grow(int(resp.ContentLength) + bytes.MinRead)
	}
	n, err := b.ReadFrom(io.LimitReader(resp.Body, most+1))
	switch {
	case n > most:
		return nil, tooLargeError(host, most)
	case err != nil:
		return nil, Explain(host, err)
	}
	return b.Bytes(), nil
}
