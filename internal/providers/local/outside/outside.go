// Package outside connects local clusters, whose network is their own, with the world: an API server must reach the
// issuer of its tokens. The connection is made by polderd, who looks at the address it is made to: a cluster reaches
// public addresses and what the operator has named, but neither this computer nor the networks it is in.
//
// A host cannot reach polderd, so polderd comes to the host: it keeps a few connections to the host's socket open. A
// host that needs one says on it where it should lead.
package outside

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"strings"
	"sync"
	"time"

	"github.com/polder-kaas/polder/internal/providers/local/balancer"
	"github.com/polder-kaas/polder/internal/providers/local/hostapi"
	"github.com/polder-kaas/polder/stack/fetch"
)

const (
	idleOffers     = 2  // connections of one host that wait for being needed
	maxConnections = 64 // connections of one host that are in use
	retryInterval  = time.Second
	dialTimeout    = 10 * time.Second
)

// Relay makes connections for hosts.
type Relay struct {
	policy  fetch.Policy
	forward []string
	log     *slog.Logger
}

// NewRelay prepares a relay. trusted are the HOST:PORT that clusters may reach though their addresses are not public.
func NewRelay(trusted []string, log *slog.Logger) *Relay {
	r := &Relay{policy: fetch.Policy{Trusted: trusted}, log: log}
	for _, t := range trusted {
		// Programs do not ask a proxy for loopback addresses: the host must listen on them in its own network.
		if a, err := netip.ParseAddrPort(t); err == nil && a.Addr().IsLoopback() {
			r.forward = append(r.forward, t)
		}
	}
	return r
}

// CheckTrusted says what is wrong with a HOST:PORT that an operator names.
func CheckTrusted(address string) error {
	host, port, err := net.SplitHostPort(address)
	if err != nil || host == "" || port == "" || strings.ContainsAny(address, " \t\r\n/") {
		return fmt.Errorf("%q is not HOST:PORT; an example is 127.0.0.1:5556", address)
	}
	if n, err := net.LookupPort("tcp", port); err != nil || n == 0 {
		return fmt.Errorf("%q: %q is not a port; choose 1 to 65535", address, port)
	}
	return nil
}

// Serve makes connections for one host until ctx ends.
func (r *Relay) Serve(ctx context.Context, host *hostapi.Client) {
	slots := make(chan struct{}, maxConnections)
	var wg sync.WaitGroup
	defer wg.Wait()
	for range idleOffers {
		wg.Go(func() {
			for ctx.Err() == nil {
				conn, address, err := host.OfferConnection(ctx, r.forward)
				if err != nil {
					sleep(ctx, retryInterval) // it is starting, or of a version that does not want any
					continue
				}
				select {
				case slots <- struct{}{}:
					wg.Go(func() {
						defer func() { <-slots }()
						r.carry(ctx, conn, address)
					})
				default:
					_ = hostapi.AnswerConnection(conn, fmt.Errorf("the cluster has %d connections already", maxConnections))
					_ = conn.Close() // it was told why
				}
			}
		})
	}
}

// carry connects conn, which it closes, with an address.
func (r *Relay) carry(ctx context.Context, conn net.Conn, address string) {
	defer conn.Close() //nolint:errcheck // nothing to lose
	dialCtx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	to, err := r.policy.Dial(dialCtx, "tcp", address)
	if answer := hostapi.AnswerConnection(conn, err); err != nil || answer != nil {
		if err != nil {
			r.log.Info("a local cluster is not connected", "address", address, "error", err)
		} else {
			_ = to.Close() // the host is gone
		}
		return
	}
	balancer.Relay(ctx, conn, to)
}

func sleep(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}
