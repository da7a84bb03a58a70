package testenv

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// SaveTree sets a copy of a directory of the programs' user aside, and returns a function that puts it back.
func SaveTree(t testing.TB, dir string) (restore func()) {
	t.Helper()
	saved := filepath.Join(t.TempDir(), "saved")
	if err := os.CopyFS(saved, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	return func() {
		t.Helper()
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
		if err := os.CopyFS(dir, os.DirFS(saved)); err != nil {
			t.Fatal(err)
		}
		err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			Chown(t, path)
			return os.Chmod(path, 0o700)
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}
