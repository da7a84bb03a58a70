// Seeded puts the bugs of test/seeded into a copy of the source, one at a time, and expects the tests that they name to
// find them. A bug that is not found is a missing test.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"text/tabwriter"
	"time"
)

// patches is where the bugs are, from the root of the repository.
const patches = "test/seeded"

// manifests are made by make, and needed to compile.
const manifests = "internal/plane/capi/manifests/generated"

func main() {
	only := flag.String("only", "", "only bugs whose name contains this")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	missed, err := run(ctx, *only)
	if err != nil {
		fmt.Fprintln(os.Stderr, "seeded:", err)
	}
	if err != nil || missed > 0 {
		stop()
		os.Exit(1) //nolint:gocritic // it was stopped
	}
}

// run tries all bugs, prints a table, and returns how many were not found.
func run(ctx context.Context, only string) (missed int, err error) {
	root, err := os.Getwd()
	if err != nil {
		return 0, err
	}
	bugs, err := readBugs(filepath.Join(root, patches))
	if err != nil {
		return 0, err
	}
	source, err := os.MkdirTemp("", "polder-seeded-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(source) //nolint:errcheck // in a directory for such things
	if err := copySource(ctx, root, source); err != nil {
		return 0, err
	}
	table := tabwriter.NewWriter(os.Stdout, 0, 4, 2, ' ', 0)
	defer table.Flush()
	fmt.Fprintln(table, "BUG\tFOUND\tBY\tTIME")
	for _, b := range bugs {
		if !strings.Contains(b.name, only) {
			continue
		}
		begin := time.Now()
		by, err := b.try(ctx, source)
		if err != nil {
			return missed, err
		}
		found := "yes"
		if by == "" {
			found = "NO"
			missed++
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%.0fs\n", b.text, found, by, time.Since(begin).Seconds())
		fmt.Fprintf(os.Stderr, "%s: found %s\n", b.name, found)
	}
	return missed, nil
}

// copySource copies what git knows, changed or not, and what is made for the compiler.
func copySource(ctx context.Context, from, to string) error {
	list, err := command(ctx, from, "git", "ls-files", "-co", "--exclude-standard", "-z").Output()
	if err != nil {
		return fmt.Errorf("listing the source: %w", err)
	}
	for name := range strings.SplitSeq(strings.TrimSuffix(string(list), "\x00"), "\x00") {
		if err := copyFile(filepath.Join(from, name), filepath.Join(to, name)); err != nil && !os.IsNotExist(err) {
			return err
		}
	}
	return os.CopyFS(filepath.Join(to, manifests), os.DirFS(filepath.Join(from, manifests)))
}

func copyFile(from, to string) error {
	info, err := os.Lstat(from)
	if err != nil || !info.Mode().IsRegular() {
		return err
	}
	b, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	return os.WriteFile(to, b, info.Mode().Perm())
}

func command(ctx context.Context, dir, name string, args ...string) *exec.Cmd {
	c := exec.CommandContext(ctx, name, args...)
	c.Dir = dir
	return c
}
