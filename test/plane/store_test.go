package plane

import (
	"bytes"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/polder-kaas/polder/internal/plane/status"
	"github.com/polder-kaas/polder/internal/program/exit"
	"github.com/polder-kaas/polder/test/testenv"
)

const rightValue, wrongValue = "right-value-of-the-config-map", "wrong-value-of-the-config-map"

// TestDamagedStore damages the store of a plane that was stopped, or killed, and wants a refusal each time: one
// sentence, the documented code, soon. A plane that serves something else than was written would be worse than none.
func TestDamagedStore(t *testing.T) {
	p := testenv.NewPlane(t, testenv.NewTree(t, true))
	mkdir(t, p.Data, 0o700)
	writeStoreSettings(t, p, map[string]any{"recordSeconds": 0.2})
	p.Start(t)
	p.AwaitReady(t)
	ns := p.CreateNamespace(t)
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "kept"}, Data: map[string]string{"k": rightValue}}
	if err := p.Client(t).Create(t.Context(), cm); err != nil {
		t.Fatal(err)
	}
	records := filepath.Join(p.Data, "etcd", "records")
	begin := modified(records)
	testenv.Eventually(t, wait, func() error { // twice, so that one of them began after the write
		if n := modified(records); n.Equal(begin) {
			return fmt.Errorf("nothing was recorded since %s", begin)
		}
		return nil
	})
	p.Kill()
	db := filepath.Join(p.Data, "etcd", "member", "snap", "db")
	wal := filepath.Join(p.Data, "etcd", "member", "wal")

	t.Run("a value changed after a crash", func(t *testing.T) {
		whole := change(t, db)
		refuseStore(t, p, "/registry/configmaps/"+ns+"/kept) has changed since it was written", "remove records and closed.json")
		restoreFile(t, db, whole)
	})
	p.Start(t)
	p.AwaitReady(t)
	if code := p.Signal(t, syscall.SIGTERM, wait); code != exit.OK {
		t.Fatalf("exit code %d", code)
	}
	for _, tt := range []struct {
		name   string
		damage func(t *testing.T)
		words  string
	}{
		{"a value changed after a stop", func(t *testing.T) { change(t, db) }, "is not what was written"},
		{"the database is cut", func(t *testing.T) { truncate(t, db, 20) }, "its database is damaged"},
		{"the database is noise", func(t *testing.T) { scramble(t, db) }, "the store in "},
		{"the write-ahead log is gone", func(t *testing.T) { rename(t, wal, wal+".away") }, "its write-ahead log"},
		{"the write-ahead log is cut", func(t *testing.T) { cutLog(t, wal) }, "its write-ahead log"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			restore := testenv.SaveTree(t, filepath.Join(p.Data, "etcd"))
			tt.damage(t)
			refuseStore(t, p, tt.words)
			restore()
		})
	}
	p.Start(t)
	p.AwaitReady(t)
	got := &corev1.ConfigMap{}
	if err := p.Client(t).Get(t.Context(), client.ObjectKeyFromObject(cm), got); err != nil || got.Data["k"] != rightValue {
		t.Errorf("undamaged, it has %v, %v", got.Data, err)
	}
}

// refuseStore starts polderd and wants it to refuse the store.
func refuseStore(t *testing.T, p *testenv.Plane, words ...string) {
	t.Helper()
	said := len(p.Log())
	begin := time.Now()
	p.Start(t)
	code := p.AwaitExit(t, wait)
	took, lines := time.Since(begin), strings.TrimSpace(p.Log()[said:])
	t.Logf("code %d after %s: %s", code, took.Round(time.Millisecond), lines)
	if code != exit.StoreDamaged || strings.Contains(lines, "\n") {
		t.Errorf("code %d, want %d and one line", code, exit.StoreDamaged)
	}
	for _, w := range append(words, "polder restore") {
		if !strings.Contains(lines, w) {
			t.Errorf("the message lacks %q", w)
		}
	}
	if s := p.Status(t); s.Phase != status.Failed || !strings.Contains(lines, s.Reason) {
		t.Errorf("status says %s: %s", s.Phase, s.Reason)
	}
}

