// Package authentication keeps the API server's AuthenticationConfiguration: whose tokens are believed. An operator
// writes a file of Kubernetes' own format; what is ours is added to it, and what is wrong with it is said where people
// look. While it is wrong, the last one that was right stays in force.
package authentication

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"sync"
	"time"

	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/utils/clock"

	"github.com/polder-kaas/polder/internal/files/atomicfile"
	"github.com/polder-kaas/polder/internal/plane/status"
	"github.com/polder-kaas/polder/internal/program/exit"
)

// Config says what to keep. All fields but File are needed.
type Config struct {
	File      string // the operator's; empty: there is none
	Target    string // the file that the API server reads
	OwnIssuer string // of the plane's own tokens
	Clock     clock.WithTicker
	Log       *slog.Logger
	Report    func(status.Login) // called with each change
}

// Intervals and times of the component.
const (
	// readInterval is how often the file is read: a file may be replaced in ways that no watch sees.
	readInterval = time.Second
	// loadTimeout is how long the API server may take until it uses a new configuration. It waits a minute for issuers.
	loadTimeout = 75 * time.Second
	// probeInterval is how often an issuer that has not answered is asked, and restProbeInterval how often one that has.
	probeInterval     = 10 * time.Second
	restProbeInterval = 5 * time.Minute
)

// Authentication keeps the configuration, as a component of the plane.
type Authentication struct {
	cfg   Config
	ready chan struct{}
	probe func(ctx context.Context, i Issuer) error
	// isLoaded says that the API server uses a configuration.
	isLoaded func(content []byte) bool

	mu       sync.Mutex
	reported *status.Login

	// Used by New, and then by Run alone.
	read      []byte // the file as it was last read
	fileError error  // what is wrong with the file
	merged    Merged // in force, or on its way to be
	written   time.Time
	loaded    bool
	probed    time.Time
	silent    error // of an issuer that does not answer
}

// New writes the configuration for the API server, before it starts. A file that cannot be used is refused, unless
// there is one from before: then that is taken, so that a mistake in the file and a restart do not lock everybody out.
func New(cfg Config) (*Authentication, error) {
	a := &Authentication{cfg: cfg, ready: make(chan struct{}), probe: probeIssuer, isLoaded: isLoaded}
	b, err := a.readFile()
	a.read = b
	if err == nil {
		a.merged, err = merge(b, cfg.OwnIssuer)
	}
	if err != nil {
		before, ok := a.mergedBefore()
		if !ok {
			return nil, exit.Errorf(exit.Usage, "--authentication-config %s: %w", cfg.File, err)
		}
		a.fileError, a.merged = err, before
	}
	a.loaded, a.written = true, cfg.Clock.Now() // the API server reads it when it starts
	return a, atomicfile.Write(cfg.Target, a.merged.Content, 0o600)
}

// mergedBefore is the configuration of the last run, if people could log in with it.
func (a *Authentication) mergedBefore() (Merged, bool) {
	b, err := os.ReadFile(a.cfg.Target)
	if err != nil {
		return Merged{}, false
	}
	c, err := parse(b)
	if err != nil {
		return Merged{}, false
	}
	c.Anonymous = nil // which merge adds
	m, err := encode(c)
	if err == nil {
		m, err = merge(m.Content, a.cfg.OwnIssuer)
	}
	return m, err == nil && len(m.Issuers) > 0
}

// Name is the component's name.
func (a *Authentication) Name() string { return "authentication" }

// Ready closes when the file is watched.
func (a *Authentication) Ready() <-chan struct{} { return a.ready }

// Run follows the file until ctx ends.
func (a *Authentication) Run(ctx context.Context) error {
	a.report()
	close(a.ready)
	if a.cfg.File == "" {
		<-ctx.Done()
		return nil
	}
	tick := a.cfg.Clock.NewTicker(readInterval)
	defer tick.Stop()
	for {
		a.refresh()
		a.checkIssuers(ctx)
		a.report()
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C():
		}
	}
}

// refresh takes over what is new in the file, and looks whether the API server has.
func (a *Authentication) refresh() {
	b, err := a.readFile()
	switch {
	case err != nil:
		a.fileError = err
		a.read = nil // it is new when it is there again
	case a.read == nil || !bytes.Equal(b, a.read):
		a.read = b
		a.fileError = a.replace(b)
	}
	if !a.loaded && a.isLoaded(a.merged.Content) {
		a.loaded = true
		a.cfg.Log.Info("a new authentication configuration is in force", "file", a.cfg.File)
	}
}

