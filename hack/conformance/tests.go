package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"time"
)

// There are two clusters: tests that tolerate no others beside them have one for themselves.
const (
	serialCluster   = "serial"
	parallelCluster = "parallel"
)

// batch is what one process runs.
type batch struct {
	name    string
	cluster string
	tests   []string
}

// planBatches distributes the tests: those that must be alone to one process on a cluster of their own, all others
// in turn to several processes on the other cluster.
func planBatches(tests []string, processes int) []batch {
	serial := batch{name: serialCluster, cluster: serialCluster}
	parallel := make([]batch, processes)
	next := 0
	for _, t := range tests {
		if strings.Contains(t, "[Serial]") {
			serial.tests = append(serial.tests, t)
			continue
		}
		b := &parallel[next%processes]
		b.name, b.cluster = fmt.Sprintf("%s-%d", parallelCluster, next%processes+1), parallelCluster
		b.tests = append(b.tests, t)
		next++
	}
	var out []batch
	for _, b := range append([]batch{serial}, parallel...) {
		if len(b.tests) > 0 {
			out = append(out, b)
		}
	}
	return out
}

func (p *plane) runTests(ctx context.Context, out io.Writer, o options, version string,
	tests []string) ([]result, error) {
	batches := planBatches(tests, o.processes)
	var names []string
	for _, b := range batches {
		if len(names) == 0 || names[len(names)-1] != b.cluster {
			names = append(names, b.cluster)
		}
	}
	access, err := p.makeClusters(ctx, out, version, names...)
	if err != nil {
		return nil, err
	}
	var (
		all  = make([][]result, len(batches))
		wait sync.WaitGroup
		mu   sync.Mutex
	)
	for i, b := range batches {
		wait.Go(func() {
			begin := time.Now()
			all[i] = p.runBatch(ctx, b, access[b.cluster], o.reports)
			mu.Lock()
			defer mu.Unlock()
			fmt.Fprintf(out, "%s: %d tests in %s\n", b.name, len(b.tests), time.Since(begin).Round(time.Second))
		})
	}
	wait.Wait()
	var results []result
	for _, r := range all {
		results = append(results, r...)
	}
	return results, ctx.Err()
}

// runBatch runs one process with the tests, and reads its report. A test that is not in it has failed: the process
// ended before it, and its log says why.
func (p *plane) runBatch(ctx context.Context, b batch, kubeconfig, reports string) []result {
	dir := filepath.Join(p.dir, "reports", b.name)
	log := filepath.Join(reports, b.name+".log")
	err := p.runProcess(ctx, b, dir, kubeconfig, log)
	results, readErr := readJUnit(filepath.Join(dir, "junit_01.xml"), b.tests)
	if readErr != nil {
		return missingResults(b.tests, fmt.Sprintf("no result: %v; see %s", firstError(err, readErr), log))
	}
	return results
}

func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func (p *plane) runProcess(ctx context.Context, b batch, dir, kubeconfig, log string) error {
	out, err := os.Create(log)
	if err != nil {
		return err
	}
	defer out.Close() //nolint:errcheck // the process writes to it itself
	c := p.command(ctx, "e2e.test", append(testFlags(b.tests),
		"--kubeconfig="+kubeconfig, "--report-dir="+dir, "--kubectl-path="+filepath.Join(p.dir, "bin/kubectl"))...)
	c.Stdout, c.Stderr = out, out
	return c.Run()
}

// testFlags gives flags that name each test in full. Nodes are simulated, so no pods have to run before, and no logs
// of nodes are worth keeping.
func testFlags(tests []string) []string {
	out := []string{
		"--provider=skeleton", "--minStartupPods=0", "--dump-logs-on-failure=false", "--ginkgo.no-color",
		"--ginkgo.timeout=2h",
	}
	for _, t := range tests {
		out = append(out, "--ginkgo.focus=^Kubernetes e2e suite "+regexp.QuoteMeta(t)+"$")
	}
	return out
}