// TestFullStoreOfAPlane fills a small store with history and with objects: it helps itself with the first, says what to
// do about the second, and polder maintain does it.
func TestFullStoreOfAPlane(t *testing.T) {
	p := testenv.NewPlane(t, testenv.NewTree(t, true))
	mkdir(t, p.Data, 0o700)
	writeStoreSettings(t, p, map[string]any{"recordSeconds": 1, "quotaBytes": 40 << 20})
	p.Start(t)
	p.AwaitReady(t)
	c, ns := p.Client(t), p.CreateNamespace(t)
	made, begin := 0, time.Now()
	for full := false; !full; {
		cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: fmt.Sprintf("c%d", made)}, Data: map[string]string{"k": strings.Repeat("x", 500<<10)}}
		switch err := c.Create(t.Context(), cm); {
		case err == nil, apierrors.IsAlreadyExists(err): // etcd takes the write that reaches the limit, and yet calls it refused
			made++
		case strings.Contains(err.Error(), "database space exceeded"):
			full = isFull(p)
		default:
			t.Fatal(err)
		}
	}
	t.Logf("full with %d objects after %s", made, time.Since(begin).Round(time.Millisecond))
	out, err := polder(t, p.Tree, "status", "--data-dir", p.Data)
	if exitCode(err) != exit.NotReady || !strings.Contains(out, "nothing can be changed; delete what is not needed, then run: polder maintain") {
		t.Errorf("polder status ends with %v and says:\n%s", err, out)
	}
	if err := c.DeleteAllOf(t.Context(), &corev1.ConfigMap{}, client.InNamespace(ns)); err != nil {
		t.Fatal(err)
	}
	begin = time.Now()
	out, err = polder(t, p.Tree, "maintain", "--data-dir", p.Data)
	if err != nil || !strings.Contains(out, "it may have 40 MB") {
		t.Fatalf("polder maintain ends with %v and says:\n%s", err, out)
	}
	t.Logf("after %s: %s", time.Since(begin).Round(time.Millisecond), out)
	if err := c.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "again"}}); err != nil {
		t.Error(err)
	}
	if code := readyz(t, p); code != 200 {
		t.Errorf("/readyz answers %d", code)
	}
}

// isFull asks for maintenance, which helps as long as there is history.
func isFull(p *testenv.Plane) bool {
	return exitCode(p.Tree.Command("polder", "maintain", "--data-dir", p.Data).Run()) == exit.NotReady
}

func TestMaintainNeedsAPlane(t *testing.T) {
	tree := testenv.NewTree(t, false)
	out, err := polder(t, tree, "maintain", "--data-dir", filepath.Join(tree.Root, "none"))
	if exitCode(err) != exit.NotReady || !strings.Contains(out, "polder up") {
		t.Errorf("polder maintain ends with %v and says: %s", err, out)
	}
}

func writeStoreSettings(t *testing.T, p *testenv.Plane, settings map[string]any) {
	t.Helper()
	b, err := json.Marshal(settings)
	if err == nil {
		err = os.WriteFile(filepath.Join(p.Data, "store.json"), b, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	testenv.Chown(t, filepath.Join(p.Data, "store.json"))
}

func modified(file string) time.Time {
	info, err := os.Stat(file)
	if err != nil {
		return time.Time{}
	}
	return info.ModTime()
}

// change replaces a value in a file and returns what was in the file.
func change(t *testing.T, file string) []byte {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(b, []byte(rightValue)) {
		t.Fatal("the value is not in the file; the test looks in the wrong place")
	}
	restoreFile(t, file, bytes.ReplaceAll(b, []byte(rightValue), []byte(wrongValue)))
	return b
}

// restoreFile writes into the file that is there, so that it keeps its owner.
func restoreFile(t *testing.T, file string, content []byte) {
	t.Helper()
	if err := os.WriteFile(file, content, 0o600); err != nil {
		t.Fatal(err)
	}
}

func truncate(t *testing.T, file string, divisor int64) {
	t.Helper()
	info, err := os.Stat(file)
	if err == nil {
		err = os.Truncate(file, info.Size()/divisor)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// scramble changes a byte of each page but the first two, wherever the page begins.
func scramble(t *testing.T, file string) {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for at := 2 * 4096; at < len(b); at += 4096 {
		b[at+at/4096%64] ^= 0x55
	}
	restoreFile(t, file, b)
}

func rename(t *testing.T, from, to string) {
	t.Helper()
	if err := os.Rename(from, to); err != nil {
		t.Fatal(err)
	}
}

// cutLog leaves some kB of the newest file of the write-ahead log.
func cutLog(t *testing.T, dir string) {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "*.wal"))
	if err != nil || len(names) == 0 {
		t.Fatal(names, err)
	}
	if err := os.Truncate(names[len(names)-1], 20_000); err != nil {
		t.Fatal(err)
	}
}

// Who may read some objects may not make the store pause.
func TestMaintainIsForAdministrators(t *testing.T) {
	p := shared.Get(t)
	ns := p.CreateNamespace(t)
	grantReading(t, p.Client(t), ns)
	c := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	url := p.Status(t).Address + "/maintenance/store"
	if code := statusCode(t, c, http.MethodPost, url, "Bearer "+requestToken(t, p, ns, readingAccount)); code != http.StatusForbidden {
		t.Errorf("a reader is answered with %d", code)
	}
	out, err := polder(t, p.Tree, "maintain", "--data-dir", p.Data)
	if err != nil || !strings.Contains(out, "it may have 4.0 GB") {
		t.Errorf("polder maintain ends with %v and says: %s", err, out)
	}
}
