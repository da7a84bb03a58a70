package plane

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/polder-kaas/polder/internal/plane/status"
	"github.com/polder-kaas/polder/internal/plane/supervisor"
	"github.com/polder-kaas/polder/internal/program/exit"
	"github.com/polder-kaas/polder/test/testenv"
)

// refusal starts polderd on a directory it must refuse, and checks code and words.
func refusal(t *testing.T, p *testenv.Plane, code int, words ...string) {
	t.Helper()
	p.Start(t)
	if got := p.AwaitExit(t, wait); got != code {
		t.Errorf("exit code is %d, want %d", got, code)
	}
	lines := strings.Split(strings.TrimSpace(p.Log()), "\n")
	if len(lines) != 1 {
		t.Errorf("polderd said %d lines, want one:\n%s", len(lines), p.Log())
	}
	for _, w := range words {
		if !strings.Contains(p.Log(), w) {
			t.Errorf("the message lacks %q: %s", w, p.Log())
		}
	}
}

func TestRefusals(t *testing.T) {
	t.Run("directory in use", func(t *testing.T) {
		running := shared.Get(t)
		p := testenv.NewPlane(t, running.Tree)
		refusal(t, p, exit.InUse, "already in use", fmt.Sprintf("process %d", running.PID()), "polder down --data-dir "+running.Data)
	})
	t.Run("directory not writable", func(t *testing.T) {
		p := testenv.NewPlane(t, testenv.NewTree(t, false))
		mkdir(t, p.Data, 0o500)
		refusal(t, p, exit.DataDir, "is not writable", "chmod 700 "+p.Data)
	})
	t.Run("parent not writable", func(t *testing.T) {
		p := testenv.NewPlane(t, testenv.NewTree(t, false))
		p.Data = "/proc/nothing/data"
		refusal(t, p, exit.DataDir, "cannot be made", "--data-dir")
	})
	t.Run("directory open to others", func(t *testing.T) {
		p := testenv.NewPlane(t, testenv.NewTree(t, false))
		mkdir(t, p.Data, 0o755)
		refusal(t, p, exit.DataDir, "open to other users", "chmod 700 "+p.Data)
		if entries, err := os.ReadDir(p.Data); err != nil || len(entries) > 0 {
			t.Errorf("something was written into it: %v, %v", entries, err)
		}
	})
	t.Run("directory is a file", func(t *testing.T) {
		p := testenv.NewPlane(t, testenv.NewTree(t, false))
		if err := os.WriteFile(p.Data, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		refusal(t, p, exit.DataDir, "is a file")
	})
	t.Run("path too long for sockets", func(t *testing.T) {
		p := testenv.NewPlane(t, testenv.NewTree(t, false))
		p.Data = filepath.Join(p.Data, strings.Repeat("x", 100))
		refusal(t, p, exit.DataDir, "too long", "--data-dir")
	})
	t.Run("written by a newer version", func(t *testing.T) {
		p := testenv.NewPlane(t, testenv.NewTree(t, false))
		mkdir(t, p.Data, 0o700)
		b, err := json.Marshal(map[string]any{"format": 1, "polder": "v9.0.0", "kubernetes": "v1.99.0", "etcd": "v3.6.0"})
		if err != nil {
			t.Fatal(err)
		}
		marker := filepath.Join(p.Data, "version.json")
		if err := os.WriteFile(marker, b, 0o644); err != nil {
			t.Fatal(err)
		}
		refusal(t, p, exit.NewerData, "written by polder v9.0.0", "Kubernetes v1.99.0", "start that version")
		if now, err := os.ReadFile(marker); err != nil || string(now) != string(b) {
			t.Errorf("the marker was changed: %s, %v", now, err)
		}
	})
	t.Run("port taken", func(t *testing.T) {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		p := testenv.NewPlane(t, testenv.NewTree(t, false))
		p.SetListen(l.Addr().String())
		refusal(t, p, exit.AddressTaken, l.Addr().String()+" is taken", "--listen")
	})
	t.Run("address of another machine", func(t *testing.T) {
		p := testenv.NewPlane(t, testenv.NewTree(t, false))
		p.SetListen("192.0.2.1:7443")
		refusal(t, p, exit.AddressTaken, "does not belong to this machine")
	})
	t.Run("no address at all", func(t *testing.T) {
		p := testenv.NewPlane(t, testenv.NewTree(t, false))
		p.SetListen("localhost:http")
		refusal(t, p, exit.DaemonUsage, "not an IP address", "127.0.0.1:7443")
	})
}

func mkdir(t *testing.T, path string, perm os.FileMode) {
	t.Helper()
	if err := os.Mkdir(path, 0o700); err != nil {
		t.Fatal(err)
	}
	testenv.Chown(t, path)
	if err := os.Chmod(path, perm); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Chmod(path, 0o700) })
}

