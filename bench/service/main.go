// Command service measures the REST API beside the plane's own Kubernetes API: the same requests, of the same robot, to
// both in turns.
//
//	service [-clusters N] [-rounds N] [-clients N] [-tenants N]
//
// It starts bin/polderd on an empty directory and leaves nothing behind. Times depend on the machine; the ratio of both
// in one run is what counts.
package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/polder-kaas/polder/bench/measure"
	"github.com/polder-kaas/polder/bench/scenario"
	"github.com/polder-kaas/polder/internal/plane/status"
)

const (
	ratioAim   = 1.3
	perRound   = 100 // requests of one client to one API before it is the other's turn
	tokens     = 300 // one alone may not ask so often
	tenantName = "bench"
)

type bench struct {
	clusters, rounds, clients, tenants int
	*measure.Plane
	http   *http.Client
	rest   string // URL
	tokens []string
	next   atomic.Int64
}

func main() {
	b := &bench{}
	flag.IntVar(&b.clusters, "clusters", 50, "that a list has")
	flag.IntVar(&b.rounds, "rounds", 10, "for each operation")
	flag.IntVar(&b.clients, "clients", 4, "that ask at the same time")
	flag.IntVar(&b.tenants, "tenants", 1000, "to make on a plane of their own")
	os.Exit(scenario.Main(scenario.Benchmark{Columns: measure.Columns, Validate: b.validate, Run: b.run}))
}

func (b *bench) validate() error {
	if b.clusters < 1 || b.clusters > 500 || b.rounds < 1 || b.clients < 1 || b.tenants < 1 {
		return errors.New("-clusters must be 1 to 500, -rounds, -clients and -tenants at least 1")
	}
	return nil
}

func (b *bench) run(ctx context.Context, r *scenario.Runner) error {
	return errors.Join(b.compareAPIs(ctx, r), r.Run(ctx, scenario.Scene{Name: "tenants", Run: b.many}))
}

// compareAPIs runs all scenes that compare both APIs on one plane.
func (b *bench) compareAPIs(ctx context.Context, r *scenario.Runner) error {
	return measure.WithPlane(ctx, func(p *measure.Plane) error {
		b.Plane = p
		return r.Run(ctx,
			scenario.Scene{Name: "list", Run: func(ctx context.Context) (scenario.Rows, error) {
				return b.compare(ctx, fmt.Sprintf("a list of %d clusters", b.clusters), b.list)
			}},
			scenario.Scene{Name: "get", Run: func(ctx context.Context) (scenario.Rows, error) {
				return b.compare(ctx, "one cluster", b.get)
			}},
			scenario.Scene{Name: "create", Run: func(ctx context.Context) (scenario.Rows, error) {
				return b.compare(ctx, "making a cluster, without writing it", b.create)
			}},
		)
	}, "--rest-listen", "127.0.0.1:0")
}

// prepare makes a tenant with clusters that are paused, and tokens of a robot, before the first scene that needs them.
func (b *bench) prepare(ctx context.Context) error {
	if b.http != nil {
		return nil
	}
	s, _, err := status.Read(b.Data())
	if err != nil {
		return err
	}
	b.rest = s.REST
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(b.Config.CAData)
	b.http = &http.Client{Transport: &http.Transport{
		TLSClientConfig:   &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12},
		ForceAttemptHTTP2: true, DisableCompression: true,
	}}
	scenario.Logf("making a tenant with %d clusters and %d tokens", b.clusters, tokens)
	if _, err := b.polder(ctx, "tenant", "create", tenantName, "--clusters", "1000", "--machines", "5000"); err != nil {
		return err
	}
	for range tokens {
		t, err := b.polder(ctx, "tenant", "robot", tenantName, "ci", "--role", "editor", "--token-only")
		if err != nil {
			return err
		}
		b.tokens = append(b.tokens, strings.TrimSpace(t))
	}
	until := measure.Poll{Every: 100 * time.Millisecond, Timeout: measure.WaitTimeout}
	for i := range b.clusters {
		// The stacks come a moment after the plane.
		if err := until.Do(ctx, "a cluster", func(ctx context.Context) error {
			return b.send(ctx, http.MethodPut, b.rest+restPath+fmt.Sprintf("/c%d", i), clusterFile(fmt.Sprint("c", i)))
		}); err != nil {
			return err
		}
	}
	return nil
}

func (b *bench) polder(ctx context.Context, args ...string) (string, error) {
	out, err := exec.CommandContext(ctx, "bin/polder", append(args, "--data-dir", b.Data())...).Output()
	if err != nil {
		return "", fmt.Errorf("polder %s: %w", strings.Join(args, " "), err)
	}
	return string(out), nil
}

