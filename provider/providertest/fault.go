package providertest

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"
)

// Call is a call that a fault happens to.
type Call struct {
	context.Context        // of the call
	Method          string // Validate or Topology
	Cluster         string // its name
	Do              func() // does what was asked for

	released <-chan struct{}
}

// Fault decides what a call does. Without an error, the answer is the provider's if Do was called, and empty if not.
type Fault func(Call) error

// Errors as clouds have them.
var (
	ErrTooMany   = errors.New("429: too many requests")
	ErrServer    = errors.New("500: internal server error")
	ErrReplyLost = errors.New("the connection was lost before the answer came")
)

// noFault lets the call go through to the provider.
func noFault(c Call) error {
	c.Do()
	return nil
}

// Panic makes the call panic.
func Panic(text string) Fault {
	return func(Call) error {
		panic(text) //nolint:forbidigo // it is the fault that is asked for
	}
}

// Fail does nothing and returns an error, such as ErrTooMany.
func Fail(err error) Fault { return func(Call) error { return err } }

// LoseReply does what was asked for, and returns ErrReplyLost.
func LoseReply() Fault {
	return func(c Call) error {
		c.Do()
		return ErrReplyLost
	}
}

// Hang does nothing until the context of the call ends.
func Hang() Fault {
	return func(c Call) error {
		select {
		case <-c.Done():
			return c.Err()
		case <-c.released:
			return errReleased
		}
	}
}

var errReleased = errors.New("it has hung long enough")

// HangForever does nothing, whatever becomes of the context, until Release.
func HangForever() Fault {
	return func(c Call) error {
		<-c.released
		return errReleased
	}
}

// Slow does what was asked for after a while, if the context lasts so long.
func Slow(d time.Duration) Fault {
	return func(c Call) error {
		t := time.NewTimer(d)
		defer t.Stop()
		select {
		case <-t.C:
			c.Do()
			return nil
		case <-c.Done():
			return fmt.Errorf("the cloud is slow: %w", c.Err())
		}
	}
}

// UseMemory allocates memory and writes to all its pages, while it does what was asked for.
func UseMemory(bytes int) Fault {
	return func(c Call) error {
		const page = 4096
		b := make([]byte, bytes)
		for i := 0; i < len(b); i += page {
			b[i] = 1
		}
		c.Do()
		runtime.KeepAlive(b)
		return nil
	}
}
