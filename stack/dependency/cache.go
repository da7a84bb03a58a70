package dependency

import (
	"os"
	"path/filepath"
	"strings"
)

// Cache keeps packed charts by their digest, in a directory. Empty means none.
type Cache string

func (c Cache) file(digest string) string {
	return filepath.Join(string(c), strings.Replace(digest, ":", "-", 1)+".tgz")
}

// get reads a chart and checks that it is what its name says: somebody may have changed the file.
func (c Cache) get(want string) ([]byte, bool) {
	if c == "" || !strings.HasPrefix(want, "sha256:") || strings.ContainsAny(want, `/\`) {
		return nil, false
	}
	b, err := os.ReadFile(c.file(want))
	return b, err == nil && digest(b) == want
}

func (c Cache) put(digest string, b []byte) error {
	if c == "" {
		return nil
	}
	if err := os.MkdirAll(string(c), 0o755); err != nil {
		return err
	}
	tmp, err := os.CreateTemp(string(c), ".chart-")
	if err != nil {
		return err
	}
	defer os.Remove(tmp.Name()) //nolint:errcheck // renamed by then
	if _, err := tmp.Write(b); err != nil {
		return err
	}
	if err := tmp.Close(); err != nil {
		return err
	}
	return os.Rename(tmp.Name(), c.file(digest))
}
