package render

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/polder-kaas/polder/stack/archive"
)

// Renderer starts a child process for each Input. The zero value is ready, in programs that call
// Main. It may be used by many goroutines.
type Renderer struct {
	Limits     Limits
	Executable string // empty: the running program
}

const (
	maxJobs = 256
	// maxOverhead is how many times larger than its text the output may be: JSON makes six bytes of some
	// characters.
	maxOverhead = 6
	// maxTotal is how much all charts together may render to, in outputs of the largest size.
	maxTotal = 4
)

// Render renders all jobs in one child process. There is an output for each job, in their order; a
// chart that cannot be rendered has its Err there. The error is about the child itself.
func (r *Renderer) Render(ctx context.Context, in Input) ([]Output, error) {
	if r.Executable == "" && !mainCalled.Load() {
		return nil, errors.New(
			"rendering in a child process: this program does not call render.Main, so a child would be all of it again",
		)
	}
	if len(in.Jobs) > maxJobs {
		return nil, fmt.Errorf("there are %d charts to render; at most %d are taken", len(in.Jobs), maxJobs)
	}
	out := make([]Output, len(in.Jobs))
	send := in
	send.Jobs = nil
	var index []int // of the jobs that are sent
	left := archive.DefaultLimits.Total
	for i, j := range in.Jobs {
		out[i].Job = j.Name
		if j.Chart, out[i].Err = unpackDependencies(j.Chart, &left); out[i].Err == nil {
			send.Jobs, index = append(send.Jobs, j), append(index, i)
		}
	}
	if len(send.Jobs) == 0 {
		return out, nil
	}
	done, err := r.run(ctx, task{Input: send, Limits: r.Limits.withDefaults()})
	for i, o := range done {
		out[index[i]] = o
	}
	if err == nil {
		return out, nil
	}
	var stopped *Error
	if !errors.As(err, &stopped) {
		return nil, fmt.Errorf("rendering in a child process: %w", err)
	}
	// The child was stopped at the first chart without an output; those after it were not tried.
	for n, i := range index[len(done):] {
		out[i].Err = stopped
		if n > 0 {
			out[i].Err = errorf("it was not rendered, because rendering %s had to be stopped", in.Jobs[index[len(done)]].Name)
		}
	}
	return out, nil
}

// run returns the outputs until the child ended, and why it ended early. That is an *Error if the
// templates are to blame.
func (r *Renderer) run(caller context.Context, t task) ([]Output, error) {
	ctx, cancel := context.WithTimeout(caller, t.Limits.Time)
	defer cancel()
	input, err := json.Marshal(t)
	if err != nil {
		return nil, err
	}
	cmd, err := r.command(ctx)
	if err != nil {
		return nil, err
	}
	childStderr := &headBuffer{limit: 16 << 10}
	cmd.Stdin, cmd.Stderr = bytes.NewReader(input), childStderr
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	done, readErr := readOutputs(stdout, len(t.Input.Jobs), t.Limits)
	if readErr != nil {
		cancel() // the child would wait for ever until its output is read
	}
	err = cmd.Wait()
	if readErr == nil && err == nil {
		return done, nil
	}
	if caller.Err() != nil { // not the charts' fault
		return nil, context.Cause(caller)
	}
	return done, explainExit(ctx, cmd.ProcessState, t.Limits, childStderr.String(), errors.Join(err, readErr))
}

// command runs this program under another name: without its environment, in the root directory.
func (r *Renderer) command(ctx context.Context) (*exec.Cmd, error) {
	exe := r.Executable
	if exe == "" {
		var err error
		if exe, err = selfExecutable(); err != nil {
			return nil, err
		}
	}
	cmd := exec.CommandContext(ctx, exe) //nolint:gosec // it is this program, or the one its caller chose
	cmd.Args = []string{childName}
	// Until it reads its task, the child collects no garbage: its packages make little at the start, and keep it.
	cmd.Env = []string{"TZ=UTC", "GOMAXPROCS=2", "GOTRACEBACK=none", "GOGC=off"}
	cmd.Dir = filepath.VolumeName(exe) + string(filepath.Separator)
	cmd.WaitDelay = time.Second
	return cmd, nil
}

// selfExecutable gives the path of the running program, on Linux even if its file was replaced by a newer one.
func selfExecutable() (string, error) {
	if runtime.GOOS == "linux" {
		return "/proc/self/exe", nil
	}
	return os.Executable()
}

func readOutputs(r io.Reader, n int, l Limits) ([]Output, error) {
	// Names, paths and an error of each output have room in 4 KiB for each job.
	dec := json.NewDecoder(io.LimitReader(r, maxTotal*maxOverhead*l.Output+maxJobs<<12+maxKeys*maxKeySize))
	var out []Output
	for len(out) < n {
		var o Output
		if err := dec.Decode(&o); err != nil {
			if errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			return out, err
		}
		out = append(out, o)
	}
	return out, nil
}

// explainExit says in one sentence what stopped the child.
func explainExit(ctx context.Context, s *os.ProcessState, l Limits, stderr string, err error) error {
	first, _, _ := strings.Cut(stderr, "\n")
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return errorf("rendering took longer than %s and was stopped", l.Time)
	case strings.Contains(stderr, "stack overflow") || strings.Contains(stderr, "stack exceeds"):
		return errorf("its templates call each other without end")
	case isOutOfMemory(stderr):
		return errorf("rendering needed more than %d MiB of memory and was stopped", l.Memory>>20)
	case s != nil && usedAllCPU(s.UserTime()+s.SystemTime(), s.String(), l):
		return errorf("rendering took more than %s of CPU time and was stopped", l.CPU)
	case first != "":
		return fmt.Errorf("%w: %s", err, first)
	}
	return err
}

// isOutOfMemory knows what Go's runtime writes when it gets no more memory. Sometimes the runtime itself crashes
// then: such a fault begins with the signal, while that of a program begins with panic.
func isOutOfMemory(stderr string) bool {
	for _, words := range []string{"out of memory", "cannot allocate memory", "cannot map pages"} {
		if strings.Contains(stderr, words) {
			return true
		}
	}
	return strings.HasPrefix(stderr, "SIGSEGV")
}

// usedAllCPU says whether a process has had all its CPU time. The kernel kills it by a count of its own, in ticks,
// which can be well above the time that it reports afterwards if the machine is busy.
func usedAllCPU(used time.Duration, ended string, l Limits) bool {
	return used >= l.CPU-100*time.Millisecond || ended == "signal: killed" && used >= l.CPU/2
}

// headBuffer keeps the beginning of what the child writes to stderr, and lets it write on.
type headBuffer struct {
	bytes.Buffer
	limit int
}

func (h *headBuffer) Write(p []byte) (int, error) {
	if room := h.limit - h.Len(); room > 0 {
		h.Buffer.Write(p[:min(room, len(p))])
	}
	return len(p), nil
}
