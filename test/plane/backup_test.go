package plane

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"filippo.io/age"
	"github.com/klauspost/compress/zstd"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/polder-kaas/polder/internal/plane/backup/archive"
	"github.com/polder-kaas/polder/internal/plane/status"
	"github.com/polder-kaas/polder/internal/program/exit"
	"github.com/polder-kaas/polder/test/testenv"
)

// newAgeKey returns a public key and a file of the tree with the private one.
func newAgeKey(t *testing.T, tree testenv.Tree) (string, string) {
	t.Helper()
	id, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	return id.Recipient().String(), writeTreeFile(t, tree, "identity", []byte(id.String()+"\n"))
}

// writeTreeFile writes a file that the programs of the tree can read.
func writeTreeFile(t *testing.T, tree testenv.Tree, name string, b []byte) string {
	t.Helper()
	file := filepath.Join(tree.Root, name)
	if err := os.WriteFile(file, b, 0o600); err != nil {
		t.Fatal(err)
	}
	testenv.Chown(t, file)
	return file
}

// mustPolder runs polder and expects that it works.
func mustPolder(t *testing.T, tree testenv.Tree, args ...string) string {
	t.Helper()
	out, err := polder(t, tree, args...)
	if err != nil {
		t.Fatalf("polder %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return out
}

// A backup is made while clients write. What it restores to, elsewhere, has all that was acknowledged before it began,
// can read its Secrets, and sends who watched the old plane to list again.
func TestBackupAndRestore(t *testing.T) {
	t.Parallel()
	p := testenv.StartPlane(t)
	ns := p.CreateNamespace(t)
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "s"}, Data: map[string][]byte{"a": []byte("b")}}
	if err := p.Client(t).Create(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	public, private := newAgeKey(t, p.Tree)
	file := filepath.Join(p.Tree.Root, "backup")
	w := startWriters(t, p, ns)
	w.await(t, 100)
	before := w.Checkpoint()
	out := mustPolder(t, p.Tree, "backup", file, "--recipient", public, "--data-dir", p.Data)
	w.await(t, w.Acknowledged()+50)
	w.stop()
	if !strings.HasPrefix(out, "Wrote "+file+": ") {
		t.Errorf("polder backup says %q", out)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	newest := newestRevision(t, p, ns)
	if code := p.Signal(t, 15, time.Minute); code != 0 {
		t.Fatalf("polderd ended with %d", code)
	}

	other := testenv.NewPlane(t, p.Tree)
	other.Data = filepath.Join(p.Tree.Root, "other")
	if out := mustPolder(t, p.Tree, "restore", file, "--identity-file", private, "--data-dir", other.Data); !strings.Contains(out, "Restored to "+other.Data+": a backup of ") {
		t.Errorf("polder restore says %q", out)
	}
	other.Start(t)
	other.AwaitReady(t)
	if err := before.Verify(t.Context(), other.RESTConfig(t)); err != nil {
		t.Error(err)
	}
	var got corev1.Secret
	if err := other.Client(t).Get(t.Context(), client.ObjectKeyFromObject(secret), &got); err != nil || string(got.Data["a"]) != "b" {
		t.Errorf("Secret: %q, %v", got.Data, err)
	}
	if rev := newestRevision(t, other, ns); rev <= newest {
		t.Errorf("revision %d is not after %d, which clients have seen", rev, newest)
	}
	c, err := kubernetes.NewForConfig(other.RESTConfig(t))
	if err != nil {
		t.Fatal(err)
	}
	checkWatchExpired(t, c, ns, newest)
}

// newestRevision writes something and returns its resource version.
func newestRevision(t *testing.T, p *testenv.Plane, ns string) int64 {
	t.Helper()
	o := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: ns, GenerateName: "newest-"}}
	if err := p.Client(t).Create(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	n, err := strconv.ParseInt(o.ResourceVersion, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// checkWatchExpired continues a watch that was begun before the restore.
func checkWatchExpired(t *testing.T, c kubernetes.Interface, ns string, since int64) {
	t.Helper()
	w, err := c.CoreV1().ConfigMaps(ns).Watch(t.Context(), metav1.ListOptions{ResourceVersion: strconv.FormatInt(since, 10)})
	if apierrors.IsResourceExpired(err) || apierrors.IsGone(err) {
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	select {
	case e := <-w.ResultChan():
		if err := apierrors.FromObject(e.Object); !apierrors.IsResourceExpired(err) && !apierrors.IsGone(err) {
			t.Errorf("a watch from before the restore goes on with %s %v", e.Type, err)
		}
	case <-time.After(time.Minute):
		t.Error("a watch from before the restore goes on in silence")
	}
}

func TestScheduledBackups(t *testing.T) {
	t.Parallel()
	tree := testenv.NewTree(t, false)
	public, private := newAgeKey(t, tree)
	dir := filepath.Join(tree.Root, "backups")
	p := testenv.NewPlane(t, tree)
	p.Start(t, "--backup-dir", dir, "--backup-every", "10s", "--backup-keep", "1", "--backup-recipient", public)
	p.AwaitReady(t)
	first := awaitBackup(t, p, func(b status.Backup) error {
		if b.Last == nil {
			return errors.New("there is no backup yet")
		}
		return nil
	}).Last.Path
	last := awaitBackup(t, p, func(b status.Backup) error {
		if b.Last.Path == first {
			return errors.New("there is no second backup yet")
		}
		return nil
	}).Last.Path
	testenv.Eventually(t, wait, func() error {
		if _, err := os.Stat(first); err == nil {
			return errors.New("the first backup is still kept")
		}
		return nil
	})
	if out := mustPolder(t, tree, "backup", "verify", last, "--identity-file", private); !strings.Contains(out, "is whole: a backup of ") {
		t.Errorf("verify says %q", out)
	}
	if out := mustPolder(t, tree, "backup", "list", "--data-dir", p.Data); !strings.Contains(out, dir) {
		t.Errorf("list says %q", out)
	}
	out := mustPolder(t, tree, "status", "--data-dir", p.Data)
	if !strings.Contains(out, "Backups:") || !strings.Contains(out, "every 10s, 1 are kept") {
		t.Errorf("status says %q", out)
	}
	if text := p.GetPath(t, "/metrics/controllers"); !strings.Contains(text, "polder_backup_failing 0") || !strings.Contains(text, "polder_backup_last_success_timestamp_seconds") {
		t.Error("there are no metrics of backups")
	}

	if err := os.Chmod(dir, 0o500); err != nil {
		t.Fatal(err)
	}
	awaitBackup(t, p, func(b status.Backup) error {
		if b.Problem == "" {
			return errors.New("the directory is not writable, and nobody says so")
		}
		return nil
	})
	out = mustPolder(t, tree, "status", "--data-dir", p.Data)
	if !strings.Contains(out, "FAILING") || !strings.Contains(out, "permission denied") || !strings.Contains(out, "It is ready.") {
		t.Errorf("status says %q", out)
	}
	if text := p.GetPath(t, "/metrics/controllers"); !strings.Contains(text, "polder_backup_failing 1") {
		t.Error("no metric tells that backups fail")
	}
}

func awaitBackup(t *testing.T, p *testenv.Plane, ok func(status.Backup) error) status.Backup {
	t.Helper()
	var b status.Backup
	testenv.Eventually(t, wait, func() error {
		s := p.Status(t)
		if s.Backup == nil {
			return errors.New("the plane says nothing about backups")
		}
		b = *s.Backup
		return ok(b)
	})
	return b
}

func TestBackupRefuses(t *testing.T) {
	p := shared.Get(t)
	public, _ := newAgeKey(t, p.Tree)
	there := writeTreeFile(t, p.Tree, "there", []byte("somebody's"))
	for name, c := range map[string]struct {
		args []string
		code int
		want string
	}{
		"no key":           {[]string{filepath.Join(p.Tree.Root, "x"), "--data-dir", p.Data}, exit.Usage, "holds the private keys"},
		"two ways":         {[]string{filepath.Join(p.Tree.Root, "x"), "--plaintext", "-r", public, "--data-dir", p.Data}, exit.Usage, "exclude each other"},
		"an existing file": {[]string{there, "--plaintext", "--data-dir", p.Data}, exit.Failure, "exists already"},
		"no such folder":   {[]string{"/nowhere/x", "--plaintext", "--data-dir", p.Data}, exit.Failure, "no such file"},
		"no plane":         {[]string{filepath.Join(p.Tree.Root, "x"), "--plaintext", "--data-dir", "nothing"}, exit.NotReady, "no polderd runs"},
		"keep of a file":   {[]string{filepath.Join(p.Tree.Root, "x"), "--plaintext", "--keep", "3", "--data-dir", p.Data}, exit.Usage, "name the directory"},
	} {
		t.Run(name, func(t *testing.T) {
			out, err := polder(t, p.Tree, append([]string{"backup"}, c.args...)...)
			if exitCode(err) != c.code || !strings.Contains(out, c.want) || strings.Count(strings.TrimSpace(out), "\n") > 0 {
				t.Errorf("code %d, want %d: %s", exitCode(err), c.code, out)
			}
		})
	}
	if b, err := os.ReadFile(there); err != nil || string(b) != "somebody's" {
		t.Errorf("%q, %v", b, err)
	}
	if left, _ := filepath.Glob(filepath.Join(p.Tree.Root, ".polder-backup-*")); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestRestoreRefuses(t *testing.T) {
	p := shared.Get(t)
	tree := p.Tree
	passphrase := writeTreeFile(t, tree, "passphrase", []byte("correct horse\n"))
	wrong := writeTreeFile(t, tree, "wrong", []byte("wrong horse\n"))
	locked, plain := filepath.Join(tree.Root, "locked"), filepath.Join(tree.Root, "plain")
	mustPolder(t, tree, "backup", locked, "--passphrase-file", passphrase, "--data-dir", p.Data)
	mustPolder(t, tree, "backup", plain, "--plaintext", "--data-dir", p.Data)
	b, err := os.ReadFile(locked)
	if err != nil {
		t.Fatal(err)
	}
	flipped := bytes.Clone(b)
	flipped[len(b)/2] ^= 1
	full := filepath.Join(tree.Root, "full")
	if err := errors.Join(os.Mkdir(full, 0o700), os.WriteFile(filepath.Join(full, "precious"), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	testenv.Chown(t, full)
	to := filepath.Join(tree.Root, "to")
	for name, c := range map[string]struct {
		args []string
		code int
		want string
	}{
		"damaged":            {[]string{writeTreeFile(t, tree, "flipped", flipped), "--passphrase-file", passphrase, "--data-dir", to}, exit.BadBackup, "the backup is damaged"},
		"cut off":            {[]string{writeTreeFile(t, tree, "cut", b[:len(b)-100]), "--passphrase-file", passphrase, "--data-dir", to}, exit.BadBackup, "the backup is damaged"},
		"another passphrase": {[]string{locked, "--passphrase-file", wrong, "--data-dir", to}, exit.BadBackup, "the passphrase is not that of the backup"},
		"no passphrase":      {[]string{locked, "--data-dir", to}, exit.Usage, "--passphrase-file"},
		"no backup":          {[]string{passphrase, "--data-dir", to}, exit.BadBackup, "it is no backup of Polder"},
		"no file":            {[]string{"/nowhere", "--data-dir", to}, exit.BadBackup, "no such file"},
		"a newer format": {
			[]string{writeTreeFile(t, tree, "newer", repack(t, plain, replaceText(`"format": 1,`, `"format": 2,`))), "--data-dir", to}, exit.NewerData, "its format is 2",
		},
		"a newer Kubernetes": {
			[]string{writeTreeFile(t, tree, "kube", rewriteEntry(t, plain, archive.MarkerName, newerMarker)), "--data-dir", to}, exit.NewerData, "it holds objects of Kubernetes v1.99.0",
		},
		"a store that is none": {
			[]string{writeTreeFile(t, tree, "nostore", rewriteEntry(t, plain, archive.SnapshotName, brokenPages)), "--data-dir", to}, exit.BadBackup, "the snapshot of the store is damaged",
		},
		"a full directory": {[]string{plain, "--data-dir", full}, exit.DataDir, "is not empty"},
		"a running plane":  {[]string{plain, "--data-dir", p.Data}, exit.InUse, "is in use by polderd"},
	} {
		t.Run(name, func(t *testing.T) {
			out, err := polder(t, tree, append([]string{"restore"}, c.args...)...)
			if exitCode(err) != c.code || !strings.Contains(out, c.want) || strings.Count(strings.TrimSpace(out), "\n") > 0 {
				t.Errorf("code %d, want %d: %s", exitCode(err), c.code, out)
			}
			if _, err := os.Stat(to); err == nil {
				t.Error("the directory was made")
			}
		})
	}
	if left, err := os.ReadDir(full); err != nil || len(left) != 1 {
		t.Errorf("the full directory has %v, %v", left, err)
	}
	mustPolder(t, tree, "restore", plain, "--data-dir", to) // so that what was refused was refused for its reason
}

// repack changes the bytes of the archive in a backup.
func repack(t *testing.T, file string, change func([]byte) []byte) []byte {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	r, err := zstd.NewReader(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	w, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	if b, err = r.DecodeAll(b, nil); err != nil {
		t.Fatal(err)
	}
	return w.EncodeAll(change(b), nil)
}

func replaceText(from, to string) func([]byte) []byte {
	return func(b []byte) []byte { return bytes.ReplaceAll(b, []byte(from), []byte(to)) }
}

// rewriteEntry makes a backup whose sums are right, with another content of one file.
func rewriteEntry(t *testing.T, file, name string, change func([]byte) []byte) []byte {
	t.Helper()
	return repack(t, file, func(b []byte) []byte {
		var out bytes.Buffer
		var a *archive.Writer
		m, err := archive.Read(bytes.NewReader(b), archive.Visitor{
			Header: func(h archive.Header) (err error) { a, err = archive.NewWriter(&out, h); return err },
			Entry: func(e archive.Entry, r io.Reader) error {
				if e.IsDir() {
					return a.AddDir(e.Name, e.Mode)
				}
				text, err := io.ReadAll(r)
				if err != nil {
					return err
				}
				if e.Name == name {
					text = change(text)
				}
				return a.AddFile(e.Name, e.Mode, int64(len(text)), func(w io.Writer) error { _, err := w.Write(text); return err })
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := a.Close(m.Store.Revision); err != nil {
			t.Fatal(err)
		}
		return out.Bytes()
	})
}

func newerMarker([]byte) []byte {
	return fmt.Appendf(nil, `{"format":1,"polder":"v9","kubernetes":"v1.99.0","etcd":"v3.7.0"}`)
}

// brokenPages is a database whose first pages are whole and whose others are not.
func brokenPages(b []byte) []byte {
	b = bytes.Clone(b)
	for i := 16 << 10; i < len(b); i++ {
		b[i] ^= 0x55
	}
	return b
}
