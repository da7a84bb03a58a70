package authentication

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"github.com/polder-kaas/polder/internal/plane/status"
	"github.com/polder-kaas/polder/internal/program/exit"
)

// fixture is a component whose API server and issuers do what a test says.
type fixture struct {
	*Authentication
	clock   *clocktesting.FakeClock
	reports []status.Login
	inForce string // what the API server uses
	answers error  // of issuers
	taking  bool   // the API server takes what is new
	asked   atomic.Int32
	cfg     Config
	t       *testing.T
}

func newFixture(t *testing.T, text string) *fixture {
	t.Helper()
	dir := t.TempDir()
	f := &fixture{clock: clocktesting.NewFakeClock(time.Unix(1_000_000, 0)), taking: true, t: t}
	f.cfg = Config{
		File: filepath.Join(dir, "login.yaml"), Target: filepath.Join(dir, "authentication.yaml"), OwnIssuer: ownIssuer,
		Clock: f.clock, Log: slog.New(slog.DiscardHandler), Report: func(l status.Login) { f.reports = append(f.reports, l) },
	}
	f.write(text)
	f.restart()
	return f
}

func (f *fixture) restart() {
	f.t.Helper()
	a, err := New(f.cfg)
	if err != nil {
		f.t.Fatal(err)
	}
	f.Authentication = a
	f.inForce = f.target()
	a.isLoaded = func(b []byte) bool {
		if f.taking {
			f.inForce = f.target()
		}
		return string(b) == f.inForce
	}
	a.probe = func(context.Context, Issuer) error { f.asked.Add(1); return f.answers }
}

func (f *fixture) write(text string) {
	f.t.Helper()
	if err := os.WriteFile(f.cfg.File, []byte(text), 0o600); err != nil {
		f.t.Fatal(err)
	}
}

func (f *fixture) target() string {
	f.t.Helper()
	b, err := os.ReadFile(f.cfg.Target)
	if err != nil {
		f.t.Fatal(err)
	}
	return string(b)
}

// round is one of Run's, some time after the one before.
func (f *fixture) round(after time.Duration) status.Login {
	f.t.Helper()
	f.clock.Step(after)
	f.refresh()
	f.checkIssuers(f.t.Context())
	f.report()
	return f.reports[len(f.reports)-1]
}

func TestFollow(t *testing.T) {
	f := newFixture(t, oneIssuer)
	if s := f.round(0); s.Problem != "" || s.Pending || len(s.Issuers) != 1 {
		t.Fatalf("at first %+v", s)
	}
	first := f.target()
	f.write("no YAML: [")
	if s := f.round(time.Second); !strings.Contains(s.Problem, "login.yaml cannot be used, and the one before stays in force") || f.target() != first {
		t.Errorf("with a mistake %+v", s)
	}
	if f.Problem() == "" {
		t.Error("nothing is wrong with it")
	}
	if err := os.Remove(f.cfg.File); err != nil {
		t.Fatal(err)
	}
	if s := f.round(time.Second); !strings.Contains(s.Problem, "no such file or directory") || f.target() != first {
		t.Errorf("without file %+v", s)
	}
	f.write(oneIssuer)
	if s := f.round(time.Second); s.Problem != "" || s.Pending || f.target() != first {
		t.Errorf("as it was at first %+v", s)
	}
	n := len(f.reports)
	for range 5 {
		f.round(time.Second)
	}
	if len(f.reports) != n {
		t.Errorf("reported again and again: %+v", f.reports[n:])
	}
}

// Kubernetes takes no configuration with an issuer that does not answer, and says so in its log alone.
func TestIssuerDoesNotAnswer(t *testing.T) {
	f := newFixture(t, oneIssuer)
	f.round(0)
	f.taking, f.answers = false, errors.New("it does not answer: refused")
	f.write(oneIssuer + strings.Replace(secondIssuer, "PREFIX", `"b:"`, 1))
	if s := f.round(time.Second); !s.Pending || !strings.Contains(s.Problem, "tokens may be refused: issuer https://login.example.org: it does not answer") {
		t.Errorf("at once %+v", s)
	}
	if s := f.round(loadTimeout + time.Second); !strings.Contains(s.Problem, "login.yaml is not in force, but the one before: issuer https://login.example.org") {
		t.Errorf("after a while %+v", s)
	}
	f.taking, f.answers = true, nil
	if s := f.round(probeInterval); s.Problem != "" || s.Pending || len(s.Issuers) != 2 {
		t.Errorf("once it answers %+v", s)
	}
	asked := f.asked.Load()
	for range 60 {
		f.round(time.Second)
	}
	if n := f.asked.Load() - asked; n != 0 {
		t.Errorf("issuers that answer were asked %d times in a minute", n)
	}
}

func TestRestart(t *testing.T) {
	f := newFixture(t, oneIssuer)
	before := f.target()
	f.write("kind: Nothing\n")
	f.restart()
	if s := f.round(0); f.target() != before || !strings.Contains(s.Problem, "stays in force") {
		t.Errorf("with a mistake in the file %+v", s)
	}
	if err := os.Remove(f.cfg.Target); err != nil {
		t.Fatal(err)
	}
	if _, err := New(f.cfg); exit.Code(err) != exit.Usage || !strings.Contains(err.Error(), "--authentication-config "+f.cfg.File+": ") {
		t.Errorf("with a mistake and nothing from before: %v", err)
	}
	f.cfg.File = ""
	f.restart()
	if s := f.target(); strings.Contains(s, "login.example.org") || !strings.Contains(s, "/livez") {
		t.Errorf("without a file:\n%s", s)
	}
	f.cfg.File = filepath.Join(t.TempDir(), "gone.yaml")
	if _, err := New(f.cfg); err == nil {
		t.Error("a file that is not there is no mistake, though nobody could log in before")
	}
}
