package fetch_test

import (
	"context"
	"encoding/binary"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
)

// canary listens, and counts connections that should never be made. Where a machine has no IPv6 nobody can
// listen there; that a request is refused must be true all the same.
func canary(t *testing.T, address string) (port string, reached *atomic.Int32) {
	t.Helper()
	l, err := net.Listen("tcp", net.JoinHostPort(address, "0"))
	reached = &atomic.Int32{}
	if err != nil && address == "::1" {
		return "1", reached
	}
	if err != nil {
		t.Fatal(err)
	}
	var done sync.WaitGroup
	done.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			reached.Add(1)
			_ = c.Close()
		}
	})
	t.Cleanup(func() { _ = l.Close(); done.Wait() })
	_, port, _ = net.SplitHostPort(l.Addr().String())
	return port, reached
}

func serve(t *testing.T, h http.HandlerFunc) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s
}

func host(s *httptest.Server) string { return s.Listener.Addr().String() }

// names is a resolver that asks answer for the addresses of a name, each time anew.
func names(answer func(name string) []netip.Addr) *net.Resolver {
	return &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		client, server := net.Pipe()
		go func() {
			defer server.Close()
			for {
				var size [2]byte
				if _, err := io.ReadFull(server, size[:]); err != nil {
					return
				}
				query := make([]byte, binary.BigEndian.Uint16(size[:]))
				if _, err := io.ReadFull(server, query); err != nil {
					return
				}
				reply := reply(query, answer)
				if _, err := server.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(reply))), reply...)); err != nil {
					return
				}
			}
		}()
		return client, nil
	}}
}

// reply makes the DNS answer to a query with one question.
func reply(query []byte, answer func(string) []netip.Addr) []byte {
	name, end := "", 12
	for query[end] != 0 {
		n := int(query[end])
		name += string(query[end+1:end+1+n]) + "."
		end += n + 1
	}
	end += 5 // the end of the name, its type and its class
	kind := binary.BigEndian.Uint16(query[end-4:])
	var records []byte
	count := 0
	for _, a := range answer(name) {
		if a.Is4() != (kind == 1) {
			continue
		}
		count++
		records = append(records, 0xc0, 12, byte(kind>>8), byte(kind), 0, 1, 0, 0, 0, 0, 0, byte(a.BitLen()/8))
		records = append(records, a.AsSlice()...)
	}
	out := append([]byte{query[0], query[1], 0x81, 0x80, 0, 1, 0, byte(count), 0, 0, 0, 0}, query[12:end]...)
	return append(out, records...)
}