func TestUnknownFlags(t *testing.T) {
	tree := testenv.NewTree(t, false)
	for _, args := range [][]string{{"serve", "--nope"}, {"serve", "extra"}, {"nope"}, {"serve", "--log-level", "loud"}, {"serve", "--log-format", "xml"},
		{"serve", "--concurrency", "0x"}, {"serve", "--certificate-lifetime", "1s"}} {
		out, err := tree.Command("polderd", args...).CombinedOutput()
		if code := exitCode(err); code != exit.DaemonUsage || strings.Count(string(out), "\n") != 1 {
			t.Errorf("polderd %s: code %d, %q; want one line and code %d", strings.Join(args, " "), code, out, exit.DaemonUsage)
		}
	}
}

// TestLife follows one plane through its life: a start without load, a graceful stop under load, a start
// on the same data, five kills under load, and a start without the key its Secrets need.
func TestLife(t *testing.T) {
	p := testenv.StartPlane(t)
	c := p.Client(t)
	ns := p.CreateNamespace(t)
	grantReading(t, c, ns)
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "kept"}, StringData: map[string]string{"a": "b"}}
	if err := c.Create(t.Context(), secret); err != nil {
		t.Fatal(err)
	}

	t.Run("starts quietly, in JSON", func(t *testing.T) {
		lines := strings.Split(strings.TrimSpace(p.Log()), "\n")
		// One for each component, that it starts and is ready, and what Kubernetes says of waiting where the machine is busy.
		if most := len(p.Status(t).Components) + 2 + 6; len(lines) > most {
			t.Errorf("a start printed %d lines:\n%s", len(lines), p.Log())
		}
		for _, l := range lines {
			if !json.Valid([]byte(l)) {
				t.Errorf("not JSON: %s", l)
			}
		}
	})

	t.Run("stops in order while a client writes", func(t *testing.T) {
		admin, token := p.RESTConfig(t), requestToken(t, p, ns, readingAccount)
		w := startWriters(t, p, ns)
		w.await(t, 50)
		begin := time.Now()
		if code := p.Signal(t, syscall.SIGTERM, wait); code != exit.OK {
			t.Errorf("exit code %d:\n%s", code, p.Log())
		}
		if took := time.Since(begin); took > time.Minute {
			t.Errorf("the stop took %s", took)
		}
		w.stop()
		stoppedInOrder(t, p.Status(t))
		callers := startCallers(t, admin, token, ns)
		p.Start(t)
		p.AwaitReady(t)
		callers.verify(t)
		w.verify(t, p)
	})

	t.Run("keeps everything over a restart", func(t *testing.T) {
		got := &corev1.Secret{}
		if err := p.Client(t).Get(t.Context(), client.ObjectKeyFromObject(secret), got); err != nil || string(got.Data["a"]) != "b" || got.UID != secret.UID {
			t.Errorf("the Secret is not what it was: %v, %v", got, err)
		}
	})

	for i := range 5 {
		t.Run(fmt.Sprintf("loses nothing when killed (%d)", i), func(t *testing.T) { killUnderLoad(t, p, ns) })
	}

	t.Run("refuses to start without the key of its Secrets", func(t *testing.T) {
		p.Signal(t, syscall.SIGTERM, wait)
		key := filepath.Join(p.Data, "pki", "encryption.yaml")
		if err := os.Rename(key, key+".away"); err != nil {
			t.Fatal(err)
		}
		p.Start(t)
		if code := p.AwaitExit(t, wait); code == exit.OK || !strings.Contains(p.Log(), "restore it from a backup") {
			t.Errorf("exit code %d", code)
		}
		if _, err := os.Stat(key); err == nil {
			t.Error("a new key was made beside data that the old one encrypted")
		}
	})
}

// stoppedInOrder checks that controllers ended before the API they use, and etcd last.
func stoppedInOrder(t *testing.T, s status.Status) {
	t.Helper()
	if s.Phase != status.Stopped {
		t.Errorf("phase is %s: %s", s.Phase, s.Reason)
	}
	at := map[string]time.Time{}
	for _, c := range s.Components {
		if c.State != supervisor.Stopped {
			t.Errorf("%s is %s", c.Name, c.State)
		}
		at[c.Name] = c.Since
	}
	for _, order := range [][2]string{{"cluster-api", "apiserver"}, {"kube-controllers", "apiserver"}, {"apiserver", "etcd"}, {"apiserver", "webhooks"}} {
		if !at[order[0]].Before(at[order[1]]) {
			t.Errorf("%s stopped at %s, after %s at %s", order[0], at[order[0]], order[1], at[order[1]])
		}
	}
}
