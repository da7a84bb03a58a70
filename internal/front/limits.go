package front

import (
	"crypto/sha256"
	"encoding/hex"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"

	"golang.org/x/time/rate"
	"k8s.io/utils/clock"
	"k8s.io/utils/lru"

	"github.com/polder-kaas/polder/internal/front/rest"
)

// Limits of one caller. They are far above what people and programs need, and keep a single one from using the door up.
// Among those who are let in, the plane itself is fair: see its flow control.
const (
	requestsPerSecond = 50 // of one token, and of all at one address that the plane does not believe, or not yet
	requestBurst      = 200
	connectionsPerIP  = 1024 // behind a balancer, all have one address
	maxConnections    = 4096
	rememberedCallers = 16384 // the longest silent are forgotten first
)

// limiter counts requests by who makes them: by token, and before a token was believed, by address.
type limiter struct {
	clock    clock.PassiveClock
	mu       sync.Mutex
	rates    *lru.Cache
	believed *lru.Cache // tokens that the plane has believed
}

func newLimiter(c clock.PassiveClock) *limiter {
	return &limiter{clock: c, rates: lru.New(rememberedCallers), believed: lru.New(rememberedCallers)}
}

// allow says whether a request may go on. Whoever is known is held up by nobody else at the same address.
func (l *limiter) allow(address, token string) (allowed, known bool) {
	if _, known = l.believed.Get(token); !known && !l.take("address "+address) {
		return false, known
	}
	return token == "" || l.take("token "+token), known
}

// learn remembers whether the plane believes a token.
func (l *limiter) learn(token string, believed bool) {
	if believed {
		l.believed.Add(token, true)
		return
	}
	l.believed.Remove(token)
}

// take says whether a caller may ask once more now.
func (l *limiter) take(caller string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	r, ok := l.rates.Get(caller)
	if !ok {
		r = rate.NewLimiter(requestsPerSecond, requestBurst)
		l.rates.Add(caller, r)
	}
	return r.(*rate.Limiter).AllowN(l.clock.Now(), 1) //nolint:forcetypeassert // nothing else is put in
}

// addressOf is who a connection is from: an address or, of IPv6, the network that one customer of a provider has.
func addressOf(remote string) string {
	host, _, err := net.SplitHostPort(remote)
	if err != nil {
		return remote
	}
	a, err := netip.ParseAddr(host)
	if err != nil {
		return host
	}
	a = a.Unmap().WithZone("")
	if a.Is6() {
		const bitsOfOneCustomer = 64
		p, _ := a.Prefix(bitsOfOneCustomer) // 64 bits are there
		return p.String()
	}
	return a.String()
}

// limitRequests answers those that are too many before anything is done with them.
func limitRequests(l *limiter, refuse func(http.ResponseWriter), next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		token := hashToken(r)
		allowed, known := l.allow(addressOf(r.RemoteAddr), token)
		if !allowed {
			refuse(w)
			return
		}
		next.ServeHTTP(w, r.WithContext(rest.WithBelieved(r.Context(), rest.Believed{
			Known: known, Tell: func(yes bool) { l.learn(token, yes) },
		})))
	})
}

// Large bodies are those that no file of a cluster has by accident. Each is in memory as a whole, some times over.
const (
	largeBody      = 64 << 10
	maxLargeBodies = 32
)

// limitBodies lets only some large bodies be in memory at the same time.
func limitBodies(refuse func(http.ResponseWriter), next http.Handler) http.Handler {
	places := make(chan struct{}, maxLargeBodies)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if 0 <= r.ContentLength && r.ContentLength <= largeBody {
			next.ServeHTTP(w, r)
			return
		}
		select {
		case places <- struct{}{}:
			defer func() { <-places }()
			next.ServeHTTP(w, r)
		default:
			refuse(w)
		}
	})
}

// hashToken is what is kept, in memory only, of the token of a request; nothing if it has none.
func hashToken(r *http.Request) string {
	_, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if token == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])
}

// limitedListener has a bounded number of connections, and of each address, too. Those beyond it are closed at once.
type limitedListener struct {
	net.Listener
	mu    sync.Mutex
	open  map[string]int
	total int
}

func newLimitedListener(l net.Listener) *limitedListener {
	return &limitedListener{Listener: l, open: map[string]int{}}
}

// Accept returns the next connection that is not too many.
func (l *limitedListener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if address := addressOf(c.RemoteAddr().String()); l.take(address) {
			return &countedConn{Conn: c, release: sync.OnceFunc(func() { l.give(address) })}, nil
		}
		_ = c.Close() // nobody reads what could be said
	}
}

func (l *limitedListener) take(address string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.total >= maxConnections || l.open[address] >= connectionsPerIP {
		return false
	}
	l.total++
	l.open[address]++
	return true
}

func (l *limitedListener) give(address string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.total--
	if l.open[address]--; l.open[address] == 0 {
		delete(l.open, address)
	}
}

type countedConn struct {
	net.Conn
	release func()
}

// Close gives the place to another.
func (c *countedConn) Close() error {
	c.release()
	return c.Conn.Close()
}
