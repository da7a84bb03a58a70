// Package fakehost has hosts of local clusters for tests of the polder command: they hold a host's lock and
// answer on its socket like a host, but run nothing.
package fakehost

import (
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"os"
	"sync"
	"testing"

	"github.com/polder-kaas/polder/internal/files/filelock"
	"github.com/polder-kaas/polder/internal/providers/local/hostapi"
	"github.com/polder-kaas/polder/internal/providers/local/launch"
)

// Host is the host of one cluster until it is told to stop, or the test ends.
type Host struct {
	Dir hostapi.Dir

	mu          sync.Mutex
	status      hostapi.Status
	ignoresStop bool
	lock        *os.File
	server      http.Server
}

// Prepare creates the files of a cluster without a host.
func Prepare(t testing.TB, dataDir string, c hostapi.Cluster) hostapi.Dir {
	t.Helper()
	l := launch.Launcher{HostsDir: hostapi.HostsDir(dataDir)}
	if err := l.PrepareDir(c); err != nil {
		t.Fatal(err)
	}
	return l.Dir(c.UID)
}

// StartUnresponsive creates the files of a cluster and holds its lock, like a host that does not answer.
func StartUnresponsive(t testing.TB, dataDir string, c hostapi.Cluster) *Host {
	t.Helper()
	h := &Host{Dir: Prepare(t, dataDir, c), status: hostapi.Status{Cluster: c}}
	var err error
	if h.lock, err = filelock.Acquire(h.Dir.LockFile()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.shutdown)
	return h
}

// Start runs a host that reports the given status.
func Start(t testing.TB, dataDir string, s hostapi.Status) *Host {
	t.Helper()
	h := StartUnresponsive(t, dataDir, s.Cluster)
	h.status, h.server.Handler = s, h.handler()
	l, err := net.Listen("unix", h.Dir.Socket())
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan struct{})
	go func() {
		defer close(served)
		if err := h.server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			t.Errorf("serving %s: %v", h.Dir.Socket(), err)
		}
	}()
	t.Cleanup(func() { h.shutdown(); <-served })
	return h
}

// IgnoreStop makes the host run on when it is told to stop.
func (h *Host) IgnoreStop() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ignoresStop = true
}

func (h *Host) shutdown() {
	_ = h.server.Close() // a second call does nothing
	_ = h.lock.Close()
}

func (h *Host) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /status", func(w http.ResponseWriter, _ *http.Request) {
		h.mu.Lock()
		defer h.mu.Unlock()
		_ = json.NewEncoder(w).Encode(h.status) // an error means that the client is gone
	})
	mux.HandleFunc("POST /machines/{name}/power", func(w http.ResponseWriter, r *http.Request) {
		h.mu.Lock()
		defer h.mu.Unlock()
		for i := range h.status.Machines {
			if m := &h.status.Machines[i]; m.Name == r.PathValue("name") {
				m.Off = r.URL.Query().Get("on") != "true"
				return
			}
		}
		http.Error(w, "there is no machine "+r.PathValue("name"), http.StatusConflict)
	})
	mux.HandleFunc("POST /machines/{name}/fail", func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("how") == string(hostapi.FailKill) {
			http.Error(w, "nothing runs on machine "+r.PathValue("name"), http.StatusConflict)
		}
	})
	mux.HandleFunc("POST /stop", func(http.ResponseWriter, *http.Request) {
		h.mu.Lock()
		defer h.mu.Unlock()
		if !h.ignoresStop {
			go h.shutdown() // in the background: the client waits for this answer
		}
	})
	return mux
}
