package archive_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/polder-kaas/polder/stack/archive"
)

// entry is one entry of an archive that a test packs.
type entry struct {
	tar.Header
	content string
}

func file(name, content string) entry {
	return entry{tar.Header{Name: name, Typeflag: tar.TypeReg}, content}
}

func special(name string, typeflag byte, target string) entry {
	return entry{tar.Header{Name: name, Typeflag: typeflag, Linkname: target}, ""}
}

func pack(t testing.TB, entries ...entry) []byte {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	w := tar.NewWriter(z)
	for _, e := range entries {
		if e.Typeflag != tar.TypeXGlobalHeader {
			e.Size, e.Mode = int64(len(e.content)), 0o644
		}
		if err := w.WriteHeader(&e.Header); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, e.content); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(w.Close(), z.Close()); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func zipped(t testing.TB, write func(io.Writer)) []byte {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	write(z)
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestRead(t *testing.T) {
	got, err := archive.Read(bytes.NewReader(pack(t,
		entry{tar.Header{Typeflag: tar.TypeXGlobalHeader, PAXRecords: map[string]string{"comment": "a commit"}}, ""},
		special("./", tar.TypeDir, ""), special("chart/", tar.TypeDir, ""), file("chart/Chart.yaml", "name: a"), file("./chart/templates/x.yaml", "x"),
		file("empty", ""),
	)), archive.DefaultLimits)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(archive.Tree{"chart/Chart.yaml": []byte("name: a"), "chart/templates/x.yaml": []byte("x"), "empty": {}}, got); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]string{"Chart.yaml", "templates/x.yaml"}, got.Sub("chart").Names()); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]string{"chart"}, got.Dirs()); d != "" || got.Size() != 8 {
		t.Error(d, got.Size())
	}
}

func TestHostileArchives(t *testing.T) {
	good := pack(t, file("a", "b"))
	deep := strings.Repeat("d/", 40) + "f"
	for name, c := range map[string]struct {
		packed []byte
		want   string
	}{
		"outside":                  {pack(t, file("../evil", "")), `entry "../evil" has a path that is not clean, or leads outside`},
		"outside, hidden":          {pack(t, file("a/../../evil", "")), "leads outside"},
		"outside, a directory":     {pack(t, special("../evil/", tar.TypeDir, "")), "leads outside"},
		"not clean":                {pack(t, file("a//b", "")), "not clean"},
		"only dots":                {pack(t, file("..", "")), "not clean"},
		"absolute":                 {pack(t, file("/etc/passwd", "")), "has an absolute path"},
		"a backslash":              {pack(t, file(`..\evil`, "")), "not every system"},
		"a drive":                  {pack(t, file("c:evil", "")), "not every system"},
		"a line break":             {pack(t, file("a\nb", "")), "not every system"},
		"not UTF-8":                {pack(t, file("a\xffb", "")), "not UTF-8"},
		"a long name":              {pack(t, file(strings.Repeat("n", 600), "")), "a name of 600 bytes"},
		"too deep":                 {pack(t, file(deep, "")), "more than 32 directories deep"},
		"a symbolic link":          {pack(t, special("l", tar.TypeSymlink, "/etc")), `entry "l" is a symbolic link; only files and directories are taken`},
		"a hard link":              {pack(t, special("l", tar.TypeLink, "a")), "is a hard link"},
		"a device":                 {pack(t, special("l", tar.TypeChar, "")), "is a device"},
		"a block device":           {pack(t, special("l", tar.TypeBlock, "")), "is a device"},
		"a pipe":                   {pack(t, special("l", tar.TypeFifo, "")), "is a pipe"},
		"twice":                    {pack(t, file("a", "1"), file("a", "2")), "is there twice"},
		"twice, spelled otherwise": {pack(t, file("a", "1"), file("./a", "2")), "is there twice"},
		"upper and lower case":     {pack(t, file("a/b", "1"), file("A/c", "2")), `entry "A/c" differs from "a" only in upper and lower case`},
		"file, then directory":     {pack(t, file("a", "1"), file("a/b", "2")), `entry "a/b" makes "a" both a file and a directory`},
		"directory, then file":     {pack(t, file("a/b", "1"), file("a", "2")), "both a file and a directory"},
		"a large file":             {pack(t, file("a", strings.Repeat("0123456789abcdef", 5<<16+1))), "has 5 MiB; at most 5 MiB are taken"},
		"empty":                    {nil, "it is not a gzip-compressed archive"},
		"not packed":               {[]byte("hello, this is no archive"), "it is not a gzip-compressed archive"},
		"no tar archive":           {zipped(t, func(w io.Writer) { _, _ = w.Write(bytes.Repeat([]byte("x"), 2000)) }), "the archive is damaged"},
		"cut":                      {good[:len(good)/2], "the archive is damaged"},
		"cut in its check sum":     {good[:len(good)-2], "the archive is damaged"},
		"a wrong check sum":        {append(bytes.Clone(good[:len(good)-8]), 1, 2, 3, 4, 5, 6, 7, 8), "the archive is damaged"},
		"something behind":         {append(bytes.Clone(good), "more"...), "the archive is damaged"},
		"another behind":           {append(bytes.Clone(good), pack(t, file("hidden", "x"))...), "the archive goes on after its end"},
	} {
		t.Run(name, func(t *testing.T) {
			tree, err := archive.Read(bytes.NewReader(c.packed), archive.DefaultLimits)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %s", err, c.want)
			}
			var e *archive.Error
			if tree != nil || !errors.As(err, &e) || len(err.Error()) > 300 || strings.Contains(err.Error(), "\n") {
				t.Errorf("a tree of %d, %q", len(tree), err)
			}
		})
	}
}

