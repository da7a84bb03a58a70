package authentication

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// probeTimeout bounds one question to an issuer.
const probeTimeout = 10 * time.Second

// maxAnswer bounds what an issuer says about itself, which is about two kilobytes.
const maxAnswer = 1 << 20

// probeIssuer asks an issuer for its configuration, as the API server does.
func probeIssuer(ctx context.Context, i Issuer) error {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	transport := &http.Transport{Proxy: http.ProxyFromEnvironment, DisableKeepAlives: true,
		TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12}}
	if len(i.CA) > 0 {
		transport.TLSClientConfig.RootCAs = x509.NewCertPool()
		transport.TLSClientConfig.RootCAs.AppendCertsFromPEM(i.CA)
	}
	at := i.DiscoveryURL
	if at == "" {
		at = strings.TrimSuffix(i.URL, "/") + "/.well-known/openid-configuration"
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, at, nil)
	if err != nil {
		return err
	}
	res, err := (&http.Client{Transport: transport}).Do(req)
	if err != nil {
		var u *url.Error
		if errors.As(err, &u) {
			err = u.Err // without the address, which is said already
		}
		return fmt.Errorf("it does not answer: %w", err)
	}
	defer res.Body.Close() //nolint:errcheck // read to its end, or given up
	var about struct {
		Issuer string `json:"issuer"`
	}
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answers %s; it must answer with the issuer's configuration", at, res.Status)
	}
	if err := json.NewDecoder(io.LimitReader(res.Body, maxAnswer)).Decode(&about); err != nil {
		return fmt.Errorf("%s does not answer with an issuer's configuration: %w", at, err)
	}
	if about.Issuer != i.URL {
		return fmt.Errorf("%s is the configuration of %q; write the URL in the very same way", at, about.Issuer)
	}
	return nil
}
