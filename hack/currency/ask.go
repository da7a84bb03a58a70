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

// release is one version of a module that exists.
type release struct {
	Time     time.Time
	Verified bool   // its go.mod was given too, and agrees with the checksum database
	Via      string // another module that the release is known from; empty if it was found itself
}

// asker asks for one version of a module. It must be safe for concurrent use.
type asker func(ctx context.Context, path, version string) (release, error)

// goCommand asks with the go command, so that all its settings are respected.
type goCommand struct {
	Dir     string // outside of any module
	Timeout time.Duration
}

// answer is what go list prints.
type answer struct {
	Version string
	Time    time.Time
	GoMod   string
	Error   *struct{ Err string }
}

func (g goCommand) ask(ctx context.Context, path, version string) (release, error) {
	ctx, cancel := context.WithTimeout(ctx, g.Timeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, "go", "list", "-m", "-e", "-json", path+"@"+version)
	cmd.Dir = g.Dir
	cmd.Env = append(cmd.Environ(), "GOWORK=off")
	cmd.WaitDelay = time.Second
	out, err := cmd.Output()
	if ctx.Err() != nil {
		return release{}, fmt.Errorf("asking for %s@%s: no answer in time: %w", path, version, ctx.Err())
	}
	if err != nil {
		return release{}, fmt.Errorf("asking for %s@%s: %w: %s", path, version, err, stderrOf(err))
	}
	r, err := parseAnswer(out, version)
	if err != nil {
		return release{}, fmt.Errorf("asking for %s@%s: %w", path, version, err)
	}
	return r, nil
}

func stderrOf(err error) string {
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		return strings.TrimSpace(string(exit.Stderr))
	}
	return "it did not run"
}

func parseAnswer(out []byte, version string) (release, error) {
	var a answer
	if err := json.Unmarshal(out, &a); err != nil {
		return release{}, fmt.Errorf("reading the answer of go list: %w", err)
	}
	if a.Error != nil {
		_, reason, _ := strings.Cut(a.Error.Err, "@"+version+": ") // the caller names the module
		return release{}, classify(cmp.Or(reason, a.Error.Err))
	}
	if a.Version != version || a.Time.IsZero() {
		return release{}, fmt.Errorf("go list answers with version %q of time %s", a.Version, a.Time)
	}
	return release{Time: a.Time, Verified: a.GoMod != ""}, nil
}

// classify tells by the go command's words whether a version is not to be had. A proxy that itself
// could not reach a repository in time says so with the status of an unknown version.
func classify(text string) error {
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

// limitParallel bounds how many questions are under way.
func limitParallel(ask asker, n int) asker {
	slots := make(chan struct{}, n)
	return func(ctx context.Context, path, version string) (release, error) {
		select {
		case slots <- struct{}{}:
		case <-ctx.Done():
			return release{}, fmt.Errorf("asking for %s@%s: no turn in time: %w", path, version, ctx.Err())
		}
		defer func() { <-slots }()
		return ask(ctx, path, version)
	}
}