const restPath = "/tenants/" + tenantName + "/clusters"

func (b *bench) kubernetesPath() string {
	return b.Config.Host + "/apis/polder.dev/v1alpha1/namespaces/" + tenantName + "/workloadclusters"
}

func clusterFile(name string) string {
	return `{"apiVersion":"polder.dev/v1alpha1","kind":"WorkloadCluster","metadata":{"name":"` + name +
		`"},"spec":{"provider":"local","paused":true,"stack":{"name":"scs","kubernetesVersion":"1.36"}}}`
}

// send sends one request and reads the whole answer.
func (b *bench) send(ctx context.Context, method, url, body string) error {
	req, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+b.tokens[int(b.next.Add(1))%len(b.tokens)])
	req.Header.Set("Content-Type", "application/json")
	res, err := b.http.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close() //nolint:errcheck // read only
	var answer bytes.Buffer
	if _, err := io.Copy(&answer, res.Body); err != nil {
		return err
	}
	if res.StatusCode >= http.StatusMultipleChoices {
		return fmt.Errorf("%s %s: %d %.300s", method, url, res.StatusCode, answer.String())
	}
	return nil
}

// The operations, each for one of both APIs.
func (b *bench) list(ctx context.Context, rest bool, _ int) error {
	if rest {
		return b.send(ctx, http.MethodGet, b.rest+restPath+"?pageSize=500", "")
	}
	return b.send(ctx, http.MethodGet, b.kubernetesPath()+"?limit=500", "")
}

func (b *bench) get(ctx context.Context, rest bool, i int) error {
	name := fmt.Sprintf("/c%d", i%b.clusters)
	if rest {
		return b.send(ctx, http.MethodGet, b.rest+restPath+name, "")
	}
	return b.send(ctx, http.MethodGet, b.kubernetesPath()+name, "")
}

// create is a dry run, which does all but write: what is made would change what is measured next.
func (b *bench) create(ctx context.Context, rest bool, i int) error {
	file := clusterFile(fmt.Sprint("new", i))
	if rest {
		return b.send(ctx, http.MethodPost, b.rest+restPath+"?dryRun=true", file)
	}
	return b.send(ctx, http.MethodPost, b.kubernetesPath()+"?dryRun=All&fieldValidation=Strict", file)
}

// compare measures one operation with both APIs in turns.
func (b *bench) compare(ctx context.Context, what string,
	ask func(ctx context.Context, rest bool, i int) error) (rows scenario.Rows, err error) {
	if err := b.prepare(ctx); err != nil {
		return rows, err
	}
	var took [2][]time.Duration
	var wall [2]time.Duration
	for round := range 2 * b.rounds {
		api := round % 2
		begin := time.Now()
		found, err := b.askAll(func(i int) error { return ask(ctx, api == 1, i) })
		if err != nil {
			return rows, err
		}
		wall[api] += time.Since(begin)
		if round > 1 { // the first of each warms up
			took[api] = append(took[api], found...)
		}
	}
	for _, p := range []float64{0.5, 0.99} {
		bare, rest := percentile(took[0], p), percentile(took[1], p)
		rows.AddRow(scenario.Row{
			What: fmt.Sprintf("%s, p%.0f", what, p*100), Measured: []string{rest.Round(10 * time.Microsecond).String()},
			Aim:   time.Duration(ratioAim * float64(bare)).Round(10 * time.Microsecond).String(),
			Ratio: fmt.Sprintf("%.2f", rest.Seconds()/bare.Seconds()),
			More:  fmt.Sprintf("times the bare API's %s; %d requests each", bare.Round(10*time.Microsecond), len(took[0])),
		})
	}
	n := float64(b.rounds * perRound * b.clients)
	rows.Add(what+", a second", fmt.Sprintf("%.0f", n/wall[1].Seconds()),
		fmt.Sprintf("%.0f with the bare API", n/wall[0].Seconds()))
	return rows, nil
}

// askAll has all clients ask at the same time.
func (b *bench) askAll(ask func(i int) error) ([]time.Duration, error) {
	var mu sync.Mutex
	var all []time.Duration
	var errs []error
	var wg sync.WaitGroup
	for c := range b.clients {
		wg.Go(func() {
			i := 0
			found, err := scenario.Repeat(perRound, func() error { i++; return ask(c*perRound + i) })
			mu.Lock()
			defer mu.Unlock()
			all, errs = append(all, found...), append(errs, err)
		})
	}
	wg.Wait()
	return all, errors.Join(errs...)
}

func percentile(all []time.Duration, p float64) time.Duration {
	if len(all) == 0 {
		return 0
	}
	s := slices.Sorted(slices.Values(all))
	return s[min(len(s)-1, int(p*float64(len(s))))]
}
