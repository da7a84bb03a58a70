package login

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"golang.org/x/oauth2"

	"github.com/polder-kaas/polder/internal/cli/output"
	"github.com/polder-kaas/polder/internal/program/exit"
)

// Bounds of what an issuer may answer, and take for it.
const (
	issuerTimeout = 20 * time.Second
	maxAnswer     = 1 << 20
)

// issuer is one that has said who it is.
type issuer struct {
	config     issuerConfig
	client     *http.Client
	endpoint   oauth2.Endpoint
	revocation string // where tokens are given back; may be empty
}

// discover asks an issuer where to log in.
func discover(ctx context.Context, c issuerConfig) (*issuer, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	client, err := c.httpClient()
	if err != nil {
		return nil, err
	}
	at := strings.TrimSuffix(c.URL, "/") + "/.well-known/openid-configuration"
	var about struct {
		Issuer        string `json:"issuer"`
		Authorization string `json:"authorization_endpoint"`
		Token         string `json:"token_endpoint"`
		Device        string `json:"device_authorization_endpoint"`
		Revocation    string `json:"revocation_endpoint"`
	}
	if err := getJSON(ctx, client, at, &about); err != nil {
		return nil, fmt.Errorf("asking issuer %s: %w", c.URL, err)
	}
	if about.Issuer != c.URL {
		return nil, exit.Errorf(exit.Usage, "%s is the configuration of issuer %q; name that with --issuer, in the very same way", at,
			output.Sanitize(about.Issuer))
	}
	i := &issuer{config: c, client: client, revocation: about.Revocation, endpoint: oauth2.Endpoint{
		AuthURL: about.Authorization, TokenURL: about.Token, DeviceAuthURL: about.Device, AuthStyle: oauth2.AuthStyleInParams,
	}}
	for _, u := range []string{about.Authorization, about.Token, about.Device, about.Revocation} {
		if u != "" && !isHTTPS(u) {
			return nil, fmt.Errorf("issuer %s has an address that is not https: %q", c.URL, output.Sanitize(u))
		}
	}
	if about.Token == "" {
		return nil, fmt.Errorf("issuer %s does not say where tokens are to be had", c.URL)
	}
	return i, nil
}

func (c issuerConfig) check() error {
	switch {
	case !isHTTPS(c.URL):
		return exit.Errorf(exit.Usage, "--issuer %q is no https URL", c.URL)
	case c.ClientID == "":
		return exit.Errorf(exit.Usage, "name the client that polder is for the issuer, with --client-id")
	}
	return nil
}

func isHTTPS(s string) bool {
	u, err := url.Parse(s)
	return err == nil && u.Scheme == "https" && u.Host != "" && u.User == nil
}

// httpClient is for this issuer. Redirects are not followed: with a token in the body, nobody should be sent elsewhere.
func (c issuerConfig) httpClient() (*http.Client, error) {
	t := &http.Transport{Proxy: http.ProxyFromEnvironment, TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12}}
	if c.CA != "" {
		pool := x509.NewCertPool()
		if !pool.AppendCertsFromPEM([]byte(c.CA)) {
			return nil, exit.Errorf(exit.Usage, "--issuer-ca holds no certificate")
		}
		t.TLSClientConfig.RootCAs = pool
	}
	return &http.Client{
		Transport: limitedTransport{t}, Timeout: issuerTimeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}, nil
}

// limitedTransport bounds answers.
type limitedTransport struct{ http.RoundTripper }

// RoundTrip sends a request.
func (l limitedTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	res, err := l.RoundTripper.RoundTrip(r)
	if err == nil {
		res.Body = struct {
			io.Reader
			io.Closer
		}{io.LimitReader(res.Body, maxAnswer), res.Body}
	}
	return res, err
}

func getJSON(ctx context.Context, client *http.Client, at string, into any) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, at, nil)
	if err != nil {
		return err
	}
	res, err := client.Do(req)
	if err != nil {
		return unwrapURLError(err)
	}
	defer res.Body.Close() //nolint:errcheck // read to its end, or given up
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answers %s", at, res.Status)
	}
	if err := json.NewDecoder(res.Body).Decode(into); err != nil {
		return fmt.Errorf("%s does not answer with an issuer's configuration: %w", at, err)
	}
	return nil
}

// unwrapURLError drops the address, which is said already.
func unwrapURLError(err error) error {
	if u := (*url.Error)(nil); errors.As(err, &u) {
		return u.Err
	}
	return err
}

// oauth is the configuration of the flows.
func (i *issuer) oauth() *oauth2.Config {
	return &oauth2.Config{
		ClientID: i.config.ClientID, Endpoint: i.endpoint,
		Scopes: append([]string{"openid", "offline_access"}, i.config.Scopes...),
	}
}

// context makes the flows use the issuer's own client.
func (i *issuer) context(ctx context.Context) context.Context {
	return context.WithValue(ctx, oauth2.HTTPClient, i.client)
}

// explain says in a sentence why an issuer gave no token.
func (i *issuer) explain(err error) error {
	if refused := (*oauth2.RetrieveError)(nil); errors.As(err, &refused) {
		text := refused.ErrorCode
		if refused.ErrorDescription != "" {
			text += ": " + refused.ErrorDescription
		}
		if text == "" && refused.Response != nil {
			text = refused.Response.Status
		}
		return &refusedError{
			code: refused.ErrorCode, text: fmt.Sprintf("issuer %s refuses: %s", i.config.URL, output.Sanitize(text)),
		}
	}
	return fmt.Errorf("issuer %s does not answer: %w", i.config.URL, unwrapURLError(err))
}

// refusedError is an issuer's word.
type refusedError struct{ code, text string }

func (e *refusedError) Error() string { return e.text }

// take keeps what an answer of the issuer holds. Some give no new refresh token; then the old one is good still.
func (s *session) take(t *oauth2.Token, nonce string) error {
	raw, _ := t.Extra("id_token").(string)
	if raw == "" {
		return fmt.Errorf("issuer %s gave no ID token", s.Issuer.URL)
	}
	claims, err := readClaims(raw)
	switch {
	case err != nil:
		return fmt.Errorf("the ID token of issuer %s cannot be read: %w", s.Issuer.URL, err)
	case claims.Issuer != s.Issuer.URL:
		return fmt.Errorf("the ID token is of issuer %q, not of %s", output.Sanitize(claims.Issuer), s.Issuer.URL)
	case nonce != "" && claims.Nonce != nonce:
		return errors.New("the ID token is for another login than this one")
	}
	s.IDToken, s.Expiry = raw, time.Unix(claims.Expiry, 0)
	if t.RefreshToken != "" {
		s.RefreshToken = t.RefreshToken
	}
	return nil
}

// claims are what we read of an ID token. It came from the issuer itself, over TLS; whether it is genuine is for the
// plane to judge.
type claims struct {
	Issuer string `json:"iss"`
	Nonce  string `json:"nonce"`
	Expiry int64  `json:"exp"`
}

func readClaims(token string) (c claims, err error) {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return c, errors.New("it is no JSON web token")
	}
	b, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return c, err
	}
	return c, json.Unmarshal(b, &c)
}
