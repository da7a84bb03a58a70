package conformance_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/polder-kaas/polder/conformance"
	"github.com/polder-kaas/polder/test/foreign"
)

const documentFile = "../docs/reference/openapi.json"

// config is for a run against the second implementation with a deviation.
func config(t *testing.T, d foreign.Deviation) conformance.Config {
	t.Helper()
	document, err := os.ReadFile(documentFile)
	if err != nil {
		t.Fatal(err)
	}
	s, err := foreign.New(document, d)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	patience := time.Minute
	if d != foreign.None {
		patience = 15 * time.Second // some wait in vain for what does not come
	}
	return conformance.Config{
		URL: server.URL + "/v1", Tenant: foreign.Tenant, Client: server.Client(), Timeout: patience, WaitReady: patience,
		Tokens: map[conformance.Role]string{
			conformance.Editor: foreign.EditorToken, conformance.Admin: foreign.AdminToken, conformance.Viewer: foreign.ViewerToken,
			conformance.Other: foreign.OtherToken,
		},
	}
}

// judge runs the suite.
func judge(t *testing.T, c conformance.Config) *conformance.Report {
	t.Helper()
	r, err := conformance.Run(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// wantAll fails a test unless all checks passed and nothing was left.
func wantAll(t *testing.T, r *conformance.Report) {
	t.Helper()
	for _, x := range r.Results {
		if x.Outcome != conformance.Passed {
			t.Errorf("%s: %s: %s", x.Name, x.Outcome, x.Message)
		}
	}
	if !r.Conforms() || len(r.Deleting) > 0 || len(r.Results) == 0 {
		t.Errorf("left: %q, being deleted: %q, results: %d", r.Left, r.Deleting, len(r.Results))
	}
}

// clusters are those that a server has.
func clusters(t *testing.T, c conformance.Config) string {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, c.URL+"/tenants/"+c.Tenant+"/clusters", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+foreign.EditorToken)
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK {
		t.Fatalf("%d %v", res.StatusCode, err)
	}
	return strings.TrimSpace(string(b))
}

const noClusters = `{"items":[]}`

// The second implementation shares no code of handlers with ours, and keeps every promise.
func TestSecondImplementation(t *testing.T) {
	t.Parallel()
	c := config(t, foreign.None)
	wantAll(t, judge(t, c))
	if got := clusters(t, c); got != noClusters {
		t.Errorf("there are clusters: %s", got)
	}
}

// Names of a run are its own: two at once do not see each other.
func TestTwoRunsAtOnce(t *testing.T) {
	t.Parallel()
	c := config(t, foreign.None)
	var group sync.WaitGroup
	reports := make([]*conformance.Report, 2)
	for i := range reports {
		group.Go(func() { reports[i], _ = conformance.Run(t.Context(), c) })
	}
	group.Wait()
	for _, r := range reports {
		wantAll(t, r)
	}
}

// What cannot be checked is said not to be, never to have passed.
func TestChecksThatAreNotRun(t *testing.T) {
	t.Parallel()
	c := config(t, foreign.None)
	c.Tokens = map[conformance.Role]string{conformance.Editor: foreign.EditorToken}
	c.WaitReady = 0
	c.Cluster = []byte("spec: {provider: memory, stack: {name: scs}, controlPlane: {replicas: 3}}\n")
	r := judge(t, c)
	got := map[string]string{}
	for _, x := range r.Results {
		if x.Outcome != conformance.Passed {
			got[x.Name] = string(x.Outcome) + ": " + x.Message
		}
	}
	admin, other := "not run: it needs a token of an admin of the tenant", "not run: it needs a token of a member of another tenant"
	ready := "not run: it needs a cluster that becomes ready, for which no time was given"
	viewer := "not run: it needs a token of a viewer of the tenant"
	want := map[string]string{
		"watch/refused": other, "isolation/same 404": other, "isolation/list": other, "isolation/viewer": viewer, "tenants/members": admin,
		"tenants/robots": admin, "tenants/audit": admin, "status/ready": ready, "kubeconfig/made": ready, "kubeconfig/role": viewer,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if !r.Conforms() || r.Count(conformance.NotRun) != len(want) {
		t.Errorf("%d were not run", r.Count(conformance.NotRun))
	}
}

// interrupter ends a run once it has made some clusters.
type interrupter struct {
	next   http.RoundTripper
	cancel func()
	left   atomic.Int32
}

func (i *interrupter) RoundTrip(r *http.Request) (*http.Response, error) {
	res, err := i.next.RoundTrip(r)
	if r.Method == http.MethodPost && err == nil && res.StatusCode == http.StatusCreated && i.left.Add(-1) == 0 {
		i.cancel()
	}
	return res, err
}

// A run that is interrupted deletes what it has made, and says what it found until then.
func TestInterruptedRun(t *testing.T) {
	t.Parallel()
	for _, made := range []int32{1, 2, 7, 20} {
		c := config(t, foreign.None)
		ctx, cancel := context.WithCancel(t.Context())
		i := &interrupter{next: http.DefaultTransport, cancel: cancel}
		i.left.Store(made)
		c.Client = &http.Client{Transport: i}
		r, err := conformance.Run(ctx, c)
		if !errors.Is(err, context.Canceled) || r == nil || r.Count(conformance.Failed) > 0 || len(r.Left) > 0 || r.Count(conformance.NotRun) == 0 {
			t.Errorf("%v %+v", err, r)
		}
		if got := clusters(t, c); got != noClusters {
			t.Errorf("after %d clusters, there are: %s", made, got)
		}
	}
}

// What is wrong with a run itself is an error, before anything is made.
func TestRunThatCannotBe(t *testing.T) {
	t.Parallel()
	for want, edit := range map[string]func(*conformance.Config){
		"is no URL of an API":                func(c *conformance.Config) { c.URL = "polder.example.org" },
		"does not end with /v1":              func(c *conformance.Config) { c.URL = "https://polder.example.org/api" },
		"is no name of a tenant":             func(c *conformance.Config) { c.Tenant = "../other" },
		"a token of an editor of the tenant": func(c *conformance.Config) { delete(c.Tokens, conformance.Editor) },
		"less than nothing":                  func(c *conformance.Config) { c.WaitReady = -1 },
		"is no YAML":                         func(c *conformance.Config) { c.Cluster = []byte("spec: [") },
		"is not that of a WorkloadCluster":   func(c *conformance.Config) { c.Cluster = []byte("spec: {stakc: {}}") },
		"has no spec.stack.name":             func(c *conformance.Config) { c.Cluster = []byte("spec: {provider: a}") },
		"does not believe the token":         func(c *conformance.Config) { c.Tokens[conformance.Editor] = "wrong" },
		"connection refused":                 func(c *conformance.Config) { c.URL = "http://127.0.0.1:1/v1" },
		"answers /me with 404":               func(c *conformance.Config) { c.URL = strings.TrimSuffix(c.URL, "/v1") + "/elsewhere/v1" },
	} {
		c := config(t, foreign.None)
		edit(&c)
		if _, err := conformance.Run(t.Context(), c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q, got %v", want, err)
		}
	}
}

// The suite judges by the document that is published.
func TestEmbeddedDocument(t *testing.T) {
	t.Parallel()
	want, err := os.ReadFile(documentFile)
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile("openapi.json")
	if err != nil || string(got) != string(want) {
		t.Errorf("conformance/openapi.json is not what is published (%v); run: make generate", err)
	}
}
