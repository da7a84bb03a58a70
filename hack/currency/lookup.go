package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"time"
)

// Two answers say that a version is not to be had. Any other error says that nothing was learned.
var (
	errUnknown = errors.New("there is no such version")
	errRefused = errors.New("the proxy refuses this version")
)

// moduleRelease is one version of a module that exists.
type moduleRelease struct {
	Time     time.Time
	Verified bool   // its go.mod was given too, and agrees with the checksum database
	Via      string // another module that the release is known from; empty if it was found itself
}

// lookupFunc looks up one version of a module. It must be safe for concurrent use.
type lookupFunc func(ctx context.Context, path, version string) (moduleRelease, error)

// goCommand looks up versions with the go command, so that all its settings are respected.
type goCommand struct {
	Dir     string // outside of any module
	Timeout time.Duration
}

// goListModule is what go list -m -json prints.
type goListModule struct {
	Version string
	Time    time.Time
	GoMod   string
	Error   *struct{ Err string }
}

func (g goCommand) lookup(ctx context.Context, path, version string) (moduleRelease, error) {
	ctx, cancel := context.WithTimeout(ctx, g.Timeout)
	defer cancel()
	// With -e a version that is not to be had is an answer, and no failure of the command.
	cmd := exec.CommandContext(ctx, "go", "list", "-m", "-e", "-json", path+"@"+version)
	cmd.Dir = g.Dir
	// A workspace must not change the answers.
	cmd.Env = append(cmd.Environ(), "GOWORK=off")
	cmd.WaitDelay = time.Second
	out, err := cmd.Output()
	if ctx.Err() != nil {
		return moduleRelease{}, fmt.Errorf("asking for %s@%s: no answer in time: %w", path, version, ctx.Err())
	}
	if err != nil {
		return moduleRelease{}, fmt.Errorf("asking for %s@%s: %w: %s", path, version, err, stderrOf(err))
	}
	r, err := parseGoList(out, version)
	if err != nil {
		return moduleRelease{}, fmt.Errorf("asking for %s@%s: %w", path, version, err)
	}
	return r, nil
}

func stderrOf(err error) string {
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		return strings.TrimSpace(string(exit.Stderr))
	}
	return "it did not run"
}

func parseGoList(out []byte, version string) (moduleRelease, error) {
	var a goListModule
	if err := json.Unmarshal(out, &a); err != nil {
		return moduleRelease{}, fmt.Errorf("reading the answer of go list: %w", err)
	}
	if a.Error != nil {
		_, reason, _ := strings.Cut(a.Error.Err, "@"+version+": ") // the caller names the module
		return moduleRelease{}, classifyError(cmp.Or(reason, a.Error.Err))
	}
	if a.Version != version || a.Time.IsZero() {
		return moduleRelease{}, fmt.Errorf("go list answers with version %q of time %s", a.Version, a.Time)
	}
	return moduleRelease{Time: a.Time, Verified: a.GoMod != ""}, nil
}

// classifyError tells by the message of the go command whether a version is not to be had. A proxy that
// itself could not reach a repository in time says so with the status of an unknown version.
func classifyError(text string) error {
	text = strings.Join(strings.Fields(text), " ") // it has several lines
	has := func(words ...string) bool {
		for _, w := range words {
			if strings.Contains(text, w) {
				return true
			}
		}
		return false
	}
	switch {
	case has("timed out", "i/o timeout"):
		return errors.New(text)
	case has(": 403 Forbidden"):
		return errRefused
	case has(": 404 Not Found", ": 410 Gone", "unknown revision", "+incompatible suffix not allowed"):
		return errUnknown
	}
	return errors.New(text)
}

// limitParallel bounds how many lookups are under way.
func limitParallel(lookup lookupFunc, n int) lookupFunc {
	slots := make(chan struct{}, n)
	return func(ctx context.Context, path, version string) (moduleRelease, error) {
		select {
		case slots <- struct{}{}:
		case <-ctx.Done():
			return moduleRelease{}, fmt.Errorf("asking for %s@%s: no turn in time: %w", path, version, ctx.Err())
		}
		defer func() { <-slots }()
		return lookup(ctx, path, version)
	}
}
