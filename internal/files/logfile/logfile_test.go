package logfile

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func readLogFiles(t *testing.T, l File) (names []string, contents string) {
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
			l := File{Path: filepath.Join(t.TempDir(), "log"), MaxBytes: 100, Keep: tc.keep}
			if tc.before != "" {
				if err := os.WriteFile(l.Path, []byte(tc.before), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			w := NewWriter(l)
			defer w.Close()
			for _, s := range tc.writes {
				if lost := w.Append([]byte(s)); lost != 0 {
					t.Errorf("lost %d bytes", lost)
				}
			}
			var got []string
			for age := w.Keep + 1; age >= 0; age-- {
				if b, err := os.ReadFile(w.pathOf(age)); err == nil {
					got = append(got, string(b))
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestFullDisk(t *testing.T) {
	w := NewWriter(File{Path: "/dev/full"})
	defer w.Close()
	if lost := w.Append([]byte("abc")); lost != 3 {
		t.Errorf("lost %d bytes, want 3", lost)
	}
}

func TestLogThatCannotBeSetAside(t *testing.T) {
	l := File{Path: filepath.Join(t.TempDir(), "log"), MaxBytes: 100}
	if err := os.MkdirAll(filepath.Join(l.Path+".1", "in the way"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(l.Path+".2", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	w := NewWriter(l)
	defer w.Close()
	if lost := w.Append([]byte(numberedLines(0, 10))); lost != 2*12 {
		t.Errorf("lost %d bytes, want 2 lines", lost)
	}
}
