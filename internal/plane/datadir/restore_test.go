package datadir

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/polder-kaas/polder/internal/program/exit"
)

func TestStageAndCommit(t *testing.T) {
	for name, prepare := range map[string]func(*testing.T, string){
		"not there": func(*testing.T, string) {},
		"empty":     func(t *testing.T, dir string) { mkdir(t, dir) },
		"a mount":   func(t *testing.T, dir string) { mkdir(t, filepath.Join(dir, "lost+found")) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "data")
			prepare(t, dir)
			s, err := Stage(dir)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := Open(dir, Marker{Format: Format}); exit.Code(err) != exit.InUse {
				t.Errorf("opened while it is filled: %v", err)
			}
			mkdir(t, s.Path("pki"))
			if err := s.Commit(); err != nil {
				t.Fatal(err)
			}
			if _, err := os.Stat(filepath.Join(dir, "pki")); err != nil {
				t.Error(err)
			}
			d, err := Open(dir, Marker{Format: Format})
			if err != nil {
				t.Fatal(err)
			}
			if err := d.Close(); err != nil {
				t.Error(err)
			}
			if _, err := Stage(dir); exit.Code(err) != exit.DataDir || !strings.Contains(err.Error(), "not empty") {
				t.Errorf("filled twice: %v", err)
			}
		})
	}
}

func TestStageAndDiscard(t *testing.T) {
	there := filepath.Join(t.TempDir(), "there")
	mkdir(t, there)
	missing := filepath.Join(t.TempDir(), "missing")
	for _, dir := range []string{there, missing} {
		s, err := Stage(dir)
		if err != nil {
			t.Fatal(err)
		}
		mkdir(t, s.Path("pki"))
		if err := s.Discard(); err != nil {
			t.Fatal(err)
		}
	}
	if left, err := os.ReadDir(there); err != nil || len(left) != 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	if _, err := os.Stat(missing); !os.IsNotExist(err) {
		t.Errorf("left behind: %v", err)
	}
}

// A restore that is killed while it puts things in their place leaves a directory that is not opened.
func TestInterruptedRestoreIsRefused(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	s, err := Stage(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.dir.Close(); err != nil { // as the end of the process does
		t.Fatal(err)
	}
	if _, err := Open(dir, Marker{Format: Format}); exit.Code(err) != exit.DataDir || !strings.Contains(err.Error(), "interrupted") {
		t.Errorf("opened: %v", err)
	}
	if _, err := Stage(dir); exit.Code(err) != exit.DataDir {
		t.Errorf("filled: %v", err)
	}
}

func TestCheckMarker(t *testing.T) {
	dir := t.TempDir()
	now := Marker{Format: 1, Kubernetes: "v1.37.1", Etcd: "v3.7.3"}
	if err := CheckMarker(dir, now); exit.Code(err) != exit.DataDir {
		t.Errorf("no marker: %v", err)
	}
	for text, code := range map[string]int{
		`{"format":1,"kubernetes":"v1.36.0"}`: exit.OK, `{"format":1,"kubernetes":"v1.38.0"}`: exit.NewerData, `{"format":2}`: exit.NewerData, `{`: exit.DataDir,
	} {
		if err := os.WriteFile(filepath.Join(dir, markerName), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := CheckMarker(dir, now); exit.Code(err) != code {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func mkdir(t *testing.T, dir string) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
}