func (a *Authentication) replace(file []byte) error {
	m, err := merge(file, a.cfg.OwnIssuer)
	if err != nil || bytes.Equal(m.Content, a.merged.Content) {
		return err
	}
	if err := atomicfile.Write(a.cfg.Target, m.Content, 0o600); err != nil {
		a.read = nil // so that it is tried again
		return err
	}
	a.merged, a.loaded, a.written = m, false, a.cfg.Clock.Now()
	a.probed, a.silent = time.Time{}, nil
	return nil
}

// readFile reads the operator's file; nil if there is to be none.
func (a *Authentication) readFile() ([]byte, error) {
	if a.cfg.File == "" {
		return nil, nil
	}
	f, err := os.Open(a.cfg.File)
	if err != nil {
		return nil, errors.Unwrap(err) // its text has the path, as ours has
	}
	defer f.Close() //nolint:errcheck // nothing was written
	b, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if b == nil {
		b = []byte{}
	}
	return b, err
}

// checkIssuers asks each issuer who it is, now and then. Kubernetes says nowhere but in its log that one does not
// answer, and that its tokens are refused for that.
func (a *Authentication) checkIssuers(ctx context.Context) {
	interval := restProbeInterval
	if a.silent != nil || !a.loaded {
		interval = probeInterval
	}
	if now := a.cfg.Clock.Now(); !a.probed.IsZero() && now.Sub(a.probed) < interval {
		return
	}
	a.probed = a.cfg.Clock.Now()
	errs := make([]error, len(a.merged.Issuers))
	var wg sync.WaitGroup // all at once: a new file waits no longer for many that are silent than for one
	for n, i := range a.merged.Issuers {
		wg.Go(func() { errs[n] = a.probe(ctx, i) })
	}
	wg.Wait()
	var silent error
	for n, err := range errs {
		url := a.merged.Issuers[n].URL
		switch {
		case err == nil:
		case silent == nil:
			silent = fmt.Errorf("issuer %s: %w", url, err)
		default:
			silent = fmt.Errorf("%w; issuer %s: %w", silent, url, err)
		}
	}
	if ctx.Err() == nil {
		a.silent = silent
	}
}

// problem says what is wrong, and what holds meanwhile.
func (a *Authentication) problem() string {
	switch {
	case a.fileError != nil:
		return fmt.Sprintf("%s cannot be used, and the one before stays in force: %v", a.cfg.File, a.fileError)
	case !a.loaded && a.cfg.Clock.Since(a.written) > loadTimeout && a.silent != nil:
		return fmt.Sprintf("%s is not in force, but the one before: %v", a.cfg.File, a.silent)
	case !a.loaded && a.cfg.Clock.Since(a.written) > loadTimeout:
		return fmt.Sprintf("%s is not in force, but the one before; why, says the log", a.cfg.File)
	case a.silent != nil:
		return fmt.Sprintf("tokens may be refused: %v", a.silent)
	}
	return ""
}

// report tells a change.
func (a *Authentication) report() {
	s := status.Login{File: a.cfg.File, Problem: a.problem(), Pending: !a.loaded}
	for _, i := range a.merged.Issuers {
		s.Issuers = append(s.Issuers, i.URL)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if r := a.reported; r != nil && r.Problem == s.Problem && r.Pending == s.Pending &&
		slices.Equal(r.Issuers, s.Issuers) {
		return
	}
	if s.Problem != "" && (a.reported == nil || a.reported.Problem != s.Problem) {
		a.cfg.Log.Warn("login: " + s.Problem)
	}
	a.reported = &s
	a.cfg.Report(s)
}

// Problem says what is wrong with login; empty if nothing is.
func (a *Authentication) Problem() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.reported == nil {
		return ""
	}
	return a.reported.Problem
}

// loadedMetric is where the API server says which configuration it uses.
const loadedMetric = "apiserver_authentication_config_controller_last_config_info"

// isLoaded looks for the digest of a configuration among the metrics of the API server in this process.
func isLoaded(content []byte) bool {
	families, err := legacyregistry.DefaultGatherer.Gather()
	if err != nil && len(families) == 0 {
		return false
	}
	want := fmt.Sprintf("sha256:%x", sha256.Sum256(content))
	for _, f := range families {
		if f.GetName() != loadedMetric {
			continue
		}
		for _, m := range f.GetMetric() {
			for _, l := range m.GetLabel() {
				if l.GetName() == "hash" && l.GetValue() == want {
					return true
				}
			}
		}
	}
	return false
}
