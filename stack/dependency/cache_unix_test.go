//go:build unix

package dependency_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/polder-kaas/polder/stack/dependency"
)

// A pipe in the cache, from which nothing ever comes, is not waited for.
func TestPipeInTheCache(t *testing.T) {
	r := withVersions(t, "1.0.0")
	s := source(t, nil, requirementYAML(r.url(), "^1"))
	f := fetcher(t, r.host())
	s = with(t, s, lock(t, f, s, dependency.Lock{}))
	file := filepath.Join(string(f.Cache), strings.Replace(sum(packed(t, "x", "1.0.0")), ":", "-", 1)+".tgz")
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(file, 0o644); err != nil {
		t.Fatal(err)
	}
	_, err := (&dependency.Fetcher{Cache: f.Cache}).Vendor(t.Context(), s)
	fails(t, err, "it is not at hand; run polder stack lock, which fetches it")
}
