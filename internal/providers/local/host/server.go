package host

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"strconv"
	"time"

	"github.com/polder-kaas/polder/internal/providers/local/hostapi"
)

// maxRequest bounds what is read from a client; bootstrap data are at most a megabyte.
const maxRequest = 8 << 20

// shutdownTimeout is how long requests under way may take when the host ends.
const shutdownTimeout = 5 * time.Second

// listenUnix opens a socket that only this user can open; a left-over one is replaced, since the
// lock says that nobody else serves here.
func listenUnix(ctx context.Context, path string) (net.Listener, error) {
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "unix", path)
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(path, 0o600); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

// serveHTTP answers until ctx ends; then those who watch get what there is and ask the next host.
// A request that has only just arrived by then is not answered: net/http closes its connection.
func serveHTTP(ctx context.Context, l net.Listener, handler http.Handler) error {
	s := &http.Server{
		Handler: handler, ReadHeaderTimeout: 10 * time.Second, BaseContext: func(net.Listener) context.Context { return ctx },
	}
	done := make(chan struct{})
	context.AfterFunc(ctx, func() {
		defer close(done)
		limit, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTimeout)
		defer cancel()
		if s.Shutdown(limit) != nil {
			_ = s.Close() // they had time enough
		}
	})
	if err := s.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serving %s: %w", l.Addr(), err)
	}
	<-done
	return nil
}

func (h *Host) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /status", h.getStatus)
	mux.HandleFunc("PUT /machines/{name}", h.putMachine)
	mux.HandleFunc("DELETE /machines/{name}",
		errorHandler(func(r *http.Request) error { return h.removeMachine(r.Context(), r.PathValue("name")) }))
	mux.HandleFunc("POST /machines/{name}/drain",
		errorHandler(func(r *http.Request) error { h.drainMachine(r.PathValue("name")); return nil }))
	mux.HandleFunc("POST /machines/{name}/power", errorHandler(func(r *http.Request) error {
		return h.setPower(r.Context(), r.PathValue("name"), r.URL.Query().Get("on") == "true")
	}))
	mux.HandleFunc("POST /machines/{name}/fail", errorHandler(func(r *http.Request) error {
		return h.failMachine(r.Context(), r.PathValue("name"), hostapi.Failure(r.URL.Query().Get("how")))
	}))
	mux.HandleFunc("POST "+hostapi.OutsidePath, h.keepOffer)
	mux.HandleFunc("POST /stop", errorHandler(func(r *http.Request) error {
		h.mu.Lock()
		h.stopAtOnce = r.URL.Query().Get("now") == "true"
		h.mu.Unlock()
		h.quit()
		return nil
	}))
	return mux
}

// errorHandler makes a handler of f; an error is answered with its text, a sentence for people.
func errorHandler(f func(*http.Request) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if err := f(r); err != nil {
			http.Error(w, err.Error(), http.StatusConflict)
		}
	}
}

func (h *Host) putMachine(w http.ResponseWriter, r *http.Request) {
	var m hostapi.MachineSpec
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxRequest)).Decode(&m); err != nil {
		http.Error(w, "reading the machine: "+err.Error(), http.StatusBadRequest)
		return
	}
	errorHandler(func(r *http.Request) error {
		if name := r.PathValue("name"); name != m.Name {
			return fmt.Errorf("the machine's name is %q, not %q", m.Name, name)
		}
		return h.ensureMachine(m)
	})(w, r)
}

func (h *Host) getStatus(w http.ResponseWriter, r *http.Request) {
	if since, err := strconv.ParseInt(r.URL.Query().Get("since"), 10, 64); err == nil {
		h.waitForChange(r.Context(), since)
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(h.status()) // an error means that the client is gone
}

// waitForChange returns when something happened since the revision, or after a while.
func (h *Host) waitForChange(ctx context.Context, since int64) {
	h.mu.Lock()
	revision, changed := h.revision, h.revisionChanged
	h.mu.Unlock()
	if revision != since {
		return
	}
	t := time.NewTimer(hostapi.WatchTimeout)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-changed:
	case <-t.C:
	}
}
