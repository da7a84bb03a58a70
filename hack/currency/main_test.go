package main

import (
	"bytes"
	"context"
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestRunWithoutRepository(t *testing.T) {
	t.Chdir(t.TempDir())
	var out, errOut bytes.Buffer
	if code := run(t.Context(), &out, &errOut); code != exitError || out.Len() > 0 ||
		!strings.Contains(errOut.String(), "run this from the root of the repository") {
		t.Errorf("exit %d with %q and %q; want %d and a sentence", code, out.String(), errOut.String(), exitError)
	}
}

func TestRunInterrupted(t *testing.T) {
	t.Chdir("../..")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if code := run(ctx, &bytes.Buffer{}, &bytes.Buffer{}); code != exitError {
		t.Errorf("exit %d, want %d", code, exitError)
	}
}

func TestListModFiles(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	for _, command := range []string{
		"git init -q", "mkdir -p a/b untracked vendored",
		"touch a/b/go.mod go.mod untracked/go.mod vendored/go.mod.txt vendored/xgo.mod", "git add a go.mod vendored",
	} {
		if out, err := exec.CommandContext(t.Context(), "sh", "-c", command).CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", command, err, out)
		}
	}
	got, err := listModFiles(t.Context())
	if diff := cmp.Diff([]string{"go.mod", "a/b/go.mod"}, got); diff != "" || err != nil {
		t.Error(err, diff)
	}
}
