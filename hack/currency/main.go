// Command currency tells how far the pinned modules and the offered versions of Kubernetes are
// behind upstream, and when their support ends. It is run from the root of the repository:
//
//	go run ./hack/currency
//
// It exits with 0 when everything is current enough, with 1 when something has to be upgraded, and
// with 2 when that could not be found out. go run turns both into 1; the built program tells them apart.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
	"time"
)

// Exit codes.
const (
	exitCurrent = 0
	exitBehind  = 1
	exitError   = 2
)

// Limits of what is asked of the proxy.
const (
	runTimeout     = 110 * time.Second
	requestTimeout = 20 * time.Second
	parallel       = 6
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	code := run(ctx, os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

func run(ctx context.Context, out, errOut io.Writer) int {
	ctx, cancel := context.WithTimeout(ctx, runTimeout)
	defer cancel()
	code, err := checkWorkingDirectory(ctx, out)
	if err != nil {
		fmt.Fprintln(errOut, "currency:", err)
		return exitError
	}
	return code
}

func checkWorkingDirectory(ctx context.Context, out io.Writer) (int, error) {
	modFiles, err := listModFiles(ctx)
	if err != nil {
		return 0, err
	}
	// The go command is run outside of any module, so that no replace directive changes its answers.
	dir, err := os.MkdirTemp("", "currency-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir) //nolint:errcheck // an empty directory for temporary files may stay
	goList := goCommand{Dir: dir, Timeout: requestTimeout}
	return check(ctx, config{
		Root:     os.DirFS("."),
		ModFiles: modFiles,
		Lookup:   limitParallel(goList.lookup, parallel),
		Now:      time.Now().UTC(),
	}, out)
}

// listModFiles lists the go.mod files that git tracks, that of the root first.
func listModFiles(ctx context.Context) ([]string, error) {
	out, err := exec.CommandContext(ctx, "git", "ls-files", "--", "go.mod", "*/go.mod").Output()
	if err != nil {
		return nil, fmt.Errorf("listing go.mod files with git: %w: %s; run this from the root of the repository", err,
			stderrOf(err))
	}
	files := strings.Fields(string(out))
	if len(files) == 0 {
		return nil, errors.New("git tracks no go.mod file here; run this from the root of the repository")
	}
	slices.SortStableFunc(files, func(a, b string) int { return strings.Count(a, "/") - strings.Count(b, "/") })
	return files, nil
}
