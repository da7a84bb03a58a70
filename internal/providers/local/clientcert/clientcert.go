// Package clientcert makes clients whose certificate is renewed while they are in use. An API server looks at the
// certificate of a connection at each request, so with a new one the old connections have to go as well.
package clientcert

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"time"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/connrotation"
	"k8s.io/utils/clock"

	"github.com/polder-kaas/polder/internal/files/certificate"
)

// CheckInterval is how often a certificate in use is looked at: far more often than certificates of a year need.
const CheckInterval = time.Hour

// Timeouts of connections, those of client-go.
const (
	dialTimeout      = 30 * time.Second
	handshakeTimeout = 10 * time.Second
)

// Renew returns a copy of cfg that shows the certificate that issue makes, in place of the one in cfg, and another
// when that is due, until ctx ends. It fails if there is no certificate yet.
func Renew(ctx context.Context, cfg *rest.Config, c clock.WithTicker,
	issue func() (tls.Certificate, error)) (*rest.Config, error) {
	d := net.Dialer{Timeout: dialTimeout}
	dialer := connrotation.NewDialer(d.DialContext)
	cert := &certificate.Renewed{Clock: c, Make: issue, OnRenew: dialer.CloseAll}
	if _, err := cert.Get(); err != nil {
		return nil, err
	}
	server, err := rest.TLSConfigFor(&rest.Config{Host: cfg.Host, TLSClientConfig: rest.TLSClientConfig{
		CAData: cfg.CAData, CAFile: cfg.CAFile, ServerName: cfg.ServerName,
	}})
	if err != nil {
		return nil, err
	}
	server.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return cert.Get() }
	out := rest.CopyConfig(cfg)
	out.TLSClientConfig = rest.TLSClientConfig{}
	out.Transport = utilnet.SetTransportDefaults(&http.Transport{
		TLSClientConfig: server, DialContext: dialer.DialContext, TLSHandshakeTimeout: handshakeTimeout,
		MaxIdleConnsPerHost: 25,
	})
	tick := c.NewTicker(CheckInterval)
	go func() {
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				dialer.CloseAll() // nobody uses them any more
				return
			case <-tick.C():
				_, _ = cert.Get() // connections that last see no handshake that would ask for it
			}
		}
	}()
	return out, nil
}
