package userdata

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func openRoot(t testing.TB, dir string) *os.Root {
	t.Helper()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = root.Close() })
	return root
}

// listTree lists what is below dir: mode and content of each file, mode of each directory.
func listTree(t testing.TB, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(dir, func(p string, e fs.DirEntry, err error) error {
		if err != nil || p == dir {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		content := ""
		if e.Type().IsRegular() {
			b, err := os.ReadFile(p)
			if err != nil {
				return err
			}
			content = " " + string(b)
		}
		out[strings.TrimPrefix(p, dir)] = info.Mode().String() + content
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestWrite(t *testing.T) {
	d := Data{Files: []File{
		{Path: "/etc/x/a", Mode: 0o755, Owner: "root:root", Content: []byte("one")},
		{Path: "/etc/b", Mode: 0o666, Owner: "bob", Content: []byte("gone"), Append: true},
		{Path: "/top", Mode: 0o400, Content: []byte("top")},
		{Path: "/etc/x/a", Mode: 0o600, Owner: "ada:ada", Content: []byte(", two"), Append: true},
		{Path: "/etc/b", Mode: 0o640, Owner: "root", Content: []byte("new")},
		{Path: "/etc/hosts", Mode: 0o644, Content: []byte("127.0.0.1 a\n"), Append: true},
		{Path: "/empty", Mode: 0o644},
	}}
	want := map[string]string{
		"/etc":       "drwx------",
		"/etc/x":     "drwx------",
		"/etc/x/a":   "-rw------- one, two",
		"/etc/b":     "-rw-r----- new",
		"/etc/hosts": "-rw-r--r-- 127.0.0.1 a\n",
		"/top":       "-r-------- top",
		"/empty":     "-rw-r--r-- ",
	}
	wantNotes := []string{
		"/etc/x/a: the owner ada:ada is ignored, files here belong to the user of this process",
		"/etc/hosts: there is nothing to append to here, so the file has only what was appended",
	}
	dir := t.TempDir()
	root := openRoot(t, dir)
	for range 2 { // the second time everything is there already, and gives the same
		notes, err := d.Write(root)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(wantNotes, notes); diff != "" {
			t.Errorf("notes (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(want, listTree(t, dir)); diff != "" {
			t.Errorf("tree (-want +got):\n%s", diff)
		}
	}
	for _, f := range d.Files {
		got, ok := d.FileContent(f.Path)
		if on, err := os.ReadFile(filepath.Join(dir, f.Path)); !ok || err != nil || string(got) != string(on) {
			t.Errorf("File(%s) = %q, %v; on disk is %q, %v", f.Path, got, ok, on, err)
		}
	}
	if b, ok := d.FileContent("/etc"); ok {
		t.Errorf("File of a directory = %q", b)
	}
}

func TestWriteReplacesWhatIsThere(t *testing.T) {
	dir := t.TempDir()
	outside := filepath.Join(t.TempDir(), "outside")
	for name, content := range map[string]string{outside: "outside", filepath.Join(dir, "a"): "old and longer", filepath.Join(dir, tempName): "left by a crash"} {
		if err := os.WriteFile(name, []byte(content), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(outside, filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "etc"), 0o750); err != nil {
		t.Fatal(err)
	}
	d := Data{Files: []File{
		{Path: "/a", Mode: 0o600, Content: []byte("new"), Append: true},
		{Path: "/link", Mode: 0o600, Content: []byte("inside")},
		{Path: "/etc/b", Mode: 0o600},
	}}
	if _, err := d.Write(openRoot(t, dir)); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"/a": "-rw------- new", "/link": "-rw------- inside", "/etc": "drwxr-x---", "/etc/b": "-rw------- "}
	if diff := cmp.Diff(want, listTree(t, dir)); diff != "" {
		t.Errorf("tree (-want +got):\n%s", diff)
	}
	if b, err := os.ReadFile(outside); err != nil || string(b) != "outside" {
		t.Errorf("the file outside became %q, %v", b, err)
	}
}

func TestNothingEscapes(t *testing.T) {
	tests := map[string]struct {
		link, to string // planted in the root; OUT is a directory outside
		path     string
	}{
		"absolute link":           {"etc", "OUT", "/etc/a"},
		"absolute link deeper":    {"etc", "OUT", "/etc/b/c/a"},
		"relative link":           {"etc", "../out", "/etc/a"},
		"link to the temporary":   {tempName, "OUT/b", "/../out/a"},
		"path that leads upwards": {"", "", "/../out/a"},
		"path that leads deeper":  {"", "", "/a/../../out/a"},
		"path of a file":          {"", "", "/"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			top := t.TempDir()
			dir, out := filepath.Join(top, "in"), filepath.Join(top, "out")
			for _, d := range []string{dir, out} {
				if err := os.Mkdir(d, 0o700); err != nil {
					t.Fatal(err)
				}
			}
			if tt.link != "" {
				if err := os.Symlink(strings.Replace(tt.to, "OUT", out, 1), filepath.Join(dir, tt.link)); err != nil {
					t.Fatal(err)
				}
			}
			_, err := Data{Files: []File{{Path: tt.path, Mode: 0o600, Content: []byte("x")}}}.Write(openRoot(t, dir))
			if err == nil || !strings.HasPrefix(err.Error(), "writing "+tt.path+": ") {
				t.Errorf("Write() = %v", err)
			}
			if got := listTree(t, out); len(got) > 0 {
				t.Errorf("written outside: %v", got)
			}
			if got := listTree(t, top); got["/in/"+tempName] != "" && tt.link != tempName {
				t.Errorf("left behind: %v", got)
			}
		})
	}
}

func TestALinkWithinTheMachineIsFollowed(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "run"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("run", filepath.Join(dir, "tmp")); err != nil {
		t.Fatal(err)
	}
	if _, err := (Data{Files: []File{{Path: "/tmp/b/a", Mode: 0o600}}}).Write(openRoot(t, dir)); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "run", "b", "a")); err != nil {
		t.Error(err)
	}
}
