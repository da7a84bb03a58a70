// Package conformance judges servers of the REST API, /v1: whether they keep what docs/user/rest.md and the published
// OpenAPI document promise. It is for providers that serve the API with machinery of their own, a foreign backend.
//
// It knows nothing of how a server is made. It asks as customers do, with tokens of members of a tenant, makes clusters
// of that tenant that are paused, and deletes them again, also when it is interrupted. What it makes is called
// api-conf-, a number of the run, and a number.
package conformance

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"time"
)

// Role is as whom a server is asked.
type Role string

// Roles. Nobody has no token; Other is a member of another tenant, and not of the one that is judged with.
const (
	Nobody Role = "nobody"
	Viewer Role = "viewer"
	Editor Role = "editor"
	Admin  Role = "admin"
	Other  Role = "other"
)

// Config says which server is judged, and with what.
type Config struct {
	URL    string          // of the API, which ends with /v1
	Tenant string          // in which clusters are made
	Tokens map[Role]string // that of an editor is needed; checks for whom another's is needed are not run without it
	// Cluster is the file of a cluster, as YAML or JSON, whose name is replaced. Nothing means one that is made of the
	// first stack that the server offers. Clusters are paused, unless the file says paused: false.
	Cluster []byte
	// Client is nil for one without further settings. Redirects are not followed, since the API has none.
	Client *http.Client
	// Timeout is how long something may take that does not come with the answer, such as a status; 0 is a minute.
	Timeout time.Duration
	// RequestTimeout is how long one answer may take; 0 is half a minute.
	RequestTimeout time.Duration
	// WaitReady is how long a cluster may take to become ready; 0 leaves out the checks for which one must.
	WaitReady time.Duration
	// Progress is called with each result as it comes, if it is not nil.
	Progress func(Result)
}

var tenantPattern = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`)

// Validate says what is wrong with it.
func (c Config) Validate() error {
	u, err := url.Parse(c.URL)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http":
		return fmt.Errorf("%q is no URL of an API; write, for example, https://polder.example.org/v1", c.URL)
	case !strings.HasSuffix(strings.TrimRight(u.Path, "/"), "/v1"):
		return fmt.Errorf("the URL %s does not end with /v1, which all paths of the API begin with", c.URL)
	case !tenantPattern.MatchString(c.Tenant):
		return fmt.Errorf("%q is no name of a tenant; a tenant is needed in which clusters can be made", c.Tenant)
	case c.Tokens[Editor] == "":
		return errors.New("a token of an editor of the tenant is needed, since all others are checked with what it makes")
	case c.Timeout < 0 || c.RequestTimeout < 0 || c.WaitReady < 0:
		return errors.New("a time to wait is less than nothing")
	}
	if len(c.Cluster) == 0 {
		return nil
	}
	_, err = parseTemplate(c.Cluster)
	return err
}

// Outcome is how a check ended.
type Outcome string

// Outcomes.
const (
	Passed Outcome = "passed"
	Failed Outcome = "failed"
	NotRun Outcome = "not run"
)

// Result is that of one check.
type Result struct {
	Name    string  `json:"name"`
	Shows   string  `json:"shows"` // the promise
	Outcome Outcome `json:"outcome"`
	Message string  `json:"message,omitempty"` // what was expected and what came, or why it was not run
}

// Report is what was found.
type Report struct {
	URL     string   `json:"url"`
	Tenant  string   `json:"tenant"`
	Results []Result `json:"results"`
	// Left is what the suite has made and could not delete, each as a sentence.
	Left []string `json:"left,omitempty"`
	// Deleting is what was still being deleted when the suite ended.
	Deleting []string `json:"deleting,omitempty"`
}

// Count is how many checks ended in a way.
func (r *Report) Count(o Outcome) int {
	n := 0
	for _, x := range r.Results {
		if x.Outcome == o {
			n++
		}
	}
	return n
}

// Conforms says that no check failed and nothing was left behind. Checks that were not run say nothing for or against.
func (r *Report) Conforms() bool { return r.Count(Failed) == 0 && len(r.Left) == 0 }

// Run judges a server. The error is about the run: the configuration is wrong, the server cannot be asked at all, or
// the context ended; then the report has what was found until then, and what the suite made is deleted nevertheless.
func Run(ctx context.Context, c Config) (*Report, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	c.URL = strings.TrimRight(c.URL, "/")
	c.Timeout = cmp.Or(c.Timeout, time.Minute)
	c.RequestTimeout = cmp.Or(c.RequestTimeout, 30*time.Second)
	s, err := newSession(c)
	if err != nil {
		return nil, err
	}
	r := &Report{URL: c.URL, Tenant: c.Tenant}
	defer s.client.CloseIdleConnections()
	if err := s.prepare(ctx); err != nil {
		return r, err
	}
	for _, x := range checks() {
		one := s.runCheck(ctx, x)
		r.Results = append(r.Results, one)
		if c.Progress != nil {
			c.Progress(one)
		}
	}
	r.Left, r.Deleting = s.cleanUp(ctx)
	return r, ctx.Err()
}
