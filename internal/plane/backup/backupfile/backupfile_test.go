package backupfile

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"filippo.io/age"
	"github.com/google/go-cmp/cmp"

	"github.com/polder-kaas/polder/internal/plane/backup/archive"
)

// writeBackup makes a small backup and returns its content as a visitor is told it.
func writeBackup(t testing.TB, path string, k Keys) map[string]string {
	t.Helper()
	want := map[string]string{
		archive.MarkerName: "{}", "pki/encryption.yaml": "key", "pki/service-accounts.key": "key", archive.SnapshotName: strings.Repeat("bolt", 50),
	}
	w, err := Create(path, k)
	if err != nil {
		t.Fatal(err)
	}
	a, err := archive.NewWriter(w, archive.Header{CreatedAt: time.Date(2026, 11, 15, 10, 15, 0, 0, time.UTC)})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{archive.MarkerName, "pki/encryption.yaml", "pki/service-accounts.key", archive.SnapshotName} {
		if err := a.AddFile(name, 0o600, int64(len(want[name])), func(w io.Writer) error { _, err := io.WriteString(w, want[name]); return err }); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := a.Close(1); err != nil {
		t.Fatal(err)
	}
	size, err := w.Commit()
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 || info.Size() != size {
		t.Fatalf("%v, %v, size %d", info.Mode(), err, size)
	}
	return want
}

func readBackup(path string, u Unlock) (map[string]string, error) {
	r, err := Open(path)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	got := map[string]string{}
	_, err = r.Read(u, archive.Visitor{Entry: func(e archive.Entry, in io.Reader) error {
		b, err := io.ReadAll(in)
		got[e.Name] = string(b)
		return err
	}})
	return got, err
}

// newKey returns a public key and a file with the private one.
func newKey(t testing.TB) (string, string) {
	t.Helper()
	id, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	return id.Recipient().String(), writeFile(t, "# comment\n"+id.String()+"\n")
}

func writeFile(t testing.TB, text string) string {
	t.Helper()
	f := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(f, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return f
}

func rewrite(t testing.TB, file string, b []byte) {
	t.Helper()
	if err := os.WriteFile(file, b, 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestWriteAndRead(t *testing.T) {
	public, private := newKey(t)
	other, otherPrivate := newKey(t)
	for name, c := range map[string]struct {
		keys   Keys
		unlock Unlock
		want   Encryption
	}{
		"plain text":           {Keys{Plaintext: true}, Unlock{}, Plaintext},
		"recipient":            {Keys{Recipients: []string{public}}, Unlock{IdentityFile: private}, WithKey},
		"the second of two":    {Keys{Recipients: []string{public, other}}, Unlock{IdentityFile: otherPrivate}, WithKey},
		"a file of them":       {Keys{RecipientsFile: writeFile(t, "# one\n"+other+"\n"+public+"\n")}, Unlock{IdentityFile: private}, WithKey},
		"passphrase":           {Keys{Passphrase: "correct horse", workFactor: 10}, Unlock{Passphrase: "correct horse"}, WithPassphrase},
		"passphrase in a file": {Keys{PassphraseFile: writeFile(t, "correct horse\r\nmore\n"), workFactor: 10}, Unlock{Passphrase: "correct horse"}, WithPassphrase},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "b")
			want := writeBackup(t, path, c.keys)
			r, err := Open(path)
			if err != nil || r.Encryption != c.want {
				t.Fatalf("encryption %q, %v", r.Encryption, err)
			}
			_ = r.Close()
			got, err := readBackup(path, c.unlock)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(want, got); d != "" {
				t.Error(d)
			}
			if b, _ := os.ReadFile(path); c.want != Plaintext && bytes.Contains(b, []byte("encryption.yaml")) {
				t.Error("it is not encrypted")
			}
		})
	}
}

func TestWrongKeys(t *testing.T) {
	public, private := newKey(t)
	_, other := newKey(t)
	toKey, toPassphrase := filepath.Join(t.TempDir(), "k"), filepath.Join(t.TempDir(), "p")
	writeBackup(t, toKey, Keys{Recipients: []string{public}})
	writeBackup(t, toPassphrase, Keys{Passphrase: "correct horse", workFactor: 10})
	for name, c := range map[string]struct {
		path   string
		unlock Unlock
		want   string
		is     error
	}{
		"another key":                   {toKey, Unlock{IdentityFile: other}, "encrypted to other keys", ErrWrongKey},
		"a passphrase for a key":        {toKey, Unlock{Passphrase: "x"}, "encrypted to other keys", ErrWrongKey},
		"another passphrase":            {toPassphrase, Unlock{Passphrase: "wrong horse"}, "the passphrase is not that of the backup", ErrWrongKey},
		"a key for a passphrase":        {toPassphrase, Unlock{IdentityFile: private}, "the passphrase is not that", ErrWrongKey},
		"a file that is none":           {toKey, Unlock{IdentityFile: writeFile(t, "hello")}, "no file with private age keys", nil},
		"a file with the public key":    {toKey, Unlock{IdentityFile: writeFile(t, public)}, "no file with private age keys", nil},
		"a file that is not there":      {toKey, Unlock{IdentityFile: "/nowhere"}, "reading the private key", nil},
		"nothing where a key is needed": {toKey, Unlock{}, "passphrase", nil},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := readBackup(c.path, c.unlock)
			if err == nil || !strings.Contains(err.Error(), c.want) || c.is != nil && !errors.Is(err, c.is) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

func TestBadKeys(t *testing.T) {
	public, private := newKey(t)
	for name, c := range map[string]struct {
		keys Keys
		want string
	}{
		"none":             {Keys{}, "holds the private keys"},
		"two ways":         {Keys{Plaintext: true, Recipients: []string{public}}, "exclude each other"},
		"a typing error":   {Keys{Recipients: []string{public + "x"}}, "no public age key"},
		"a private key":    {Keys{Recipients: []string{"AGE-SECRET-KEY-1ABC"}}, "is a private key"},
		"a private file":   {Keys{RecipientsFile: private}, "no public age key"},
		"no file":          {Keys{RecipientsFile: "/nowhere"}, "reading recipients"},
		"no passphrase":    {Keys{PassphraseFile: "/nowhere"}, "reading the passphrase"},
		"empty passphrase": {Keys{PassphraseFile: writeFile(t, "\nx")}, "is empty"},
		"a large file":     {Keys{PassphraseFile: writeFile(t, strings.Repeat("x", 5000))}, "too large"},
	} {
		t.Run(name, func(t *testing.T) {
			err := c.keys.Check()
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "SECRET") {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
	if !errors.Is(Keys{}.Check(), ErrNoKey) || !(Keys{}).IsEmpty() || (Keys{Plaintext: true}).IsEmpty() {
		t.Error("no choice is not told apart")
	}
}

func TestEveryCutIsRefused(t *testing.T) {
	public, private := newKey(t)
	for name, c := range map[string]struct {
		keys   Keys
		unlock Unlock
	}{
		"plain text": {Keys{Plaintext: true}, Unlock{}},
		"encrypted":  {Keys{Recipients: []string{public}}, Unlock{IdentityFile: private}},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "b")
			writeBackup(t, path, c.keys)
			b, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			cut := writeFile(t, "")
			for n := range b {
				rewrite(t, cut, b[:n])
				if _, err := readBackup(cut, c.unlock); !errors.Is(err, archive.ErrDamaged) && !errors.Is(err, ErrWrongKey) {
					t.Fatalf("cut at %d of %d: %v", n, len(b), err)
				}
			}
		})
	}
}

func TestEveryChangedBitIsRefused(t *testing.T) {
	public, private := newKey(t)
	path := filepath.Join(t.TempDir(), "b")
	writeBackup(t, path, Keys{Recipients: []string{public}})
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	file := writeFile(t, "")
	for i := range b {
		changed := bytes.Clone(b)
		changed[i] ^= 1 << (i % 8)
		rewrite(t, file, changed)
		if _, err := readBackup(file, Unlock{IdentityFile: private}); !errors.Is(err, archive.ErrDamaged) && !errors.Is(err, ErrWrongKey) {
			t.Fatalf("bit of byte %d of %d: %v", i, len(b), err)
		}
	}
}

// Without encryption there are a few bits in zstd's own header that change no content.
func TestChangedPlainContentIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "b")
	want := writeBackup(t, path, Keys{Plaintext: true})
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	accepted, file := 0, writeFile(t, "")
	for i := range b {
		changed := bytes.Clone(b)
		changed[i] ^= 1 << (i % 8)
		rewrite(t, file, changed)
		got, err := readBackup(file, Unlock{})
		if err == nil {
			accepted++
			if d := cmp.Diff(want, got); d != "" {
				t.Fatalf("bit of byte %d: changed content is taken: %s", i, d)
			}
		}
	}
	if accepted > 8 {
		t.Errorf("%d of %d changes were taken", accepted, len(b))
	}
}

func TestNothingIsLeftOrReplaced(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "b")
	w, err := Create(path, Keys{Plaintext: true})
	if err != nil {
		t.Fatal(err)
	}
	_, _ = w.Write([]byte("half"))
	if entries, _ := os.ReadDir(dir); len(entries) != 1 || entries[0].Name() == "b" {
		t.Errorf("while it is written there is %v", entries)
	}
	w.Abort()
	if entries, _ := os.ReadDir(dir); len(entries) != 0 {
		t.Errorf("after an error there is %v", entries)
	}
	w, err = Create(path, Keys{Plaintext: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("somebody's"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Commit(); err == nil {
		t.Error("a file that has appeared is replaced")
	}
	if _, err := Create(path, Keys{Plaintext: true}); err == nil {
		t.Error("a file is replaced")
	}
	b, _ := os.ReadFile(path)
	if entries, _ := os.ReadDir(dir); len(entries) != 1 || string(b) != "somebody's" {
		t.Errorf("at the end there is %v, %q", entries, b)
	}
	if _, err := Create("/nowhere/b", Keys{Plaintext: true}); err == nil || !strings.Contains(err.Error(), "no such file") {
		t.Errorf("no directory: %v", err)
	}
}

func TestNoBackup(t *testing.T) {
	for name, text := range map[string]string{"empty": "", "text": "hello", "a database": strings.Repeat("\x00", 5000)} {
		if _, err := Open(writeFile(t, text)); !errors.Is(err, archive.ErrDamaged) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := Open("/nowhere"); err == nil || errors.Is(err, archive.ErrDamaged) {
		t.Errorf("no file: %v", err)
	}
}

func TestListAndPrune(t *testing.T) {
	dir := t.TempDir()
	at := time.Date(2026, 11, 15, 10, 0, 0, 0, time.FixedZone("", 3600))
	names := []string{
		Name(at, Keys{}), Name(at.Add(2*time.Hour), Keys{Plaintext: true}), Name(at.Add(time.Hour), Keys{}),
		"polder-yesterday.tar.zst.age", "polder-20261115T090000Z.tar.zst.age.copy", "other-20261115T090000Z.tar.zst", partPrefix + "1",
	}
	for _, n := range names {
		if err := os.WriteFile(filepath.Join(dir, n), []byte("xyz"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, "polder-20261115T200000Z.tar.zst"), 0o700); err != nil {
		t.Fatal(err)
	}
	got, err := List(dir)
	want := []Info{
		{filepath.Join(dir, "polder-20261115T110000Z.tar.zst"), at.Add(2 * time.Hour).UTC(), 3, false},
		{filepath.Join(dir, "polder-20261115T100000Z.tar.zst.age"), at.Add(time.Hour).UTC(), 3, true},
		{filepath.Join(dir, "polder-20261115T090000Z.tar.zst.age"), at.UTC(), 3, true},
	}
	if d := cmp.Diff(want, got); d != "" || err != nil {
		t.Error(d, err)
	}
	if err := errors.Join(Prune(dir, 2), Prune(dir, 9), RemoveParts(dir)); err != nil {
		t.Fatal(err)
	}
	if got, err := List(dir); err != nil || cmp.Diff(want[:2], got) != "" {
		t.Error(cmp.Diff(want[:2], got), err)
	}
	if entries, _ := os.ReadDir(dir); len(entries) != 6 {
		t.Errorf("left are %v", entries)
	}
	if got, err := List("/nowhere"); err != nil || len(got) != 0 {
		t.Errorf("no directory: %v, %v", got, err)
	}
}
