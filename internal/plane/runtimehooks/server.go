package runtimehooks

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"time"

	runtimecatalog "sigs.k8s.io/cluster-api/api/runtime/catalog"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"
)

const (
	// connectTimeout bounds dialling and the TLS handshake each. net/http goes on with them
	// after the call they were begun for has ended.
	connectTimeout = 10 * time.Second

	// idleTimeout closes the connections of a server that is registered no longer.
	idleTimeout = 30 * time.Second

	// maxIdle is the number of connections kept for the next call.
	maxIdle = 10

	// maxHeader bounds the header of a response.
	maxHeader = 64 << 10
)

// server is one extension server: the address of an ExtensionConfig and how to trust it. It is safe for
// concurrent use.
type server struct {
	base *url.URL
	http *http.Client
}

func (c *Client) newServer(config runtimev1.ClientConfig) (*server, error) {
	base, err := baseURL(config)
	if err != nil {
		return nil, fmt.Errorf("reading its clientConfig: %w", err)
	}
	tlsConfig := &tls.Config{MinVersion: tls.VersionTLS12, GetClientCertificate: c.config.ClientCertificate}
	if len(config.CABundle) > 0 {
		tlsConfig.RootCAs = x509.NewCertPool()
		if !tlsConfig.RootCAs.AppendCertsFromPEM(config.CABundle) {
			return nil, errors.New("reading its clientConfig: caBundle holds no PEM certificate")
		}
	}
	return &server{base: base, http: &http.Client{
		// HTTP/1.1 only: a dead connection ends with the call that noticed. With HTTP/2 all
		// further calls would be sent into it.
		Transport: &http.Transport{
			DialContext:            c.dial,
			TLSClientConfig:        tlsConfig,
			TLSHandshakeTimeout:    connectTimeout,
			IdleConnTimeout:        idleTimeout,
			MaxIdleConnsPerHost:    maxIdle,
			MaxResponseHeaderBytes: maxHeader,
		},
		// A server answers at the address an administrator registered, and cannot send the
		// plane elsewhere: the redirect itself is the response, and not a good one.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
}

func (c *Client) dial(ctx context.Context, network, address string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	return c.config.Dial(ctx, network, address)
}

// baseURL returns what the paths of hooks are appended to.
func baseURL(config runtimev1.ClientConfig) (*url.URL, error) {
	if config.Service.IsDefined() {
		return nil, errors.New(
			"this plane has no Services: set url to where the extension server can be reached, and leave out service",
		)
	}
	if config.URL == "" {
		return nil, errors.New("url is not set")
	}
	base, err := url.Parse(config.URL)
	switch {
	case err != nil:
		return nil, err
	case base.Scheme != "https":
		return nil, fmt.Errorf("url has scheme %q, want https", base.Scheme)
	case base.Hostname() == "":
		return nil, errors.New("url names no host")
	case base.User != nil || base.RawQuery != "" || base.ForceQuery || base.Fragment != "":
		return nil, errors.New("url may have a host, a port and a path only")
	}
	return base, nil
}

// url returns the address of a handler; discovery is a hook without handlers.
func (s *server) url(hook runtimecatalog.GroupVersionHook, handler string, timeout time.Duration) *url.URL {
	u := s.base.JoinPath(runtimecatalog.GVHToPath(hook, handler))
	u.RawQuery = url.Values{"timeout": {timeout.String()}}.Encode()
	return u
}
