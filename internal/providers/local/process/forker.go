package process

import (
	"errors"
	"os"
	"runtime"
	"sync"
	"syscall"
)

// Forker starts processes. All forks happen on one OS thread that lives as long as the
// Forker, because the parent-death signal is bound to the thread that forked: the children die
// (SIGKILL) with this process, however it ends, and not with a thread that Go no longer needs.
// Nothing else in this process may reap children it did not start.
type Forker struct {
	requests chan forkRequest
	quit     chan struct{}
	stop     func() // closes quit; idempotent
	done     chan struct{}
}

// forkRequest is one process to start; the answer comes once on reply.
type forkRequest struct {
	spec  Spec
	attr  *os.ProcAttr
	reply chan<- forkResult
}

type forkResult struct {
	child *os.Process
	err   error
}

// errForkerClosed is why nothing starts after Close.
var errForkerClosed = errors.New("the forker is closed")

// NewForker returns a Forker that holds its thread until Close.
func NewForker() *Forker {
	f := &Forker{requests: make(chan forkRequest), quit: make(chan struct{}), done: make(chan struct{})}
	f.stop = sync.OnceFunc(func() { close(f.quit) })
	go f.serve()
	return f
}

// Close gives the thread back. Stop the processes first: the kernel may kill those that still
// run, and they could not be started again. Idempotent.
func (f *Forker) Close() {
	f.stop()
	<-f.done
}

func (f *Forker) serve() {
	// Never unlocked, so that the thread serves nobody else and ends with this goroutine only.
	runtime.LockOSThread()
	defer close(f.done)
	for {
		select {
		case j := <-f.requests:
			child, err := os.StartProcess(j.spec.Path, j.spec.Args, j.attr)
			j.reply <- forkResult{child, err}
		case <-f.quit:
			return
		}
	}
}

// start runs spec in a group of its own with the given stdin, and output as stdout and stderr.
func (f *Forker) start(spec Spec, stdin, output *os.File) (*os.Process, error) {
	if spec.Dir != "" {
		// The fork would blame the program for a missing directory.
		if _, err := os.Stat(spec.Dir); err != nil {
			return nil, err
		}
	}
	reply := make(chan forkResult, 1)
	j := forkRequest{spec: spec, reply: reply, attr: &os.ProcAttr{
		Dir:   spec.Dir,
		Env:   append([]string{}, spec.Env...), // nil would mean our own
		Files: []*os.File{stdin, output, output},
		Sys:   &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL},
	}}
	select {
	case f.requests <- j:
		r := <-reply
		return r.child, r.err
	case <-f.quit:
		return nil, errForkerClosed
	}
}