// Bombs are refused soon and within little memory, however large they would be.
func TestBombs(t *testing.T) {
	zeros := make([]byte, 1<<20)
	for name, c := range map[string]struct {
		write func(*tar.Writer, io.Writer)
		want  string
	}{
		"zeros behind the end": {func(tw *tar.Writer, w io.Writer) {
			_ = tw.Close()
			for range 2048 {
				_, _ = w.Write(zeros)
			}
		}, "more than 200 times as large"},
		"a million entries": {func(tw *tar.Writer, _ io.Writer) {
			for i := range 1_000_000 {
				if tw.WriteHeader(&tar.Header{Name: fmt.Sprint(i), Typeflag: tar.TypeReg}) != nil {
					return
				}
			}
		}, "the archive has more than 10000 entries"},
		"many large files": {func(tw *tar.Writer, _ io.Writer) {
			for i := range 1000 {
				_ = tw.WriteHeader(&tar.Header{Name: fmt.Sprint(i), Typeflag: tar.TypeReg, Size: 4 << 20})
				for range 4 {
					if _, err := tw.Write(zeros); err != nil {
						return
					}
				}
			}
		}, "more than 200 times as large"},
		"a size that lies": {func(tw *tar.Writer, _ io.Writer) {
			_ = tw.WriteHeader(&tar.Header{Name: "a", Typeflag: tar.TypeReg, Size: 1 << 40})
		}, "has 1048576 MiB; at most 5 MiB are taken"},
	} {
		t.Run(name, func(t *testing.T) {
			r, w := io.Pipe()
			go func() {
				z := gzip.NewWriter(w)
				tw := tar.NewWriter(z)
				c.write(tw, z)
				_ = z.Close()
				_ = w.Close()
			}()
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := archive.Read(r, archive.DefaultLimits)
			runtime.ReadMemStats(&after)
			_ = r.Close() // whoever writes must not hang
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %s", err, c.want)
			}
			if grown := int64(after.HeapInuse) - int64(before.HeapInuse); grown > 64<<20 {
				t.Errorf("it took %d MiB", grown>>20)
			}
		})
	}
	t.Run("more than may come in", func(t *testing.T) {
		_, err := archive.Read(io.MultiReader(bytes.NewReader(pack(t, file("a", "b"))[:40]), &random{}), archive.Limits{
			Packed: 1000, Total: 1 << 20, File: 1 << 20, Entries: 10, Ratio: 200,
		})
		if err == nil {
			t.Error("it has no end, and was read")
		}
	})
}

// random is a reader without an end.
type random struct{ x uint32 }

func (r *random) Read(p []byte) (int, error) {
	for i := range p {
		r.x = r.x*1664525 + 1013904223
		p[i] = byte(r.x >> 24)
	}
	return len(p), nil
}

