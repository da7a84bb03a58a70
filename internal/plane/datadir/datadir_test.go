package datadir

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/polder-kaas/polder/internal/program/exit"
)

var now = Marker{Format: Format, Polder: "v0.2.0", Kubernetes: "v1.36.3", Etcd: "v3.6.14"}

func open(t *testing.T, dir string, m Marker) (*Dir, error) {
	t.Helper()
	d, err := Open(dir, m)
	if err == nil {
		t.Cleanup(func() { _ = d.Close() })
	}
	return d, err
}

func TestOpenMakesAClosedDirectory(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b")
	d, err := open(t, dir, now)
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(dir)
	if err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	if got := d.Path("x", "y"); got != filepath.Join(dir, "x", "y") {
		t.Errorf("Path() = %s", got)
	}
}

func TestOneHolder(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "d")
	if pid, err := Holder(dir); pid != 0 || err != nil {
		t.Errorf("Holder of nothing = %d, %v", pid, err)
	}
	first, err := open(t, dir, now)
	if err != nil {
		t.Fatal(err)
	}
	if pid, err := Holder(dir); pid != os.Getpid() || err != nil {
		t.Errorf("Holder() = %d, %v, want %d", pid, err, os.Getpid())
	}
	if _, err := open(t, dir, now); exit.Code(err) != exit.InUse {
		t.Errorf("second Open() = %v", err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	if pid, err := Holder(dir); pid != 0 || err != nil {
		t.Errorf("Holder after Close = %d, %v", pid, err)
	}
	if _, err := open(t, dir, now); err != nil {
		t.Errorf("Open after Close = %v", err)
	}
}

func TestMarker(t *testing.T) {
	tests := map[string]struct {
		old  Marker
		want string // text of the error; empty if there is none
	}{
		"same version":               {now, ""},
		"older version":              {Marker{Format: 1, Polder: "v0.1.0", Kubernetes: "v1.35.0", Etcd: "v3.5.0"}, ""},
		"newer patch of Kubernetes":  {Marker{Format: 1, Polder: "v0.2.1", Kubernetes: "v1.36.9", Etcd: "v3.6.20"}, ""},
		"newer minor of Kubernetes":  {Marker{Format: 1, Polder: "v0.3.0", Kubernetes: "v1.37.0", Etcd: "v3.6.14"}, "Kubernetes v1.37.0"},
		"newer minor of etcd":        {Marker{Format: 1, Polder: "v0.3.0", Kubernetes: "v1.36.3", Etcd: "v3.7.0"}, "etcd v3.7.0"},
		"newer format":               {Marker{Format: 2, Polder: "v0.3.0"}, "its format is 2"},
		"development build":          {Marker{Format: 1, Polder: "v0.0.0-dev", Kubernetes: "(devel)"}, ""},
		"minors compared as numbers": {Marker{Format: 1, Polder: "v0.1.0", Kubernetes: "v1.9.0", Etcd: "v3.6.0"}, ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "d")
			d, err := Open(dir, tt.old)
			if err != nil {
				t.Fatal(err)
			}
			if err := d.Close(); err != nil {
				t.Fatal(err)
			}
			_, err = open(t, dir, now)
			if tt.want == "" {
				if got, rerr := readMarker(filepath.Join(dir, markerName)); err != nil || rerr != nil || got != now {
					t.Errorf("Open() = %v; marker is %+v", err, got)
				}
				return
			}
			if exit.Code(err) != exit.NewerData || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("Open() = %v, want a refusal with %q", err, tt.want)
			}
			if got, err := readMarker(filepath.Join(dir, markerName)); err != nil || got != tt.old {
				t.Errorf("the marker became %+v, %v", got, err)
			}
			if pid, _ := Holder(dir); pid != 0 {
				t.Error("the refused directory is still held")
			}
		})
	}
}

func TestDamagedMarker(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "d")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, markerName), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := open(t, dir, now); exit.Code(err) != exit.DataDir || !strings.Contains(err.Error(), "is damaged") {
		t.Errorf("Open() = %v", err)
	}
}

func TestDefault(t *testing.T) {
	t.Setenv("HOME", "/home/ada")
	t.Setenv("XDG_DATA_HOME", "")
	t.Setenv("POLDER_DATA_DIR", "")
	if got := Default(); got != "/home/ada/.local/share/polder" {
		t.Errorf("Default() = %s", got)
	}
	t.Setenv("XDG_DATA_HOME", "relative") // the XDG specification says to ignore it
	if got := Default(); got != "/home/ada/.local/share/polder" {
		t.Errorf("Default() with a relative XDG_DATA_HOME = %s", got)
	}
	t.Setenv("XDG_DATA_HOME", "/data")
	if got := Default(); got != "/data/polder" {
		t.Errorf("Default() with XDG_DATA_HOME = %s", got)
	}
	t.Setenv("POLDER_DATA_DIR", "/srv/p")
	if got := Default(); got != "/srv/p" {
		t.Errorf("Default() with POLDER_DATA_DIR = %s", got)
	}
}

func TestSpace(t *testing.T) {
	if err := CheckSpace(t.TempDir()); err != nil {
		t.Error("the machine this runs on has no space, or it is not measured well:", err)
	}
	if err := CheckSpace("/no/such/place"); err != nil {
		t.Error("what is not known is no obstacle:", err)
	}
	if err := checkFreeBytes("/d", minFreeBytes); err != nil {
		t.Error(err)
	}
	const want = "the disk that holds /d is full (15 MB are free, 16 MB are needed); free some space, then start again"
	if err := checkFreeBytes("/d", 15_000_000); err == nil || err.Error() != want {
		t.Error(err)
	}
}
