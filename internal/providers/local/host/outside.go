package host

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"time"

	"github.com/polder-kaas/polder/internal/providers/local/balancer"
	"github.com/polder-kaas/polder/internal/providers/local/hostapi"
)

const (
	maxOffers    = 4 // more than polderd makes at a time, so that those of one that has ended push out no other
	offerTimeout = 5 * time.Second
)

// outsideConnections has the connections polderd offers, and the loopback addresses that lead to addresses outside.
type outsideConnections struct {
	mu      sync.Mutex
	offers  []net.Conn // the newest last
	changed chan struct{}
	forward map[string]bool
}

func newOutsideConnections() *outsideConnections {
	return &outsideConnections{changed: make(chan struct{}), forward: map[string]bool{}}
}

// add keeps an offer; the oldest goes when there are too many.
func (o *outsideConnections) add(c net.Conn) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.offers = append(o.offers, c)
	if len(o.offers) > maxOffers {
		_ = o.offers[0].Close() // whoever made it makes another, or is gone
		o.offers = o.offers[1:]
	}
	close(o.changed)
	o.changed = make(chan struct{})
}

// take waits for an offer. The newest is the surest to be of a polderd that runs.
func (o *outsideConnections) take(ctx context.Context) (net.Conn, error) {
	for {
		o.mu.Lock()
		changed := o.changed
		if n := len(o.offers); n > 0 {
			c := o.offers[n-1]
			o.offers = o.offers[:n-1]
			o.mu.Unlock()
			return c, nil
		}
		o.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, errors.New("polderd, who makes connections for local clusters, does not run")
		}
	}
}

// dial returns a connection to an address outside.
func (o *outsideConnections) dial(ctx context.Context, address string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, offerTimeout)
	defer cancel()
	for {
		c, err := o.take(ctx)
		if err != nil {
			return nil, err
		}
		err = hostapi.UseConnection(c, address)
		if err == nil {
			return c, nil
		}
		_ = c.Close() // of no use
		if !errors.Is(err, hostapi.ErrStaleOffer) {
			return nil, err
		}
	}
}

// addForward returns the addresses that were not known.
func (o *outsideConnections) addForward(addresses []string) (added []string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, a := range addresses {
		if a != "" && !o.forward[a] {
			o.forward[a] = true
			added = append(added, a)
		}
	}
	return added
}

// keepOffer takes a connection that polderd offers.
func (h *Host) keepOffer(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Upgrade") != hostapi.OutsideProtocol || h.cfg.Endpoint == nil {
		http.Error(w, "the host is in no network of its own", http.StatusConflict)
		return
	}
	hijacker, ok := w.(http.Hijacker)
	if !ok {
		http.Error(w, "the connection cannot be taken over", http.StatusInternalServerError)
		return
	}
	c, _, err := hijacker.Hijack()
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	h.outside.add(c)
	for _, a := range h.outside.addForward(strings.Split(r.Header.Get(hostapi.ForwardHeader), ",")) {
		go h.serveForward(h.ctx, a)
	}
}

// serveForward listens on a loopback address of the host's own network, and leads connections to the same address of
// the computer's.
func (h *Host) serveForward(ctx context.Context, address string) {
	h.serveListener(ctx, address, func(ctx context.Context, c net.Conn) { h.connectOutside(ctx, c, address) })
}

// proxyAddress is where the API servers of the cluster ask for connections to the outside: the second address of the
// block, after the endpoint's.
func (h *Host) proxyAddress() netip.AddrPort {
	return netip.AddrPortFrom(h.cluster.Endpoint().Addr().Next(), proxyPort)
}

const proxyPort = 3128

// serveProxy answers CONNECT requests, if the host is in a network of its own.
func (h *Host) serveProxy(ctx context.Context) {
	if h.cfg.Endpoint == nil {
		return
	}
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		hijacker, ok := w.(http.Hijacker)
		if r.Method != http.MethodConnect || !ok {
			http.Error(w, "only CONNECT is answered here", http.StatusMethodNotAllowed)
			return
		}
		to, err := h.outside.dial(r.Context(), r.Host)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		c, _, err := hijacker.Hijack()
		if err != nil {
			_ = to.Close() // nobody is left to use it
			return
		}
		if _, err := fmt.Fprint(c, "HTTP/1.1 200 Connected\r\n\r\n"); err != nil {
			_, _ = c.Close(), to.Close() // as above
			return
		}
		balancer.Relay(ctx, c, to)
	})
	for ctx.Err() == nil {
		var lc net.ListenConfig
		l, err := lc.Listen(ctx, "tcp", h.proxyAddress().String())
		if err == nil {
			err = serveHTTP(ctx, l, handler)
		}
		if err != nil && ctx.Err() == nil {
			h.cfg.Log.Error("connections to the outside cannot be made", "error", err)
			sleep(ctx, time.Second)
		}
	}
}

// connectOutside relays between c, which it closes, and an address outside.
func (h *Host) connectOutside(ctx context.Context, c net.Conn, address string) {
	defer c.Close() //nolint:errcheck // nothing to lose
	to, err := h.outside.dial(ctx, address)
	if err != nil {
		h.cfg.Log.Warn("no connection to the outside", "address", address, "error", err)
		return
	}
	balancer.Relay(ctx, c, to)
}

// serveListener accepts on an address until ctx ends, and tries again if it cannot.
func (h *Host) serveListener(ctx context.Context, address string, serve func(context.Context, net.Conn)) {
	for ctx.Err() == nil {
		var lc net.ListenConfig
		l, err := lc.Listen(ctx, "tcp", address)
		if err == nil {
			stop := context.AfterFunc(ctx, func() { _ = l.Close() }) // ends Accept
			err = acceptAll(ctx, l, serve)
			stop()
			_ = l.Close() // twice does no harm
		}
		if err != nil && ctx.Err() == nil {
			h.cfg.Log.Warn("connections cannot be forwarded", "address", address, "error", err)
			sleep(ctx, time.Second)
		}
	}
}

func acceptAll(ctx context.Context, l net.Listener, serve func(context.Context, net.Conn)) error {
	for {
		c, err := l.Accept()
		if err != nil {
			return err
		}
		go serve(ctx, c)
	}
}

// proxyEnvironment tells an API server to ask the host for connections to the outside. Networks that clusters have
// inside, and private ones, are not asked for: nobody would be reached there.
func (h *Host) proxyEnvironment() []string {
	if h.cfg.Endpoint == nil {
		return nil
	}
	return []string{
		"HTTPS_PROXY=http://" + h.proxyAddress().String(),
		"NO_PROXY=.svc,.cluster.local,10.0.0.0/8,172.16.0.0/12,192.168.0.0/16,100.64.0.0/10,198.18.0.0/15,fc00::/7",
	}
}