func TestWriteIsReproducible(t *testing.T) {
	tree := archive.Tree{"b/c": []byte("1"), "a": []byte("2"), "b/a": nil}
	var first bytes.Buffer
	if err := archive.Write(&first, tree); err != nil {
		t.Fatal(err)
	}
	var second bytes.Buffer
	if err := archive.Write(&second, tree); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(first.Bytes(), second.Bytes()) {
		t.Error("the same tree was written differently")
	}
	again, err := archive.Read(&first, archive.DefaultLimits)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(archive.Tree{"b/c": []byte("1"), "a": []byte("2"), "b/a": {}}, again); d != "" {
		t.Error(d)
	}
	for _, bad := range []archive.Tree{{"../a": nil}, {"/a": nil}, {"a": nil, "A": nil}, {"a": nil, "a/b": nil}} {
		if archive.Write(io.Discard, bad) == nil || archive.WriteDir(filepath.Join(t.TempDir(), "d"), bad) == nil {
			t.Errorf("%q is written", bad.Names())
		}
	}
}

func TestDirectories(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "some", "where")
	tree := archive.Tree{"a": []byte("1"), "b/c/d": []byte("2"), "b/skipped": []byte("3"), ".git/config": []byte("4")}
	if err := archive.WriteDir(dir, tree); err != nil {
		t.Fatal(err)
	}
	got, err := archive.ReadDir(dir, archive.DefaultLimits, func(name string, isDir bool) bool {
		return name == "b/skipped" && !isDir || name == ".git" && isDir
	})
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(archive.Tree{"a": []byte("1"), "b/c/d": []byte("2")}, got); d != "" {
		t.Error(d)
	}
	if err := archive.WriteDir(dir, tree); err == nil || !strings.Contains(err.Error(), "is not empty") {
		t.Error(err)
	}
	if left, err := os.ReadDir(filepath.Dir(dir)); err != nil || len(left) != 1 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestHostileDirectories(t *testing.T) {
	outside := filepath.Join(t.TempDir(), "canary")
	if err := os.WriteFile(outside, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		make func(dir string) error
		want string
	}{
		"a link to a file":      {func(d string) error { return os.Symlink(outside, filepath.Join(d, "l")) }, `entry "l" is a symbolic link`},
		"a link to a directory": {func(d string) error { return os.Symlink(filepath.Dir(outside), filepath.Join(d, "l")) }, "is a symbolic link"},
		"a link inside":         {func(d string) error { return os.Symlink("a", filepath.Join(d, "l")) }, "is a symbolic link"},
		"a pipe":                {func(d string) error { return syscall.Mkfifo(filepath.Join(d, "p"), 0o600) }, "is a pipe"},
		"a large file":          {func(d string) error { return os.Truncate(filepath.Join(d, "a"), 6<<20) }, "has more than 5 MiB"},
		"a strange name":        {func(d string) error { return os.WriteFile(filepath.Join(d, `x\y`), nil, 0o600) }, "not every system"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if err := errors.Join(os.WriteFile(filepath.Join(dir, "a"), []byte("a"), 0o600), c.make(dir)); err != nil {
				t.Fatal(err)
			}
			if tree, err := archive.ReadDir(dir, archive.DefaultLimits, nil); err == nil || tree != nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %s", err, c.want)
			}
		})
	}
	if _, err := archive.ReadDir(outside, archive.DefaultLimits, nil); err == nil {
		t.Error("a file is no directory")
	}
}

// Whatever is read is a tree that can be written, and is then read as the same.
func FuzzRead(f *testing.F) {
	f.Add(pack(f, file("a", "b"), special("d/", tar.TypeDir, ""), file("d/e", "")))
	f.Add(pack(f, file("../evil", ""), special("l", tar.TypeSymlink, "/etc")))
	f.Add([]byte{0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff})
	f.Add([]byte("no archive"))
	small := archive.Limits{Packed: 1 << 20, Total: 1 << 20, File: 1 << 18, Entries: 100, Ratio: 200}
	f.Fuzz(func(t *testing.T, b []byte) {
		tree, err := archive.Read(bytes.NewReader(b), small)
		if err != nil {
			return
		}
		var packed bytes.Buffer
		if err := archive.Write(&packed, tree); err != nil {
			t.Fatalf("what was read cannot be written: %v", err)
		}
		again, err := archive.Read(&packed, archive.DefaultLimits)
		if err != nil || !cmp.Equal(tree, again) {
			t.Errorf("%v: %s", err, cmp.Diff(tree, again))
		}
	})
}
