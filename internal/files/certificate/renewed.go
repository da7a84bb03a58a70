package certificate

import (
	"crypto/tls"
	"crypto/x509"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// IsDue says whether a certificate has passed two thirds of its life, or is not valid yet because the clock was set
// back.
func IsDue(c *x509.Certificate, now time.Time) bool {
	return now.Before(c.NotBefore) || !now.Before(c.NotAfter.Add(-c.NotAfter.Sub(c.NotBefore)/3))
}

// Renewed is a certificate with its key that is made anew while it is in use. Its fields are set before the first use
// and not changed; its methods are safe for concurrent use.
type Renewed struct {
	Clock clock.PassiveClock
	// Make makes it, the first time and when it is due. An error keeps the old one in use, and is asked for again.
	Make func() (tls.Certificate, error)
	// OnRenew (may be nil) is called after another has taken its place.
	OnRenew func()

	mu      sync.Mutex
	current *tls.Certificate
}

// Get returns the certificate, a new one if it is due. It fails only if there has been none yet.
func (r *Renewed) Get() (*tls.Certificate, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.current != nil && !IsDue(r.current.Leaf, r.Clock.Now()) {
		return r.current, nil
	}
	next, err := r.Make()
	if err == nil && next.Leaf == nil {
		next.Leaf, err = x509.ParseCertificate(next.Certificate[0])
	}
	if err != nil && r.current != nil {
		return r.current, nil
	}
	if err != nil {
		return nil, err
	}
	renewed := r.current != nil && !r.current.Leaf.Equal(next.Leaf)
	r.current = &next
	if renewed && r.OnRenew != nil {
		r.OnRenew()
	}
	return r.current, nil
}
