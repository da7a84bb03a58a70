package pki

import "context"

// Name is the component's name.
func (p *PKI) Name() string { return "certificates" }

// Ready closes at once: New has made everything.
func (p *PKI) Ready() <-chan struct{} { return p.ready }

// Run renews what is due until ctx ends. The API server notices changed files itself; the webhook server asks for
// its certificate at each handshake. A renewal that fails is tried again and is fatal only by the certificate's
// own expiry, so it is reported as the component's health in the meantime.
func (p *PKI) Run(ctx context.Context) error {
	t := p.cfg.Clock.NewTicker(p.cfg.Interval)
	defer t.Stop()
	close(p.ready)
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-t.C():
			err := p.ensure()
			p.setHealth(err)
		}
	}
}

func (p *PKI) setHealth(err error) { p.health.Store(&renewalResult{err}) }

// renewalResult is the outcome of the last round of renewals.
type renewalResult struct{ err error }

// Healthy returns the error of a renewal that failed.
func (p *PKI) Healthy(context.Context) error {
	if r := p.health.Load(); r != nil {
		return r.err
	}
	return nil
}
