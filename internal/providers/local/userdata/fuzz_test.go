package userdata

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// FuzzParse checks what Parse promises of whatever it accepts: it is within the limits, its
// commands are lines, and Write can write it, twice, and FileContent returns what is on disk.
func FuzzParse(f *testing.F) {
	for _, name := range []string{"init.yaml", "join.yaml"} {
		f.Add(readTestdata(f, name))
	}
	for _, s := range []string{
		"#cloud-config", `{"ignition": {}}`, "Content-Type: a",
		documentWithFile("path: /a/../b"), documentWithFile(`path: "/a\0"`), documentWithFile("path: /.userdata.tmp"),
		documentWithFile("path: /a", "permissions: 0o17"),
		documentWithFile("path: /a", "encoding: gz+b64", "content: "+gzipBase64(f, 1<<16)), documentWithFile("path: /a", "content: !!binary aGVsbG8="),
		header + "write_files: [{path: /a/b}, {path: /a/b, append: true, content: x}, {path: /a/c}]\n",
		header + "a: &a [*a]\nb: *a\nruncmd: [[a, 'b'], \"\\e\", ~]\n",
		"## template: jinja\n#cloud-config\nruncmd: ['{{ v1[\"instance_id\"] }}{% raw %}{{{% endraw %}']\n",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		d, err := Parse(b, testMetadata)
		if err != nil {
			if strings.ContainsAny(err.Error(), "\n\x00") || len(err.Error()) > 1000 {
				t.Errorf("not a sentence: %q", err)
			}
			return
		}
		checkLimits(t, d)
		dir := t.TempDir()
		root := openRoot(t, dir)
		for range 2 {
			if _, err := d.Write(root); err != nil {
				t.Fatal(err)
			}
		}
		for _, f := range d.Files {
			checkOnDisk(t, d, dir, f.Path)
		}
	})
}

func checkLimits(t *testing.T, d Data) {
	t.Helper()
	size := 0
	for _, f := range d.Files {
		size += len(f.Content)
	}
	if len(d.Files) > maxFiles || size > maxContent {
		t.Errorf("%d files with %d bytes", len(d.Files), size)
	}
	for _, c := range d.Commands {
		if !isPrintable(c.Line) {
			t.Errorf("not printable: %q", c.Line)
		}
	}
}

func checkOnDisk(t *testing.T, d Data, dir, path string) {
	t.Helper()
	name := filepath.Join(dir, path)
	if err := os.Chmod(name, 0o600); err != nil { // the data may have made it unreadable
		t.Fatal(err)
	}
	got, err := os.ReadFile(name)
	if want, ok := d.FileContent(path); err != nil || !ok || string(got) != string(want) {
		t.Errorf("%s is %q, %v, want %q", path, got, err, want)
	}
}
