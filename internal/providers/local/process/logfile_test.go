package process

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/polder-kaas/polder/internal/providers/local/processtest"
)

func readLogFiles(t *testing.T, l LogFile) (names []string, contents string) {
	t.Helper()
	paths, err := filepath.Glob(l.Path + "*")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range paths { // the youngest first, by their names
		b, err := os.ReadFile(p)
		if err != nil {
			t.Fatal(err)
		}
		names, contents = append(names, strings.TrimPrefix(p, l.Path)), string(b)+contents
	}
	return names, contents
}

func numberedLines(from, to int) string {
	var b strings.Builder
	for i := from; i < to; i++ {
		fmt.Fprintf(&b, "line %06d\n", i)
	}
	return b.String()
}

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
	names, got := readLogFiles(t, spec.Log)
	if diff := cmp.Diff([]string{"", ".1", ".2"}, names); diff != "" {
		t.Error(diff)
	}
	if got != numberedLines(0, n) || p.State().DroppedBytes != 0 {
		t.Errorf("lost something: %d bytes of %d, %d dropped", len(got), n*width, p.State().DroppedBytes)
	}
}

func TestRotation(t *testing.T) {
	long := strings.Repeat("x", maxLineOverrun)
	tests := map[string]struct {
		keep   int
		before string // what the file holds at first
		writes []string
		want   []string // the files, oldest first
	}{
		"keeps so many and no more": {keep: 3, writes: []string{numberedLines(0, 50)}, want: []string{
			numberedLines(24, 32), numberedLines(32, 40), numberedLines(40, 48), numberedLines(48, 50),
		}},
		"keeps two by default": {writes: []string{numberedLines(0, 50)}, want: []string{
			numberedLines(32, 40), numberedLines(40, 48), numberedLines(48, 50),
		}},
		"keeps one": {keep: 1, writes: []string{numberedLines(0, 50)}, want: []string{numberedLines(40, 48), numberedLines(48, 50)}},
		"goes on with a file that is there": {before: numberedLines(0, 7), writes: []string{numberedLines(7, 9)}, want: []string{
			numberedLines(0, 8), numberedLines(8, 9),
		}},
		"a line in pieces stays whole": {writes: []string{numberedLines(0, 8), "ab", "cd", "ef\n", "g\n"}, want: []string{
			numberedLines(0, 8) + "abcdef\n", "g\n",
		}},
		"a line that is not begun moves on":  {writes: []string{numberedLines(0, 8), "abcdef\n"}, want: []string{numberedLines(0, 8), "abcdef\n"}},
		"a line begun ends beyond the limit": {writes: []string{numberedLines(0, 8) + "ab", "cdef\ng\n"}, want: []string{numberedLines(0, 8) + "abcdef\n", "g\n"}},
		"a line that does not end is broken": {writes: []string{long, long}, want: []string{long + long[:100], long[100:]}},
		"a long line is alone in its file":   {writes: []string{"a\n", long[:200] + "\n", "b\n"}, want: []string{"a\n", long[:200] + "\n", "b\n"}},
		"exactly full is not too full":       {writes: []string{long[:99] + "\n"}, want: []string{long[:99] + "\n"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			l := LogFile{Path: filepath.Join(t.TempDir(), "log"), MaxBytes: 100, Keep: tc.keep}
			if tc.before != "" {
				if err := os.WriteFile(l.Path, []byte(tc.before), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			r := newRotator(l)
			defer r.close()
			for _, w := range tc.writes {
				if lost := r.write([]byte(w)); lost != 0 {
					t.Errorf("lost %d bytes", lost)
				}
			}
			var got []string
			for age := r.Keep + 1; age >= 0; age-- {
				if b, err := os.ReadFile(r.pathOf(age)); err == nil {
					got = append(got, string(b))
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
		})
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

func TestFullDisk(t *testing.T) {
	r := newRotator(LogFile{Path: "/dev/full"})
	defer r.close()
	if lost := r.write([]byte("abc")); lost != 3 {
		t.Errorf("lost %d bytes, want 3", lost)
	}
}

func TestLogThatCannotBeSetAside(t *testing.T) {
	l := LogFile{Path: filepath.Join(t.TempDir(), "log"), MaxBytes: 100}
	if err := os.MkdirAll(filepath.Join(l.Path+".1", "in the way"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(l.Path+".2", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	r := newRotator(l)
	defer r.close()
	if lost := r.write([]byte(numberedLines(0, 10))); lost != 2*12 {
		t.Errorf("lost %d bytes, want 2 lines", lost)
	}
}

// stalledLog makes a log of a FIFO that nobody reads: writes block once it is full.
func stalledLog(t *testing.T, l LogFile) *os.File {
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
	l := LogFile{Path: filepath.Join(t.TempDir(), "log")}
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
