package balancer

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
)

// bufferSize is what each direction of a connection costs in memory, busy or idle.
const bufferSize = 8 << 10

// errNoHalfClose ends a relay to a connection whose write side cannot be closed alone.
var errNoHalfClose = errors.New("connection cannot be closed in one direction")

// Relay copies in both directions until both have ended, one has failed, or ctx ends, and
// closes both connections. When it returns nothing of it runs any more.
func Relay(ctx context.Context, client, server net.Conn) {
	ctx, cut := context.WithCancel(ctx)
	defer cut()
	aborted := make(chan struct{})
	stop := context.AfterFunc(ctx, func() { // runs at once if ctx has ended before we got here
		defer close(aborted)
		resetConnection(client)
		resetConnection(server)
	})
	var ended atomic.Int32
	direction := func(to, from net.Conn) {
		err := copyStream(to, from)
		if first := ended.Add(1) == 1; first && err != nil {
			cut() // the other direction may be silent and would never notice
		}
	}
	var wg sync.WaitGroup
	wg.Go(func() { direction(server, client) })
	direction(client, server)
	wg.Wait()
	// The function has begun to run: both resets must be over before the connections are closed for good.
	if !stop() {
		<-aborted
	}
	_, _ = client.Close(), server.Close()
}

// copyStream copies until from ends and then closes the write side of to, which may go on sending.
func copyStream(to, from net.Conn) error {
	// The bare Reader and Writer keep io from using splice(2), which would hold two file
	// descriptors for each direction even of a silent connection.
	_, err := io.CopyBuffer(struct{ io.Writer }{to}, struct{ io.Reader }{from}, make([]byte, bufferSize))
	if err != nil {
		return err
	}
	half, ok := to.(interface{ CloseWrite() error })
	if !ok {
		return errNoHalfClose
	}
	return half.CloseWrite()
}

// resetConnection closes conn with a reset and drops what is still to be sent: the other end learns at
// once that the stream is not whole, and nothing lingers in the kernel for one that does not read.
func resetConnection(conn net.Conn) {
	if c, ok := conn.(interface{ SetLinger(sec int) error }); ok {
		_ = c.SetLinger(0)
	}
	_ = conn.Close()
}
