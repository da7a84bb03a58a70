package backup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/polder-kaas/polder/internal/plane/backup/archive"
)

// ErrNotServed means that no polderd hands out backups of the data directory.
var ErrNotServed = errors.New("no polderd hands out backups here")

// maxError bounds what is read of an answer that is no archive.
const maxError = 4 << 10

// Fetch writes an archive of the running plane of a data directory to w. Without an error it is complete: all of it
// was checked on its way.
func Fetch(ctx context.Context, dataDir string, localClusters bool, w io.Writer) (archive.Manifest, error) {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", filepath.Join(dataDir, SocketName))
	}
	client := &http.Client{Transport: &http.Transport{DialContext: dial, DisableKeepAlives: true}}
	url := "http://polderd" + requestPath + "?" + localClustersParam + "=" + strconv.FormatBool(localClusters)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return archive.Manifest{}, err
	}
	res, err := client.Do(req)
	if err != nil {
		if errors.Is(err, syscall.ENOENT) || errors.Is(err, syscall.ECONNREFUSED) {
			return archive.Manifest{}, ErrNotServed
		}
		return archive.Manifest{}, fmt.Errorf("asking polderd: %w", errors.Unwrap(err)) // without method and URL
	}
	defer res.Body.Close() //nolint:errcheck // read to its end, or given up
	if res.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(res.Body, maxError)) // the code alone is an answer too
		return archive.Manifest{}, fmt.Errorf("polderd answers: %s", strings.TrimSpace(string(text)))
	}
	out := &markingWriter{w: w}
	m, err := archive.Read(io.TeeReader(res.Body, out), archive.Visitor{})
	switch {
	case out.err != nil:
		return m, out.err
	case ctx.Err() != nil:
		return m, ctx.Err()
	case err == nil:
		return m, nil
	}
	_, _ = io.Copy(io.Discard, res.Body) // the reason is behind the end
	if reason := res.Trailer.Get(errorTrailer); reason != "" {
		return m, fmt.Errorf("polderd could not complete it: %s", reason)
	}
	return m, fmt.Errorf("polderd ended in the middle of it: %w", err)
}

// markingWriter remembers its own error, which a TeeReader would make one of the archive.
type markingWriter struct {
	w   io.Writer
	err error
}

func (m *markingWriter) Write(p []byte) (int, error) {
	n, err := m.w.Write(p)
	if err != nil {
		m.err = err
	}
	return n, err
}
