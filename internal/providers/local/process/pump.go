package process

import (
	"bytes"
	"os"
	"time"
)

// readSize is how much is read at once: half of what a pipe holds.
const readSize = 32 << 10

// pump copies the output of one run from its pipe to the log.
type pump struct {
	pipe *os.File
	log  *sink
	tail tail // belongs to copyOutput until done closes
	done chan struct{}
}

// newPump starts to copy; finish must be called.
func newPump(pipe *os.File, log *sink) *pump {
	p := &pump{pipe: pipe, log: log, done: make(chan struct{})}
	go p.copyOutput()
	return p
}

func (p *pump) copyOutput() {
	defer close(p.done)
	buf := make([]byte, readSize)
	midLine := false
	for {
		n, err := p.pipe.Read(buf)
		if n > 0 {
			midLine = !bytes.HasSuffix(buf[:n], []byte{'\n'})
			if out := dropWatchFailures(buf[:n]); len(out) > 0 {
				p.tail.add(out)
				p.log.enqueue(out)
			}
		}
		if err != nil {
			break // all writers are gone, or finish has waited long enough
		}
	}
	if midLine {
		p.log.enqueue([]byte{'\n'}) // the next run begins a line of its own
	}
}

// watchFailure is what Kubernetes says every minute of each of its files, because it gets no watcher (see package
// confine) and reads them every minute instead. Its quotes would be escaped in what a client of the API can have
// logged.
var watchFailure = []byte(`will retry later" err="error creating fsnotify watcher`)

// dropWatchFailures returns output without these lines, which are wanted and would push everything else out of the log.
// One that is cut by the end of what was read stays.
func dropWatchFailures(out []byte) []byte {
	if !bytes.Contains(out, watchFailure) {
		return out
	}
	var kept []byte
	for line := range bytes.Lines(out) {
		if !bytes.Contains(line, watchFailure) {
			kept = append(kept, line...)
		}
	}
	return kept
}

// finish copies what is still in the pipe and returns the last lines. A process that left the group may hold the pipe
// open for ever; limit is for that, and its output is lost after it.
func (p *pump) finish(limit time.Duration) *tail {
	if err := p.pipe.SetReadDeadline(time.Now().Add(limit)); err != nil { //nolint:forbidigo // the kernel's clock is meant
		_ = p.pipe.Close() // ends the reading, too
	}
	<-p.done
	_ = p.pipe.Close() // only read
	return &p.tail
}
