package logfile

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Two descriptors of one file, as stdout and stderr are, write on while it is set aside.
func TestRotateOutput(t *testing.T) {
	l := File{Path: filepath.Join(t.TempDir(), "host.log"), MaxBytes: 100}
	out, err := l.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	errOut, err := l.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer errOut.Close()
	for i := range 30 {
		fmt.Fprintf(out, "line %06d\n", 2*i)
		fmt.Fprintf(errOut, "line %06d\n", 2*i+1)
		if err := l.RotateOutput(out, errOut); err != nil {
			t.Fatal(err)
		}
	}
	names, got := readLogFiles(t, l)
	if diff := cmp.Diff([]string{"", ".1", ".2"}, names); diff != "" {
		t.Error(diff)
	}
	if want := numberedLines(60-len(got)/12, 60); got != want || len(got) > 3*(100+24) || len(got) < 200 {
		t.Errorf("%d bytes:\n%s\nwant\n%s", len(got), got, want)
	}
	info, err := os.Stat(l.Path)
	if err != nil || info.Mode().Perm() != 0o600 || info.Size() > 124 {
		t.Errorf("%v, %v", info, err)
	}
}

func TestRotateOutputLeavesOthersAlone(t *testing.T) {
	dir := t.TempDir()
	l := File{Path: filepath.Join(dir, "host.log"), MaxBytes: 10}
	terminal, err := os.Create(filepath.Join(dir, "terminal"))
	if err != nil {
		t.Fatal(err)
	}
	defer terminal.Close()
	if err := l.RotateOutput(terminal); err != nil {
		t.Errorf("without a log: %v", err)
	}
	if err := os.WriteFile(l.Path, []byte(numberedLines(0, 5)), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := l.RotateOutput(terminal); err != nil {
		t.Error(err)
	}
	fmt.Fprint(terminal, "x")
	names, _ := readLogFiles(t, l)
	if b, _ := os.ReadFile(terminal.Name()); string(b) != "x" || len(names) != 1 {
		t.Errorf("%q, files %v", b, names)
	}
}

// A file that cannot be set aside goes on being written.
func TestRotateOutputThatCannot(t *testing.T) {
	l := File{Path: filepath.Join(t.TempDir(), "host.log"), MaxBytes: 10, Keep: 1}
	if err := os.MkdirAll(filepath.Join(l.Path+".1", "in the way"), 0o700); err != nil {
		t.Fatal(err)
	}
	out, err := l.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	fmt.Fprint(out, numberedLines(0, 2))
	if err := l.RotateOutput(out); err == nil {
		t.Error("no error")
	}
	fmt.Fprint(out, numberedLines(2, 3))
	if b, _ := os.ReadFile(l.Path); string(b) != numberedLines(0, 3) {
		t.Errorf("%q", b)
	}
}
