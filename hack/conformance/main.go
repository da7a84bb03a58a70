// Conformance runs Kubernetes' own conformance tests against fresh local clusters: those that need no real
// container, by name, from test/conformance/testdata. It starts a plane from bin/ in an empty directory, as an
// ordinary user, and removes everything when it is done. `make conformance` builds what it needs.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"
)

// listsDir is where the names of the tests are, from the root of the repository.
const listsDir = "test/conformance/testdata"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "conformance:", err)
		stop()
		os.Exit(1)
	}
}

// options are the values of the flags.
type options struct {
	kubernetes string // version of the clusters; empty: that of the tests
	e2e        string // program with the tests
	defaultE2E bool   // it is the one our lists are for
	reports    string // directory for reports and logs
	processes  int    // how many run tests side by side, on the cluster for tests that allow it
	only       string // regular expression for names
}

func parseFlags(args []string) (options, error) {
	o := options{}
	f := flag.NewFlagSet("conformance", flag.ContinueOnError)
	f.StringVar(&o.kubernetes, "kubernetes", "", "`version` of the clusters, such as 1.36; default: that of the tests")
	f.StringVar(&o.e2e, "e2e", "", "`file` with the tests of another version; default: bin/conformance/e2e.test")
	f.StringVar(&o.reports, "reports", "bin/conformance", "`directory` for junit.xml and logs")
	f.IntVar(&o.processes, "processes", 3, "`number` of processes for tests that may run beside others")
	f.StringVar(&o.only, "only", "", "`expression`: run only tests whose names match")
	if err := f.Parse(args); err != nil {
		return o, err
	}
	if f.NArg() > 0 {
		return o, fmt.Errorf("%q is not understood; there are only flags, see --help", f.Arg(0))
	}
	if o.processes < 1 {
		return o, errors.New("--processes must be at least 1")
	}
	o.defaultE2E = o.e2e == ""
	if o.defaultE2E {
		o.e2e = "bin/conformance/e2e.test"
	}
	return o, nil
}

func run(ctx context.Context, args []string, out io.Writer) (err error) {
	o, err := parseFlags(args)
	if errors.Is(err, flag.ErrHelp) {
		return nil
	}
	if err != nil {
		return err
	}
	begin := time.Now()
	suite, err := readSuite(ctx, o.e2e)
	if err != nil {
		return err
	}
	tests, err := chooseTests(out, o, suite)
	if err != nil {
		return err
	}
	version, err := clusterVersion(o.kubernetes, suite.version)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%d of the %d conformance tests of Kubernetes %s, against clusters of %s\n", len(tests),
		len(suite.names), suite.version, version)
	results, err := runOnFreshClusters(ctx, out, o, version, tests)
	if err != nil {
		return err
	}
	if err := writeJUnit(filepath.Join(o.reports, "junit.xml"), results); err != nil {
		return err
	}
	return printReport(out, results, time.Since(begin))
}

// runOnFreshClusters runs the tests on clusters that it makes, and removes at the end.
func runOnFreshClusters(ctx context.Context, out io.Writer, o options, version string,
	tests []string) (results []result, err error) {
	if err := os.MkdirAll(o.reports, 0o755); err != nil {
		return nil, err
	}
	p, err := startPlane(ctx, out, o.e2e)
	// Also a plane that started only in part must be removed.
	if p != nil {
		defer func() { err = errors.Join(err, p.remove()) }()
	}
	if err != nil {
		return nil, err
	}
	return p.runTests(ctx, out, o, version, tests)
}
