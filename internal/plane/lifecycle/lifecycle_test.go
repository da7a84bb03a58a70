package lifecycle

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/polder-kaas/polder/internal/plane/datadir"
	"github.com/polder-kaas/polder/internal/plane/status"
)

func TestParseReadyz(t *testing.T) {
	text := "[+]ping ok\n[+]polder-etcd ok\n[-]polder-cluster-api failed: reason withheld\n[-]informer-sync failed: reason withheld\nreadyz check failed\n"
	got, err := parseReadyz(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"polder-cluster-api", "informer-sync"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestInspect(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "d")
	p, err := New(dir)
	if err != nil {
		t.Fatal(err)
	}
	look := func() Report {
		t.Helper()
		r, err := p.Inspect()
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	if r := look(); r.Running || r.HasRun || r.Crashed() {
		t.Errorf("nothing is there, but: %+v", r)
	}
	d, err := datadir.Open(dir, datadir.Marker{Format: datadir.Format})
	if err != nil {
		t.Fatal(err)
	}
	// The exit message of an earlier run must not be taken for that of the new one.
	if err := status.Write(dir, status.Status{PID: 1, Phase: status.Ready}); err != nil {
		t.Fatal(err)
	}
	if r := look(); !r.Running || r.Status.Phase != status.Starting || r.Status.PID != os.Getpid() {
		t.Errorf("taken, not yet written: %+v", r)
	}
	if err := status.Write(dir, status.Status{PID: os.Getpid(), Phase: status.Ready}); err != nil {
		t.Fatal(err)
	}
	if r := look(); !r.Running || r.Status.Phase != status.Ready || r.Memory.Resident == 0 {
		t.Errorf("running: %+v", r)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	if r := look(); r.Running || !r.Crashed() {
		t.Errorf("killed: %+v", r)
	}
	if err := status.Write(dir, status.Status{PID: 1, Phase: status.Stopped}); err != nil {
		t.Fatal(err)
	}
	if r := look(); r.Crashed() {
		t.Errorf("stopped in order: %+v", r)
	}
}

func TestLastWords(t *testing.T) {
	p := &Plane{dir: t.TempDir()}
	old := "polderd: an old run's words\n"
	if err := os.WriteFile(p.LogFile(), []byte(old+"{\"msg\":\"x\"}\npolderd: the reason; do this\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := p.exitMessage(int64(len(old))); got != "the reason; do this" {
		t.Errorf("lastWords() = %q", got)
	}
	if err := os.WriteFile(p.LogFile(), []byte(old), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := p.exitMessage(int64(len(old))); !strings.Contains(got, "without a word") {
		t.Errorf("lastWords() of silence = %q", got)
	}
}
