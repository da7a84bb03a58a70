package runtimehooks

import (
	"context"
	"crypto/tls"
	"errors"
	"net"

	runtimecatalog "sigs.k8s.io/cluster-api/api/runtime/catalog"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Config configures a Client.
type Config struct {
	// Reader looks up the labels of Namespaces for namespaceSelectors, as partial object
	// metadata. Required.
	Reader client.Reader

	// Catalog knows the hooks and converts between their versions. Nil means NewCatalog.
	Catalog *runtimecatalog.Catalog

	// Dial opens connections to extension servers; the place to refuse addresses. Nil means
	// plain TCP. It is given 10 s.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)

	// ClientCertificate is for extension servers that ask for a client certificate. It is called for each new
	// connection, so a renewed certificate needs no restart. Nil means that the plane stays anonymous.
	ClientCertificate func(*tls.CertificateRequestInfo) (*tls.Certificate, error)
}

// Validate reports what is missing.
func (c Config) Validate() error {
	if c.Reader == nil {
		return errors.New("a reader for Namespaces is required")
	}
	return nil
}

// complete fills in defaults.
func (c Config) complete() (Config, error) {
	if c.Catalog == nil {
		catalog, err := NewCatalog()
		if err != nil {
			return c, err
		}
		c.Catalog = catalog
	}
	if c.Dial == nil {
		c.Dial = (&net.Dialer{}).DialContext
	}
	return c, nil
}
