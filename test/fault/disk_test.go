package fault

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/polder-kaas/polder/internal/program/exit"
	"github.com/polder-kaas/polder/test/testenv"
)

// TestFullDisk fills the small disk of a plane to the last byte, as another program would: it must say so within 10 s, go
// on answering, and take changes again when there is room, all in the same process.
func TestFullDisk(t *testing.T) {
	p := testenv.NewPlane(t, testenv.NewTree(t, false))
	testenv.MountSmallDisk(t, p.Data, 512<<20)
	p.Start(t)
	p.AwaitReady(t)
	c, ns := p.Client(t), p.CreateNamespace(t)
	write := func(name string) error {
		return c.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}})
	}
	if err := write("before"); err != nil {
		t.Fatal(err)
	}
	hog := filepath.Join(p.Data, "hog")
	for round := range 3 {
		begin := time.Now()
		fillDisk(t, hog)
		testenv.Eventually(t, wait, func() error {
			if code, _ := get(t, p, "/readyz"); code == http.StatusOK {
				return errors.New("/readyz still answers 200")
			}
			return nil
		})
		took := time.Since(begin)
		_, reason := get(t, p, "/readyz/polder-etcd")
		t.Logf("round %d: /readyz says so after %s: %s", round, took.Round(time.Millisecond), strings.TrimSpace(reason))
		if took > 30*time.Second || !strings.Contains(reason, "is full (") || !strings.Contains(reason, "goes on by itself") {
			t.Errorf("noticed after %s: %s", took, reason)
		}
		fillDisk(t, hog) // what the store has given up to be able to say so
		if err := write(fmt.Sprintf("during-%d", round)); err == nil || !strings.Contains(err.Error(), "space exceeded") {
			t.Errorf("a write ends with %v", err)
		}
		for range 50 { // deletes are writes, too, and are what helps
			if err := c.Delete(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "before"}}); client.IgnoreNotFound(err) != nil {
				t.Errorf("a delete ends with %v", err)
			}
			if err := c.List(t.Context(), &corev1.ConfigMapList{}); err != nil {
				t.Fatalf("a read ends with %v", err)
			}
		}
		out, err := p.Tree.Command("polder", "status", "--data-dir", p.Data).CombinedOutput()
		if err == nil || !strings.Contains(string(out), "is full (") {
			t.Errorf("polder status ends with %v and says:\n%s", err, out)
		}
		if err := os.Remove(hog); err != nil {
			t.Fatal(err)
		}
		begin = time.Now()
		testenv.Eventually(t, wait, func() error { return write(fmt.Sprintf("after-%d", round)) })
		t.Logf("round %d: takes changes %s after there is room", round, time.Since(begin).Round(time.Millisecond))
	}
}

// fillDisk writes zeros into a file until the disk is full.
func fillDisk(t *testing.T, file string) {
	t.Helper()
	f, err := os.OpenFile(file, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for size := 1 << 20; size > 0; {
		if _, err := f.Write(make([]byte, size)); err != nil {
			size /= 2
		}
	}
}

// get asks as the administrator and returns the answer.
func get(t *testing.T, p *testenv.Plane, path string) (int, string) {
	t.Helper()
	cfg := p.RESTConfig(t)
	cfg.Timeout = time.Minute
	c, err := rest.HTTPClientFor(cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer c.CloseIdleConnections()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, cfg.Host+path, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	res, err := c.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	b := make([]byte, 4<<10)
	n, _ := res.Body.Read(b)
	return res.StatusCode, string(b[:n])
}

// TestFailingDisk makes each sync, or each write to the write-ahead log, of a running plane fail. It must end at once with a reason,
// never acknowledge what is not on disk, and have all it acknowledged when the disk is well again.
func TestFailingDisk(t *testing.T) {
	p := testenv.StartPlane(t)
	ns := p.CreateNamespace(t)
	for _, inject := range []string{"fdatasync:error=EIO", "fsync,fdatasync:error=EIO", "pwrite64:error=EIO", "pwrite64:error=ENOSPC"} {
		t.Run(inject, func(t *testing.T) {
			w := load(t, p, ns, rand.New(rand.NewPCG(1, 2)))
			begin := time.Now()
			s := p.Strace(t, "-o", os.DevNull, "-e", "trace="+strings.Split(inject, ":")[0], "-e", "inject="+inject)
			if err := s.Start(); err != nil {
				t.Fatal(err)
			}
			code := p.AwaitExit(t, wait)
			_ = s.Wait() // it ends with the process it looks at
			w.Stop()
			t.Logf("ended with %d after %s: %s", code, time.Since(begin).Round(time.Millisecond), p.Status(t).Reason)
			if code != exit.ComponentFailed && code != 2 {
				t.Errorf("exit code %d", code)
			}
			if p.Status(t).Reason == "" {
				t.Error("nobody says why")
			}
			p.Start(t)
			p.AwaitReady(t)
			if err := w.Verify(t.Context(), p.RESTConfig(t)); err != nil {
				t.Fatal(err)
			}
			t.Logf("%d acknowledged writes, none lost", w.Acknowledged())
		})
	}
}

// TestSlowDisk delays each sync: the plane gets slow, not wrong.
func TestSlowDisk(t *testing.T) {
	p := testenv.StartPlane(t)
	ns := p.CreateNamespace(t)
	s := p.Strace(t, "-o", os.DevNull, "-e", "trace=fdatasync", "-e", "inject=fdatasync:delay_exit=300000")
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
	w := load(t, p, ns, rand.New(rand.NewPCG(1, 2)))
	p.Kill()
	_ = s.Wait() // as above
	w.Stop()
	p.Start(t)
	p.AwaitReady(t)
	if err := w.Verify(t.Context(), p.RESTConfig(t)); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d acknowledged writes, none lost", w.Acknowledged())
}
