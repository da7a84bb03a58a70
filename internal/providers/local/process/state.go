package process

import (
	"fmt"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// State is that of a process at one moment.
type State struct {
	PID          int       // 0 while not running
	StartedAt    time.Time // start of the current run, or of the last
	Restarts     int       // starts after the first, including those that did not succeed
	LastExit     *Exit     // nil until it has ended once; not to be changed
	NextStart    time.Time // while backing off
	DroppedBytes int64     // output that could not be logged
}

// Exit says how a run ended.
type Exit struct {
	Code   int       // 128 + the signal if there was one, as in a shell; -1 if it could not be started
	Signal string    // such as SIGKILL; empty if it ended by itself
	At     time.Time // when
	// the last lines it printed but for blank ones, at most 20 of at most 500 bytes; or why it did not start
	Output []string
}

// unknownExitCode stands for an exit code that is not known.
const unknownExitCode = 255

// String is one sentence without its subject and full stop: "exited with code 1 at …: last line".
func (e Exit) String() string {
	what := fmt.Sprintf("exited with code %d", e.Code)
	if e.Signal != "" {
		what = "was ended by " + e.Signal
	} else if e.Code < 0 {
		what = "could not be started"
	}
	s := what + " at " + e.At.UTC().Format(time.RFC3339)
	if n := len(e.Output); n > 0 {
		s += ": " + e.Output[n-1]
	}
	return s
}

func newStartFailure(err error, at time.Time) Exit {
	var t tail
	t.add([]byte(err.Error()))
	return Exit{Code: -1, At: at, Output: t.finish()}
}

// newExit makes an Exit of what Wait returned. Wait has an error only if somebody else in this
// process has reaped the child.
func newExit(status *os.ProcessState, err error, at time.Time, t *tail) Exit {
	e := Exit{Code: unknownExitCode, At: at}
	if err != nil {
		t.add([]byte("\nits exit code is lost: " + err.Error()))
	} else if ws, ok := status.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		e.Code, e.Signal = 128+int(ws.Signal()), unix.SignalName(ws.Signal())
	} else {
		e.Code = status.ExitCode()
	}
	e.Output = t.finish()
	return e
}
