package host

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/polder-kaas/polder/internal/providers/local/outside"
	"github.com/polder-kaas/polder/internal/providers/local/processtest"
)

// greeter is a listener that greets whoever connects, and counts them.
func greeter(t *testing.T) (address string, reached *atomic.Int32) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	reached = &atomic.Int32{}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			reached.Add(1)
			fmt.Fprintln(c, "hello")
			_ = c.Close()
		}
	}()
	return l.Addr().String(), reached
}

// connect asks the host's proxy for a connection, and returns the answer and what came through it.
func connect(t *testing.T, address string) (status, text string) {
	t.Helper()
	var s, b string
	processtest.Eventually(t, "the proxy answers", func() bool {
		h := Host{}
		h.cluster.Addresses, h.cluster.Port = testBlock(), 6443
		c, err := net.Dial("tcp", h.proxyAddress().String())
		if err != nil {
			return false
		}
		defer c.Close()
		fmt.Fprintf(c, "CONNECT %s HTTP/1.1\r\nHost: %s\r\n\r\n", address, address)
		res, err := http.ReadResponse(bufio.NewReader(c), &http.Request{Method: http.MethodConnect})
		if err != nil {
			t.Error(err)
			return true
		}
		body, _ := io.ReadAll(res.Body)
		s, b = res.Status, string(body)
		return true
	})
	return s, b
}

// A cluster in a network of its own reaches what polderd lets it reach, and only while polderd runs.
func TestOutside(t *testing.T) {
	f := newFixture(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	f.cfg.Endpoint = l
	f.run(t)
	friend, met := greeter(t)
	secret, touched := greeter(t)
	if status, text := connect(t, friend); !strings.HasPrefix(status, "502") || !strings.Contains(text, "does not run") {
		t.Errorf("without polderd: %s %s", status, text)
	}
	for range 3 { // each relay leaves offers behind that nobody answers any more
		ctx, stop := context.WithCancel(t.Context())
		served := make(chan struct{})
		go func() {
			defer close(served)
			outside.NewRelay([]string{friend}, slog.New(slog.DiscardHandler)).Serve(ctx, f.Client)
		}()
		before := met.Load()
		for range 3 {
			if status, text := connect(t, friend); !strings.HasPrefix(status, "200") {
				t.Errorf("what the operator trusts: %s %s", status, text)
			}
		}
		if met.Load() != before+3 {
			t.Errorf("reached %d times, want 3", met.Load()-before)
		}
		for _, a := range []string{secret, "localhost:" + secret[strings.LastIndex(secret, ":")+1:], "[::ffff:127.0.0.1]:1", "169.254.169.254:80", "nonsense", "x:1\r\ny"} {
			if status, _ := connect(t, a); strings.HasPrefix(status, "200") {
				t.Errorf("%s: %s", a, status)
			}
		}
		stop()
		<-served
	}
	if touched.Load() != 0 {
		t.Error("a listener of the computer was reached")
	}
}

func TestCheckTrusted(t *testing.T) {
	for address, good := range map[string]bool{
		"127.0.0.1:5556": true, "dex.example:443": true, "[::1]:80": true, "127.0.0.1": false, ":80": false, "a:": false, "a:99999": false, "https://a:1": false, "a b:1": false,
	} {
		if err := outside.CheckTrusted(address); (err == nil) != good {
			t.Errorf("%s: %v", address, err)
		}
	}
}
