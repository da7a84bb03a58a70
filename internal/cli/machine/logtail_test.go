package machine

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/polder-kaas/polder/internal/program/exit"
)

// testLog is a log like those of a machine's processes.
type testLog struct {
	*testing.T
	path string
}

func newLog(t *testing.T) testLog {
	t.Helper()
	return testLog{t, filepath.Join(t.TempDir(), "etcd.log")}
}

func (l testLog) add(text string) {
	l.Helper()
	f, err := os.OpenFile(l.path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err == nil {
		_, err = f.WriteString(text)
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		l.Fatal(err)
	}
}

// rotate sets the log aside; two old parts are kept.
func (l testLog) rotate() {
	l.Helper()
	for _, move := range [][2]string{{".1", ".2"}, {"", ".1"}} {
		if err := os.Rename(l.path+move[0], l.path+move[1]); err != nil && !errors.Is(err, fs.ErrNotExist) {
			l.Fatal(err)
		}
	}
}

func TestLastLines(t *testing.T) {
	l := newLog(t)
	if err := (logTail{path: l.path, lines: allLines}).copy(t.Context(), &bytes.Buffer{}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("without a log: %v", err)
	}
	l.add("1\n2\n")
	l.rotate()
	l.add("3\n\n")
	l.rotate()
	between := map[int]string{allLines: "1\n2\n3\n\n", 1: "\n", 3: "2\n3\n\n"}
	expectLines(l, between)
	l.add("5\n6")
	expectLines(l, map[int]string{
		allLines: "1\n2\n3\n\n5\n6", 0: "", 1: "6", 2: "5\n6", 3: "\n5\n6", 5: "2\n3\n\n5\n6", 6: "1\n2\n3\n\n5\n6", 99: "1\n2\n3\n\n5\n6",
	})
}

func expectLines(l testLog, wanted map[int]string) {
	l.Helper()
	for lines, want := range wanted {
		var b bytes.Buffer
		if err := (logTail{path: l.path, lines: lines}).copy(l.Context(), &b); err != nil || b.String() != want {
			l.Errorf("the last %d lines are %q, %v, want %q", lines, b.String(), err, want)
		}
	}
}

// follow runs f while the log is followed, and returns what was copied and the error.
func follow(l testLog, f func(look func())) (string, error) {
	l.Helper()
	var b strings.Builder
	err := followTo(l, &b, f)
	return b.String(), err
}

func followTo(l testLog, w io.Writer, f func(look func())) (err error) {
	l.Helper()
	synctest.Test(l.T, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			err = logTail{path: l.path, lines: 1, follow: true, pollInterval: time.Second}.copy(ctx, w)
		}()
		f(func() { time.Sleep(1001 * time.Millisecond); synctest.Wait() })
		cancel()
		<-done
	})
	return err
}

// atEnd does something once, just when the reader has come to its end.
type atEnd struct {
	strings.Builder
	then func()
}

func (w *atEnd) ReadFrom(r io.Reader) (int64, error) {
	b, err := io.ReadAll(r)
	w.Write(b)
	w.then()
	w.then = func() {}
	return int64(len(b)), err
}

func TestFollowWhileSetAside(t *testing.T) {
	l := newLog(t)
	l.add("a\n")
	w := &atEnd{then: func() {
		l.add("b\n")
		l.rotate()
		l.add("c\n")
	}}
	if err := followTo(l, w, func(look func()) { look(); look() }); err != nil || w.String() != "a\nb\nc\n" {
		t.Errorf("followed %q, %v", w.String(), err)
	}
}

func TestFollow(t *testing.T) {
	tests := map[string]struct {
		before string
		do     func(l testLog, look func())
		want   string
	}{
		"lines are added": {"old\nlast\n", func(l testLog, look func()) {
			look()
			l.add("a\nb")
			look()
			l.add("c\n")
			look()
		}, "last\na\nbc\n"},
		"the log begins later": {"", func(l testLog, look func()) {
			look()
			l.add("a\n")
			look()
		}, "a\n"},
		"set aside": {"a\n", func(l testLog, look func()) {
			look()
			l.rotate()
			look()
			l.add("b\n")
			look()
			l.add("c\n")
			look()
		}, "a\nb\nc\n"},
		"set aside with lines not yet seen": {"a\n", func(l testLog, look func()) {
			look()
			l.add("b\n")
			l.rotate()
			l.add("c\n")
			look()
			look()
		}, "a\nb\nc\n"},
		"set aside twice between two looks": {"a\n", func(l testLog, look func()) {
			look()
			l.rotate()
			l.add("b\n")
			l.rotate()
			l.add("c\n")
			look()
			look()
		}, "a\nb\nc\n"},
		"dropped between two looks": {"a\n", func(l testLog, look func()) {
			look()
			for _, text := range []string{"b\n", "c\n", "d\n"} {
				l.rotate()
				l.add(text)
			}
			look()
			look()
		}, "a\nb\nc\nd\n"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			l := newLog(t)
			if tt.before != "" {
				l.add(tt.before)
			}
			got, err := follow(l, func(look func()) { tt.do(l, look) })
			if err != nil || got != tt.want {
				t.Errorf("followed %q, %v, want %q", got, err, tt.want)
			}
		})
	}
}

func TestFollowUntilRemoved(t *testing.T) {
	l := newLog(t)
	l.add("a\n")
	got, err := follow(l, func(look func()) {
		look()
		if err := os.RemoveAll(filepath.Dir(l.path)); err != nil {
			t.Fatal(err)
		}
		look()
	})
	if got != "a\n" || exit.Code(err) != exit.Failure || !strings.Contains(err.Error(), "the machine was removed") {
		t.Errorf("followed %q, %v", got, err)
	}
}
