// Package operator tests the stack operator from outside, as its users meet it, and the parts of it that
// need a real API server.
package operator

import (
	"fmt"
	"net/http/httptest"
	"os"
	"testing"

	"github.com/polder-kaas/polder/test/stackenv"
	"github.com/polder-kaas/polder/test/testenv"
)

// shared serves all tests that do not stop, kill or break their plane.
var shared = testenv.NewShared()

// published is where stacks are published for it.
var published *stackenv.Registry

// Servers of registries that behave as a test wants: by http, and by https.
var (
	behind = &doors{}
	door   *httptest.Server
	safe   *httptest.Server
)

// directory has releases; the plane knows it as "releases".
var directory string

func TestMain(m *testing.M) {
	var err error
	if directory, err = os.MkdirTemp("", "polder-releases-"); err == nil {
		err = os.Chmod(directory, 0o755)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	published, door, safe = stackenv.NewRegistry(), httptest.NewServer(behind), httptest.NewTLSServer(behind)
	shared.Flags = trusting(published.Host(), hostOf(door), hostOf(safe))
	shared.Flags = append(shared.Flags, "--stack-directory", "releases="+directory)
	code := shared.Run(m)
	published.Close()
	door.Close()
	safe.Close()
	if err := os.RemoveAll(directory); err != nil {
		fmt.Fprintln(os.Stderr, "cleaning up:", err)
		code = 1
	}
	os.Exit(code)
}

func trusting(hosts ...string) (flags []string) {
	for _, h := range hosts {
		flags = append(flags, "--stack-trust", h)
	}
	return flags
}

func hostOf(s *httptest.Server) string { return s.Listener.Addr().String() }
