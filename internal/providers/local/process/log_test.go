package process

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/polder-kaas/polder/internal/files/logfile"
	"github.com/polder-kaas/polder/internal/providers/local/processtest"
)

func TestRotationLosesNoLine(t *testing.T) {
	const n, width = 50_000, 12
	spec := testSpec(t.TempDir(), "count", fmt.Sprint(n))
	spec.Log.MaxBytes = n*width/3 + 100
	p, _ := startForTest(t, spec, fastTiming)
	last := fmt.Sprintf("line %06d\n", n-1)
	processtest.Eventually(t, "the last line", func() bool {
		b, _ := os.ReadFile(spec.Log.Path)
		return bytes.HasSuffix(b, []byte(last))
	})
	p.Kill()
	lines := readLogLines(spec.Log)
	if _, err := os.Stat(spec.Log.Path + ".2"); err != nil {
		t.Errorf("it was not set aside twice: %v", err)
	}
	for i, line := range lines {
		if line != fmt.Sprintf("line %06d", i) {
			t.Fatalf("line %d is %q", i, line)
		}
	}
	if len(lines) != n || p.State().DroppedBytes != 0 {
		t.Errorf("%d lines of %d, %d bytes dropped", len(lines), n, p.State().DroppedBytes)
	}
}

func TestDropWatchFailures(t *testing.T) {
	const failure = `E1117 1 dynamic_cafile_content.go:170] "Failed to watch CA file, will retry later" err="error creating fsnotify watcher: too many open files"` + "\n"
	for in, want := range map[string]string{
		"a\nb\n":                          "a\nb\n",
		failure:                           "",
		"a\n" + failure + failure + "b":   "a\nb",
		"GET \\" + failure[50:90] + "x\n": "GET \\" + failure[50:90] + "x\n",
	} {
		if got := string(dropWatchFailures([]byte(in))); got != want {
			t.Errorf("%q: %q", in, got)
		}
	}
}

func TestLogThatCannotBeWritten(t *testing.T) {
	blocked := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(blocked, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	spec := testSpec(blocked, "say", "0", "unheard")
	p, _ := startForTest(t, spec, fastTiming)
	e := waitForFirstExit(t, p)
	if diff := cmp.Diff([]string{"unheard"}, e.Output); e.Code != 0 || diff != "" {
		t.Errorf("exit %v: %s", e, diff)
	}
	processtest.Eventually(t, "the loss is counted", func() bool { return p.State().DroppedBytes >= int64(len("unheard\n")) })
	if err := os.Remove(blocked); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(blocked, 0o700); err != nil {
		t.Fatal(err)
	}
	processtest.Eventually(t, "it is logged again once that is possible", func() bool { return len(readLogLines(spec.Log)) > 0 })
}

// stalledLog makes a log of a FIFO that nobody reads: writes block once it is full.
func stalledLog(t *testing.T, l logfile.File) *os.File {
	t.Helper()
	if err := unix.Mkfifo(l.Path, 0o600); err != nil {
		t.Fatal(err)
	}
	fifo, err := os.OpenFile(l.Path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { fifo.Close() })
	return fifo
}

// drain reads until done closes and nothing is left, and says how much it was.
func drain(fifo *os.File, done <-chan struct{}) (total int) {
	buf := make([]byte, readSize)
	for {
		ended := isClosed(done)
		_ = fifo.SetReadDeadline(time.Now().Add(10 * time.Millisecond))
		n, _ := fifo.Read(buf)
		if total += n; n == 0 && ended {
			return total
		}
	}
}

func TestSinkWritesOutWhatItWasGiven(t *testing.T) {
	l := logfile.File{Path: filepath.Join(t.TempDir(), "log")}
	fifo := stalledLog(t, l)
	s := newSink(l, never)
	for range maxQueuedChunks {
		s.enqueue(make([]byte, readSize))
	}
	result := make(chan bool, 1)
	go func() {
		s.close(longGrace)
		result <- isClosed(s.done)
	}()
	if n := drain(fifo, s.done); n != maxQueuedChunks*readSize || s.dropped.Load() != 0 {
		t.Errorf("%d bytes written, %d dropped", n, s.dropped.Load())
	}
	if !<-result {
		t.Error("close did not wait")
	}
}

func TestLogThatStallsDoesNotStallTheProgram(t *testing.T) {
	spec := testSpec(t.TempDir(), "flood")
	fifo := stalledLog(t, spec.Log)
	tm := timing{backoff: backoff{initial: never}, cleanupTimeout: 50 * time.Millisecond, logTimeout: 10 * time.Millisecond}
	p, _ := startForTest(t, spec, tm)
	if e := waitForFirstExit(t, p); e.Code != 0 {
		t.Errorf("exit %v", e)
	}
	if n := p.State().DroppedBytes; n < 5<<20 || n > 8<<20 {
		t.Errorf("dropped %d bytes", n)
	}
	p.Kill()
	if isClosed(p.log.done) {
		t.Error("the log should not have taken all")
	}
	drain(fifo, p.log.done)
}
