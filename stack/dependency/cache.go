package dependency

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// Cache is a directory that keeps packed charts by their digest. If it is empty, nothing is kept.
type Cache string

func (c Cache) file(digest string) string {
	return filepath.Join(string(c), strings.Replace(digest, ":", "-", 1)+".tgz")
}

// get reads a chart and checks that it is what its name says: somebody may have changed the file.
func (c Cache) get(want string) ([]byte, bool) {
	if c == "" || !digestPattern.MatchString(want) {
		return nil, false
	}
	if info, err := os.Stat(c.file(want)); err != nil || !info.Mode().IsRegular() { // a pipe would never end
		return nil, false
	}
	f, err := os.Open(c.file(want))
	if err != nil {
		return nil, false
	}
	defer f.Close() //nolint:errcheck // read only
	// A file that is too large has another digest once it is cut.
	b, err := io.ReadAll(io.LimitReader(f, maxChart+1))
	return b, err == nil && digest(b) == want
}

// put adds a chart in one step, by a rename, so that nobody ever sees half a chart.
func (c Cache) put(digest string, b []byte) error {
	if c == "" {
		return nil
	}
	err := os.MkdirAll(string(c), 0o755)
	if err == nil {
		err = c.write(digest, b)
	}
	if err != nil {
		return fmt.Errorf("keeping the chart for builds: %w", err)
	}
	return nil
}

func (c Cache) write(digest string, b []byte) error {
	tmp, err := os.CreateTemp(string(c), ".chart-")
	if err != nil {
		return err
	}
	defer os.Remove(tmp.Name()) //nolint:errcheck // it was renamed, or the first error counts
	_, err = tmp.Write(b)
	if err := errors.Join(err, tmp.Close()); err != nil {
		return err
	}
	return os.Rename(tmp.Name(), c.file(digest))
}
