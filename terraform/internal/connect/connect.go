// Package connect is how the provider asks a plane: one client of its REST API, with the token of whoever runs it.
package connect

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/polder-kaas/polder/client"
)

// Settings say where a plane is, and who asks it.
type Settings struct {
	Endpoint  string // URL of the REST API, with /v1
	Token     string // either this,
	TokenFile string // or a file, which is read again for each request, since tokens in files are renewed
	CA        string // PEM of the authority that the plane's certificate is of; empty: those of the system
	UserAgent string
}

// Limits of one request; waiting for clusters is many requests.
const (
	answerTimeout    = time.Minute
	handshakeTimeout = 20 * time.Second
	maxTokenFile     = 64 << 10
)

// Client makes a client of a plane. It sends nothing yet.
func (s Settings) Client() (*client.ClientWithResponses, error) {
	u, err := url.Parse(s.Endpoint)
	switch {
	case err != nil:
		return nil, fmt.Errorf("the endpoint is no URL: %w", err)
	case u.Scheme != "https" || u.Host == "":
		return nil, fmt.Errorf("the endpoint is %q, and must be as https://polder.example.org/v1: a token is sent there", s.Endpoint)
	case !strings.HasSuffix(strings.TrimRight(u.Path, "/"), "/v1"):
		return nil, fmt.Errorf("the endpoint is %q, and must end with /v1", s.Endpoint)
	}
	t := &http.Transport{
		Proxy: http.ProxyFromEnvironment, ForceAttemptHTTP2: true, TLSHandshakeTimeout: handshakeTimeout,
		ResponseHeaderTimeout: answerTimeout, TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12},
	}
	if s.CA != "" {
		t.TLSClientConfig.RootCAs = x509.NewCertPool()
		if !t.TLSClientConfig.RootCAs.AppendCertsFromPEM([]byte(s.CA)) {
			return nil, errors.New("the CA certificate is no certificate in PEM form")
		}
	}
	h := &http.Client{
		Transport: &retry{next: t, pause: pause},
		// The token is for this address, and no other.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	agent := func(_ context.Context, r *http.Request) error {
		r.Header.Set("User-Agent", s.UserAgent)
		return nil
	}
	return client.New(s.Endpoint, s.readToken, client.WithHTTPClient(h), client.WithRequestEditorFn(agent))
}

// readToken returns the token as it is now.
func (s Settings) readToken(context.Context) (string, error) {
	if s.TokenFile == "" {
		return s.Token, nil
	}
	i, err := os.Stat(s.TokenFile)
	if err != nil {
		return "", fmt.Errorf("reading the token: %w", err)
	}
	if i.Size() > maxTokenFile {
		return "", fmt.Errorf("reading the token: %s has %d bytes; that is no token", s.TokenFile, i.Size())
	}
	b, err := os.ReadFile(s.TokenFile)
	if err != nil {
		return "", fmt.Errorf("reading the token: %w", err)
	}
	token := strings.TrimSpace(string(b))
	if token == "" || strings.ContainsAny(token, "\r\n\t ") {
		return "", fmt.Errorf("reading the token: there is not one token in %s", s.TokenFile)
	}
	return token, nil
}
