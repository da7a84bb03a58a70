package logging

import (
	"bytes"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"strings"
	"testing"

	"go.uber.org/zap"
)

func TestNewRefusesWhatItDoesNotKnow(t *testing.T) {
	for name, o := range map[string]Options{
		"level":  {Level: "loud", Format: FormatText, Out: os.Stderr},
		"format": {Level: "info", Format: "xml", Out: os.Stderr},
	} {
		if _, err := New(o); err == nil || !strings.Contains(err.Error(), "choose") {
			t.Errorf("unknown %s: %v", name, err)
		}
	}
}

func TestAutoIsJSONInAFile(t *testing.T) {
	f, err := os.CreateTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	log, err := New(Options{Level: "info", Format: FormatAuto, Out: f})
	if err != nil {
		t.Fatal(err)
	}
	log.Info("hello", "k", "v")
	b, err := os.ReadFile(f.Name())
	if err != nil || !json.Valid(b) {
		t.Errorf("%s, %v", b, err)
	}
}

func TestTextIsReadable(t *testing.T) {
	var b bytes.Buffer
	log := slog.New(newHandler(&b, slog.LevelInfo, true)).With("a", 1).WithGroup("g")
	log.Info("two words", "b", "x y", "level", "kept")
	log.Debug("not shown")
	_, line, _ := strings.Cut(b.String(), " ") // the time of day
	if want := "INFO  two words a=1 g.b=\"x y\" g.level=kept\n"; line != want {
		t.Errorf("got %q, want %q", line, want)
	}
}

func TestLibrariesAreQuiet(t *testing.T) {
	tests := map[string]struct {
		root  slog.Level
		level slog.Level
		msg   string
		want  bool
	}{
		"info is not shown":          {slog.LevelInfo, slog.LevelInfo, "m", false},
		"a warning is":               {slog.LevelInfo, slog.LevelWarn, "m", true},
		"an error is":                {slog.LevelInfo, slog.LevelError, "m", true},
		"known noise is not":         {slog.LevelInfo, slog.LevelError, noise[0], false},
		"info is shown at debug":     {slog.LevelDebug, slog.LevelInfo, "m", true},
		"known noise is too":         {slog.LevelDebug, slog.LevelError, noise[0], true},
		"details need trace":         {slog.LevelDebug, slog.Level(-6), "m", false},
		"trace shows them":           {Trace, slog.Level(-6), "m", true},
		"but no bodies of requests":  {Trace, slog.Level(-8), "m", false},
		"a warning is not at error":  {slog.LevelError, slog.LevelWarn, "m", false},
		"an error is shown at error": {slog.LevelError, slog.LevelError, "m", true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var b bytes.Buffer
			root := slog.New(newHandler(&b, tt.root, false))
			slog.New(NewLibraryHandler(root, "lib")).Log(t.Context(), tt.level, tt.msg)
			if got := b.Len() > 0; got != tt.want {
				t.Errorf("shown: %v, want %v", got, tt.want)
			}
		})
	}
}

func TestErrorsThatAreConsequencesAreQuiet(t *testing.T) {
	var b bytes.Buffer
	lib := slog.New(NewLibraryHandler(slog.New(newHandler(&b, slog.LevelInfo, false)), "lib"))
	lib.Error("Reconciler error", "err", "getting client: connection to the workload cluster is down")
	lib.Error("Unhandled Error", "err", `error syncing item &garbagecollector.node{identity:{Name:"a"}}: templates.example.com "a" not found`)
	if b.Len() > 0 {
		t.Errorf("shown: %s", b.String())
	}
	lib.Error("Unhandled Error", "err", `error syncing item &garbagecollector.node{identity:{Name:"a"}}: templates.example.com "a" is forbidden`)
	if b.Len() == 0 {
		t.Error("an error of the garbage collector is hidden")
	}
	b.Reset()
	lib.Error("Reconciler error", "err", "something new")
	if b.Len() == 0 {
		t.Error("another error of a reconciler is hidden")
	}
}

func TestSilenceLibraries(t *testing.T) {
	var b bytes.Buffer
	root := slog.New(newHandler(&b, slog.LevelInfo, true))
	lib := slog.New(NewLibraryHandler(root, "lib")).With("a", 1)
	SilenceLibraries(root)
	lib.Error("connection refused")
	root.Error("of our own")
	if strings.Contains(b.String(), "refused") || !strings.Contains(b.String(), "of our own") {
		t.Errorf("log: %s", b.String())
	}
}

func TestKlogTextKeepsSeverityAndReason(t *testing.T) {
	var b bytes.Buffer
	k := &klogText{log: slog.New(newHandler(&b, slog.LevelInfo, true))}
	k.write([]byte("W1115 13:01:24.000000   12345 file.go:12] careful: [a] b\n"))
	k.write([]byte("F1115 13:01:24.000000   12345 hooks.go:1] PostStartHook \"x\" failed: y\n"))
	if !strings.Contains(b.String(), "WARN  careful: [a] b\n") || !strings.Contains(b.String(), "ERROR PostStartHook") {
		t.Errorf("got %s", b.String())
	}
	if k.fatal != `PostStartHook "x" failed: y` {
		t.Errorf("the reason is %q", k.fatal)
	}
}

// etcd writes the content of each change into its debug log, and bootstrap tokens are in objects that are no Secrets.
func TestEtcdShowsNoContent(t *testing.T) {
	var b bytes.Buffer
	log := NewEtcdLogger(slog.New(newHandler(&b, Trace, true)), func(string) {})
	log.Debug("Apply", zap.String("raftReq", "canary"))
	log.Info("started")
	if s := b.String(); strings.Contains(s, "canary") || !strings.Contains(s, "started") {
		t.Errorf("log: %s", s)
	}
}

func TestEtcdFatal(t *testing.T) {
	var b bytes.Buffer
	root := slog.New(newHandler(&b, slog.LevelInfo, true))
	var reason string
	log := NewEtcdLogger(root, func(m string) {
		reason = m
		panic("does not return")
	})
	func() {
		defer func() { _ = recover() }()
		log.With(zap.String("member", "m")).Fatal("saving failed", zap.Error(errors.New("disk is gone")))
	}()
	if reason != "saving failed: disk is gone" {
		t.Errorf("reason is %q", reason)
	}
	log.Info("chatter")
	log.Warn("slow", zap.Int("ms", 7))
	if strings.Contains(b.String(), "chatter") || !strings.Contains(b.String(), "WARN  slow from=etcd ms=7") || !strings.Contains(b.String(), "member=m") {
		t.Errorf("log: %s", b.String())
	}
	if !log.Core().Enabled(zap.WarnLevel) || log.Core().Enabled(zap.InfoLevel) {
		t.Error("levels are not mapped")
	}
}
