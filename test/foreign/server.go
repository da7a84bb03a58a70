// Package foreign is a second implementation of the REST API: a small server in memory, with machinery of its own and
// nothing of ours but the kinds. Tests of the conformance suite are done on it. It is made with switches, each of which
// makes it deviate from what is promised in one thing.
package foreign

import (
	"crypto/ecdsa"
	"crypto/x509"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/polder-kaas/polder/api/v1alpha1"
)

// Deviation is a promise that a server breaks.
type Deviation string

// Tokens of the members of two tenants, acme and other.
const (
	Tenant      = "acme"
	AdminToken  = "acme-admin"
	EditorToken = "acme-editor"
	ViewerToken = "acme-viewer"
	OtherToken  = "other-editor"
)

// Server is the API. All that it has is under its lock.
type Server struct {
	document  []byte
	deviation Deviation

	caKey *ecdsa.PrivateKey
	ca    *x509.Certificate

	mu      sync.Mutex
	version int64
	tenants map[string]*tenant
	users   map[string]user // by their tokens
}

// user is somebody with a role in one tenant.
type user struct{ name, tenant, role string }

// tenant is a customer.
type tenant struct {
	name     string
	version  int64
	members  []member
	robots   map[string]string // roles by names
	clusters map[string]*cluster
	record   []record // the oldest first
	watchers map[chan change]bool
}

type member struct {
	Kind string `json:"kind"`
	Name string `json:"name"`
	Role string `json:"role"`
}

type record struct {
	Time   time.Time `json:"time"`
	User   string    `json:"user"`
	Verb   string    `json:"verb"`
	Object string    `json:"object"`
	Status int       `json:"status"`
}

// cluster is one, with the hash of the key that it was made with.
type cluster struct {
	v1alpha1.WorkloadCluster
	mark, key string
}

// New makes a server that serves the published document and keeps to it, but for a deviation.
func New(document []byte, d Deviation) (*Server, error) {
	s := &Server{document: document, deviation: d, tenants: map[string]*tenant{}, users: map[string]user{}}
	for _, name := range []string{Tenant, "other"} {
		t := &tenant{
			name: name, version: s.next(), robots: map[string]string{}, clusters: map[string]*cluster{}, watchers: map[chan change]bool{},
		}
		for _, role := range []string{"admin", "editor", "viewer"} {
			s.users[name+"-"+role] = user{name: name + "-" + role, tenant: name, role: role}
			t.members = append(t.members, member{"User", name + "-" + role, role})
		}
		s.tenants[name] = t
	}
	return s, s.makeAuthority()
}

func (s *Server) is(d Deviation) bool { return s.deviation == d }

func (s *Server) next() int64 {
	s.version++
	return s.version
}

// call is one request.
type call struct {
	*http.Request
	w      http.ResponseWriter
	vars   map[string]string
	query  url.Values
	user   user
	tenant *tenant
	dryRun bool
}

// reply is an answer that is no problem.
type reply struct {
	status int
	tag    string
	header map[string]string
	body   any
	stream func()
}

// ServeHTTP serves one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c := &call{Request: r, w: w, query: r.URL.Query()}
	a, p := s.serve(c)
	if p != nil {
		s.writeProblem(w, p)
		return
	}
	if a.stream != nil {
		a.stream()
		return
	}
	for name, value := range a.header {
		w.Header().Set(name, value)
	}
	if a.tag != "" {
		w.Header().Set("ETag", a.tag)
	}
	if a.body == nil {
		w.WriteHeader(a.status)
		return
	}
	if w.Header().Get("Content-Type") == "" {
		w.Header().Set("Content-Type", "application/json")
	}
	w.WriteHeader(a.status)
	_ = json.NewEncoder(w).Encode(a.body)
}

func (s *Server) serve(c *call) (*reply, *problem) {
	o, p := s.route(c)
	if p != nil {
		return nil, p
	}
	if !o.public {
		if p := s.identify(c); p != nil {
			return nil, p
		}
	}
	if p := checkQuery(c, o); p != nil {
		return nil, p
	}
	if c.ContentLength > maxBody {
		return nil, problemf(http.StatusRequestEntityTooLarge, "the body is larger than 1 MiB")
	}
	c.Body = http.MaxBytesReader(c.w, c.Body, maxBody)
	s.mu.Lock()
	defer s.mu.Unlock()
	name := c.vars["tenant"]
	if name == "" {
		name = c.query.Get("tenant")
	}
	if name != "" {
		if p := s.enter(c, name); p != nil {
			return nil, p
		}
		if p := s.checkRole(c, o); p != nil {
			return nil, p
		}
	}
	a, p := o.handle(s, c)
	if c.tenant != nil && o.method != http.MethodGet {
		status := http.StatusOK
		if p != nil {
			status = p.Status
		}
		object := "clusters/" + c.vars["cluster"]
		c.tenant.record = append(c.tenant.record, record{time.Now().UTC(), c.user.name, o.method, object, status})
	}
	return a, p
}

// identify finds out whose token it is.
func (s *Server) identify(c *call) *problem {
	token, ok := strings.CutPrefix(c.Header.Get("Authorization"), "Bearer ")
	s.mu.Lock()
	defer s.mu.Unlock()
	u, known := s.users[token]
	if s.is(NoTokenNeeded) && !known && strings.HasSuffix(c.URL.Path, "/providers") {
		return nil
	}
	if !ok || !known {
		return problemf(http.StatusUnauthorized, "this token is not known here")
	}
	c.user = u
	return nil
}

// enter looks whether somebody belongs to a tenant. To others there is none.
func (s *Server) enter(c *call, name string) *problem {
	t := s.tenants[name]
	if t != nil && c.user.tenant != name && s.is(ForeignForbidden) {
		return problemf(http.StatusForbidden, "you do not belong to this tenant")
	}
	if t == nil || c.user.tenant != name {
		return notFound("there is no tenant %s for you", name)
	}
	c.tenant = t
	return nil
}

var ranks = []string{"viewer", "editor", "admin"}

func (s *Server) checkRole(c *call, o operation) *problem {
	if s.is(ViewerWrites) && o.role == "editor" {
		return nil
	}
	if slices.Index(ranks, c.user.role) < slices.Index(ranks, o.role) {
		return problemf(http.StatusForbidden, "this is for those who are %s of the tenant", o.role)
	}
	return nil
}

// checkQuery refuses what the operation does not know.
func checkQuery(c *call, o operation) *problem {
	for name, values := range c.query {
		if !slices.Contains(o.queries, name) {
			return problemf(http.StatusUnprocessableEntity, "the query %s is not known", name)
		}
		if most := map[string]int{"pageSize": 500, "limit": 1000}[name]; most > 0 {
			if n, err := strconv.Atoi(values[0]); err != nil || n < 1 || n > most {
				return problemf(http.StatusUnprocessableEntity, "%s is a number from 1 to %d", name, most)
			}
		}
	}
	c.dryRun = c.query.Get("dryRun") == "true"
	return nil
}

const maxBody = 1 << 20
