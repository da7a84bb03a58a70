package archive

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var header = Header{CreatedAt: time.Date(2026, 11, 15, 10, 15, 0, 0, time.UTC), Polder: "v1.2.3", Kubernetes: "v1.37.1", Etcd: "v3.7.3"}

// content is what a small archive holds, in order.
var content = []struct{ name, text string }{
	{MarkerName, `{"format":1}`}, {"pki/encryption.yaml", "key"}, {"pki/service-accounts.key", "key"},
	{SnapshotName, strings.Repeat("bolt", 300)},
	{"local/", ""}, {"local/" + strings.Repeat("long/", 30) + "name", "x"}, {"releases/empty", ""},
}

func write(t testing.TB) ([]byte, Manifest) {
	t.Helper()
	var b bytes.Buffer
	a, err := NewWriter(&b, header)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range content {
		if strings.HasSuffix(f.name, "/") {
			err = a.AddDir(f.name, 0o700)
		} else {
			err = a.AddFile(f.name, 0o600, int64(len(f.text)), func(w io.Writer) error { _, err := io.WriteString(w, f.text); return err })
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	m, err := a.Close(7)
	if err != nil {
		t.Fatal(err)
	}
	return b.Bytes(), m
}

// read returns what a visitor was told.
func read(b []byte) (map[string]string, Manifest, error) {
	got := map[string]string{}
	m, err := Read(bytes.NewReader(b), Visitor{Entry: func(e Entry, r io.Reader) error {
		text, err := io.ReadAll(r)
		got[e.Name] = string(text)
		return err
	}})
	return got, m, err
}

func TestWriteAndRead(t *testing.T) {
	b, want := write(t)
	got, m, err := read(b)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, m); d != "" {
		t.Error(d)
	}
	for _, f := range content {
		if text, ok := got[f.name]; !ok || text != f.text {
			t.Errorf("%s: %q, %t", f.name, text, ok)
		}
	}
	if m.Format != Format || m.Store.Revision != 7 || m.Store.SHA256 == "" || m.Size() != 1200+12+3+3+1 {
		t.Errorf("manifest: %+v, size %d", m, m.Size())
	}
}

func TestEveryCutIsRefused(t *testing.T) {
	b, _ := write(t)
	for n := range b {
		if _, _, err := read(b[:n]); !errors.Is(err, ErrDamaged) {
			t.Fatalf("cut at %d of %d: %v", n, len(b), err)
		}
	}
}

// Bits of a tar archive that mean nothing (padding, owners, times) are the business of the layers around it.
func TestChangedContentIsRefused(t *testing.T) {
	b, _ := write(t)
	want, _, _ := read(b)
	refused := 0
	for i := 0; i < len(b); i += 3 {
		c := bytes.Clone(b)
		c[i] ^= 0x10
		got, _, err := read(c)
		if err != nil {
			refused++
			continue
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Fatalf("byte %d: changed content is taken: %s", i, d)
		}
	}
	if refused < 600 {
		t.Errorf("only %d of %d changes were refused", refused, len(b))
	}
}

func TestWhatFollowsIsRefused(t *testing.T) {
	b, _ := write(t)
	for name, more := range map[string]string{"a byte": "x", "a block of zeros": strings.Repeat("\x00", 512), "an archive": string(b)} {
		if _, _, err := read(append(bytes.Clone(b), more...)); !errors.Is(err, ErrDamaged) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// pack makes an archive of entries that a Writer would not write, with a header before and, if wanted, a manifest.
func pack(t testing.TB, h Header, entries ...*tar.Header) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	text, _ := json.Marshal(h)
	all := append([]*tar.Header{{Name: headerName, Size: int64(len(text)), Mode: 0o600}}, entries...)
	for i, e := range all {
		if err := w.WriteHeader(e); err != nil {
			t.Fatal(err)
		}
		body := bytes.Repeat([]byte("x"), int(min(e.Size, 1<<20)))
		if i == 0 {
			body = text
		}
		if _, err := w.Write(body); err != nil {
			t.Fatal(err)
		}
	}
	_ = w.Flush() // a file that is shorter than it says is what some of them are about
	return b.Bytes()
}

func TestHostileArchives(t *testing.T) {
	h := header
	h.Format = 1
	newer := h
	newer.Format = 2
	none := h
	none.Format = 0
	file := func(name string) *tar.Header { return &tar.Header{Name: name, Mode: 0o600, Typeflag: tar.TypeReg} }
	sparse := file("local/a")
	sparse.PAXRecords = map[string]string{"comment": "x"}
	for name, c := range map[string]struct {
		archive []byte
		want    string
		is      error
	}{
		"nothing":               {nil, "cut off", ErrDamaged},
		"no tar":                {bytes.Repeat([]byte("x"), 2000), "damaged", ErrDamaged},
		"a newer format":        {pack(t, newer), "its format is 2, this version knows up to 1; use polder v1.2.3 or newer", ErrNewer},
		"no format":             {pack(t, none), "no format", ErrDamaged},
		"no header":             {pack(t, h)[1024:], "cut off", ErrDamaged},
		"outside":               {pack(t, h, file("../evil")), "no name of a file", ErrDamaged},
		"outside, hidden":       {pack(t, h, file("pki/../../evil")), "no name of a file", ErrDamaged},
		"absolute":              {pack(t, h, file("/etc/passwd")), "no name of a file", ErrDamaged},
		"not clean":             {pack(t, h, file("pki//a")), "no name of a file", ErrDamaged},
		"a backslash":           {pack(t, h, file(`pki\a`)), "no name of a file", ErrDamaged},
		"not ours":              {pack(t, h, file("admin.kubeconfig")), "does not belong", ErrDamaged},
		"a folder as a file":    {pack(t, h, file("pki")), "does not belong", ErrDamaged},
		"the store itself":      {pack(t, h, file("etcd/member/snap/db")), "does not belong", ErrDamaged},
		"a long name":           {pack(t, h, file("local/"+strings.Repeat("n", 2000))), "too long", ErrDamaged},
		"too deep":              {pack(t, h, file("local/"+strings.Repeat("d/", 100)+"f")), "too long", ErrDamaged},
		"twice":                 {pack(t, h, file("pki/a"), file("pki/a")), "twice", ErrDamaged},
		"a link":                {pack(t, h, &tar.Header{Name: "pki/a", Typeflag: tar.TypeSymlink, Linkname: "/etc"}), "neither a file", ErrDamaged},
		"a hard link":           {pack(t, h, &tar.Header{Name: "pki/a", Typeflag: tar.TypeLink, Linkname: "pki/b"}), "neither a file", ErrDamaged},
		"a device":              {pack(t, h, &tar.Header{Name: "pki/a", Typeflag: tar.TypeChar}), "neither a file", ErrDamaged},
		"a directory as a file": {pack(t, h, &tar.Header{Name: "pki/a", Typeflag: tar.TypeDir}), "not what its name says", ErrDamaged},
		"properties":            {pack(t, h, sparse), "a property", ErrDamaged},
		"more than there is":    {pack(t, h, &tar.Header{Name: "pki/a", Size: 1 << 40}), "cut off", ErrDamaged},
		"a large manifest":      {pack(t, h, &tar.Header{Name: manifestName, Size: 1 << 30}), "too large", ErrDamaged},
		"no manifest":           {pack(t, h, file("pki/a")), "cut off", ErrDamaged},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := read(c.archive)
			if !errors.Is(err, c.is) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

func TestIncompleteArchivesAreNotWritten(t *testing.T) {
	a, err := NewWriter(io.Discard, header)
	if err != nil {
		t.Fatal(err)
	}
	if err := a.AddFile("pki/a", 0o600, 3, func(io.Writer) error { return nil }); err == nil {
		t.Error("a file that is shorter than it was said to be is taken")
	}
	if err := a.AddFile("../a", 0o600, 0, func(io.Writer) error { return nil }); err == nil {
		t.Error("a file outside is taken")
	}
	a, _ = NewWriter(io.Discard, header)
	if _, err := a.Close(1); err == nil {
		t.Error("an archive without a store is written")
	}
}

func TestErrorsOfTheVisitorAreItsOwn(t *testing.T) {
	b, _ := write(t)
	full := errors.New("the disk is full")
	for name, v := range map[string]Visitor{
		"header": {Header: func(Header) error { return full }},
		"entry":  {Entry: func(Entry, io.Reader) error { return full }},
	} {
		if _, err := Read(bytes.NewReader(b), v); !errors.Is(err, full) || errors.Is(err, ErrDamaged) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// FuzzRead: whatever is read, nothing outside the known folders is handed on, and what is accepted is complete.
func FuzzRead(f *testing.F) {
	b, _ := write(f)
	f.Add(b)
	f.Add(b[:len(b)-700])
	h := header
	h.Format = 1
	f.Add(pack(f, h, &tar.Header{Name: "pki/../../evil", Typeflag: tar.TypeReg}))
	f.Add(pack(f, h, &tar.Header{Name: "local/a", Size: 1 << 50}))
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := Read(bytes.NewReader(b), Visitor{Entry: func(e Entry, r io.Reader) error {
			if strings.Contains(e.Name, "..") && checkName(e.Name) != nil || strings.HasPrefix(e.Name, "/") {
				t.Errorf("entry %q is handed on", e.Name)
			}
			n, err := io.Copy(io.Discard, r)
			if n > int64(len(b)) {
				t.Errorf("%d bytes came out of %d", n, len(b))
			}
			return err
		}})
		if err == nil {
			err = checkComplete(m)
		}
		if err != nil && !errors.Is(err, ErrDamaged) && !errors.Is(err, ErrNewer) {
			t.Error(err)
		}
	})
}
