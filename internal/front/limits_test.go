package front

import (
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	testingclock "k8s.io/utils/clock/testing"
)

// Somebody whom the plane knows is held up by nobody else at the same address, and by themselves only.
func TestLimiter(t *testing.T) {
	c := testingclock.NewFakePassiveClock(time.Unix(1000, 0))
	l := newLimiter(c)
	l.learn("known", true)
	for i := range requestBurst {
		if ok, _ := l.allow("here", ""); !ok {
			t.Fatalf("request %d is one too many", i)
		}
	}
	for _, x := range []struct {
		address, token string
		want           bool
	}{{"here", "", false}, {"here", "new", false}, {"here", "known", true}, {"there", "", true}, {"there", "new", true}} {
		if got, known := l.allow(x.address, x.token); got != x.want || known != (x.token == "known") {
			t.Errorf("%s with token %q: %t", x.address, x.token, got)
		}
	}
	for range requestBurst {
		l.allow("there", "known")
	}
	if ok, _ := l.allow("there", "known"); ok {
		t.Error("one token may ask without end")
	}
	l.learn("known", false)
	c.SetTime(c.Now().Add(time.Second))
	n := 0
	for {
		if ok, _ := l.allow("here", "known"); !ok {
			break
		}
		n++
	}
	if n != requestsPerSecond {
		t.Errorf("%d requests after a second, not %d", n, requestsPerSecond)
	}
}

func TestAddressOf(t *testing.T) {
	for in, want := range map[string]string{
		"192.0.2.1:80": "192.0.2.1", "[::ffff:192.0.2.1]:80": "192.0.2.1", "[2001:db8:1:2:3:4:5:6]:1": "2001:db8:1:2::/64",
		"[fe80::1%eth0]:1": "fe80::/64", "odd": "odd", "name:1": "name",
	} {
		if got := addressOf(in); got != want {
			t.Errorf("%s: %s, want %s", in, got, want)
		}
	}
}

func TestHashToken(t *testing.T) {
	r := httptest.NewRequest(http.MethodGet, "/", http.NoBody)
	if hashToken(r) != "" {
		t.Error("no token has a hash")
	}
	r.Header.Set("Authorization", "Bearer a")
	a := hashToken(r)
	r.Header.Set("Authorization", "Bearer b")
	if b := hashToken(r); a == b || a == "a" || b == "" {
		t.Errorf("%s %s", a, b)
	}
}

// fakeListener hands out connections that lead nowhere.
type fakeListener struct{ net.Listener }

type fakeConn struct {
	net.Conn
	closed *int
}

func (fakeListener) Accept() (net.Conn, error) { return fakeConn{closed: new(int)}, nil }
func (fakeConn) RemoteAddr() net.Addr          { return &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 1} }
func (c fakeConn) Close() error                { *c.closed++; return nil }

func TestLimitedListener(t *testing.T) {
	l := newLimitedListener(fakeListener{})
	var all []net.Conn
	for range connectionsPerIP {
		c, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, c)
	}
	if l.take("192.0.2.1") {
		t.Error("one address has more than its part")
	}
	if !l.take("192.0.2.2") {
		t.Error("another address has no place")
	}
	_ = all[0].Close()
	_ = all[0].Close() // twice is once
	if !l.take("192.0.2.1") || l.take("192.0.2.1") {
		t.Error("a closed connection gives one place")
	}
}

func TestLimitBodies(t *testing.T) {
	release, inside := make(chan struct{}), make(chan struct{})
	h := limitBodies(func(w http.ResponseWriter) { w.WriteHeader(http.StatusTooManyRequests) }, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.ContentLength > largeBody {
			inside <- struct{}{}
			<-release
		}
	}))
	ask := func(length int64) int {
		r := httptest.NewRequest(http.MethodPut, "/", http.NoBody)
		r.ContentLength = length
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w.Code
	}
	ended := make(chan int)
	for range maxLargeBodies {
		go func() { ended <- ask(largeBody + 1) }()
		<-inside
	}
	if got := []int{ask(largeBody + 1), ask(-1), ask(largeBody), ask(0)}; got[0] != 429 || got[1] != 429 || got[2] != 200 || got[3] != 200 {
		t.Errorf("while there are as many as there may be: %v", got)
	}
	close(release)
	for range maxLargeBodies {
		<-ended
	}
	if got := ask(-1); got != 200 {
		t.Errorf("when they have ended: %d", got)
	}
}
