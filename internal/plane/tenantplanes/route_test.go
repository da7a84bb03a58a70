package tenantplanes

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/audit"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/warning"
	"k8s.io/utils/clock"

	"github.com/polder-kaas/polder/api/v1alpha1"
	"github.com/polder-kaas/polder/internal/plane/status"
	"github.com/polder-kaas/polder/internal/tenancy"
)

const clustersPath = "/apis/polder.dev/v1alpha1/namespaces/own/workloadclusters"

// its is the server of a plane of a tenant: it says what it was asked, and believes who shows the front's certificate.
type its struct {
	*httptest.Server
	requests chan *http.Request
	answer   http.HandlerFunc
}

// newPlanes returns planes in which namespace "own" has one, that is ready.
func newPlanes(t *testing.T) (*Planes, *its) {
	t.Helper()
	p, err := New(Config{
		Dir: t.TempDir(), Requests: 2, Clock: clock.RealClock{}, Log: slog.New(slog.DiscardHandler), Report: func([]status.TenantPlane) {},
	})
	if err != nil {
		t.Fatal(err)
	}
	s := &its{requests: make(chan *http.Request, 100), answer: func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "there") }}
	s.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.requests <- r
		s.answer(w, r)
	}))
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(p.authority.pem)
	s.TLS = &tls.Config{ClientCAs: roots, ClientAuth: tls.RequireAndVerifyClientCert, MinVersion: tls.VersionTLS13}
	s.EnableHTTP2 = true
	s.StartTLS()
	t.Cleanup(s.Close)
	u, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	trusted := x509.NewCertPool()
	trusted.AddCert(s.Certificate())
	c := &child{planes: p, namespace: "own", tenant: "acme", dir: t.TempDir(), accepted: true, done: make(chan struct{})}
	c.setEndpoint(&endpoint{url: u, slots: make(chan struct{}, p.cfg.Requests), transport: &http.Transport{
		TLSClientConfig:   &tls.Config{RootCAs: trusted, Certificates: []tls.Certificate{p.authority.leaf}, MinVersion: tls.VersionTLS13},
		ForceAttemptHTTP2: true,
	}}, 1)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.children["own-uid"] = c
	return p, s
}

// newRouter returns a router for these planes, which counts what is asked here.
func newRouter(p *Planes, here *int) *Router {
	namespaces := map[string]*corev1.Namespace{}
	for name, labels := range map[string]map[string]string{"own": {v1alpha1.PlaneLabel: "Dedicated"}, "shared": nil, "new": {v1alpha1.PlaneLabel: "Dedicated"}} {
		ns := &corev1.Namespace{}
		ns.Name, ns.UID, ns.Labels = name, types.UID(name+"-uid"), labels
		namespaces[name] = ns
	}
	return &Router{
		Planes: p, IsOwn: func(who user.Info) bool { return who.GetName() == "polder:operator" },
		TenantNamespace: func(tenant string) string { return map[string]string{"acme": "own", "others": "shared"}[tenant] },
		Namespace: func(_ context.Context, name string) (*corev1.Namespace, error) {
			if name == "broken" {
				return nil, errors.New("the store hangs")
			}
			if namespaces[name] == nil {
				return nil, apierrors.NewNotFound(corev1.Resource("namespaces"), name)
			}
			return namespaces[name], nil
		},
		Next: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			*here++
			_, _ = io.WriteString(w, "here")
		}),
	}
}

// ask sends a request as the API server's chain does: who asks and what for is in its context.
func ask(t *testing.T, h http.Handler, who user.Info, method, path string, header http.Header) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), method, path, http.NoBody)
	maps.Copy(r.Header, header)
	f := &request.RequestInfoFactory{APIPrefixes: sets.NewString("api", "apis"), GrouplessAPIPrefixes: sets.NewString("api")}
	info, err := f.NewRequestInfo(r)
	if err != nil {
		t.Fatal(err)
	}
	ctx := audit.WithAuditContext(request.WithUser(request.WithRequestInfo(r.Context(), info), who))
	audit.WithAuditID(ctx, "the-id")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r.WithContext(ctx))
	return w
}

// Requests for what is in a namespace go to its plane; who somebody is and what he may do is decided here.
func TestWhereRequestsGo(t *testing.T) {
	p, s := newPlanes(t)
	here := 0
	r := newRouter(p, &here)
	ann, operator := &user.DefaultInfo{Name: "ann"}, &user.DefaultInfo{Name: "polder:operator"}
	for _, tt := range []struct {
		who    user.Info
		path   string
		answer string
	}{
		{ann, clustersPath, "there"},
		{ann, clustersPath + "/one", "there"},
		{ann, clustersPath + "/one/status", "there"},
		{ann, "/api/v1/namespaces/own/secrets", "there"},
		{ann, "/api/v1/namespaces/own/resourcequotas/polder-tenant", "there"},
		{ann, "/apis/cluster.x-k8s.io/v1beta2/namespaces/own/machines", "there"},
		{ann, "/apis/no.such/v1/namespaces/own/things", "there"},
		{ann, "/polder/machines/acme/one", "there"},
		{ann, strings.ReplaceAll(clustersPath, "own", "shared"), "here"},
		{ann, strings.ReplaceAll(clustersPath, "own", "none"), "here"},
		{ann, "/polder/machines/others/one", "here"},
		{ann, "/polder/machines/nobodys/one", "here"},
		{ann, "/polder/audit/acme", "here"},
		{ann, "/apis/polder.dev/v1alpha1/workloadclusters", "here"},
		{ann, "/apis/polder.dev/v1alpha1/tenants/acme", "here"},
		{ann, "/api/v1/namespaces", "here"},
		{ann, "/api/v1/namespaces/own", "here"},
		{ann, "/api/v1/namespaces/own/finalize", "here"},
		{ann, "/api/v1/namespaces/own/serviceaccounts/polder-robot-ci/token", "here"},
		{ann, "/apis/rbac.authorization.k8s.io/v1/namespaces/own/rolebindings", "here"},
		{ann, "/apis/authorization.k8s.io/v1/namespaces/own/localsubjectaccessreviews", "here"},
		{ann, "/version", "here"},
		{operator, clustersPath, "here"},
		{ann, strings.ReplaceAll(clustersPath, "own", "broken"), "it cannot be found out which plane has namespace broken: the store hangs"},
		{ann, strings.ReplaceAll(clustersPath, "own", "new"), "the plane of namespace new is not ready: it is starting"},
	} {
		here = 0
		w := ask(t, r, tt.who, http.MethodGet, tt.path, nil)
		body := w.Body.String()
		switch {
		case tt.answer == "here" || tt.answer == "there":
			if body != tt.answer || (here == 1) != (tt.answer == "here") {
				t.Errorf("%s %s: %d %s, want it %s", tt.who.GetName(), tt.path, w.Code, body, tt.answer)
			}
		case w.Code != http.StatusServiceUnavailable || !strings.Contains(body, tt.answer) || w.Header().Get("Retry-After") == "" || here > 0:
			t.Errorf("%s: %d %s, want %q", tt.path, w.Code, body, tt.answer)
		}
	}
	if n := len(s.requests); n != 8 {
		t.Errorf("the tenant's plane was asked %d times", n)
	}
}

// A plane is told who asks by this one alone, whatever a request says of that.
func TestIdentityHandedOn(t *testing.T) {
	p, s := newPlanes(t)
	here := 0
	r := newRouter(p, &here)
	who := &user.DefaultInfo{Name: "ann", UID: "u", Groups: []string{"a", "b"}, Extra: map[string][]string{"example.org/scope": {"x"}}}
	header := http.Header{
		"Authorization": {"Bearer secret"}, "Connection": {"X-Remote-User, X-Remote-Group"}, "Impersonate-User": {"root"}, "Impersonate-Extra-X": {"y"},
		"X-Remote-User": {"root"}, "X-Remote-Group": {"system:masters"}, "X-Remote-Uid": {"0"}, "X-Remote-Extra-More": {"z"},
		"Audit-Id": {"chosen"}, "X-Forwarded-For": {"192.0.2.1"}, "Accept": {"application/json"},
	}
	if w := ask(t, r, who, http.MethodGet, clustersPath+"?limit=5", header); w.Body.String() != "there" {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	got := <-s.requests
	want := http.Header{
		"X-Remote-User": {"ann"}, "X-Remote-Uid": {"u"}, "X-Remote-Group": {"a", "b"}, "X-Remote-Extra-Example.org%2fscope": {"x"}, "Audit-Id": {"the-id"},
		"Accept": {"application/json"},
	}
	for name := range got.Header {
		if strings.HasPrefix(name, "X-Remote-") || strings.HasPrefix(name, "Impersonate-") || name == "Authorization" || name == "Audit-Id" || name == "Accept" {
			if !slices.Equal(got.Header[name], want[name]) {
				t.Errorf("%s is %q, want %q", name, got.Header[name], want[name])
			}
		}
	}
	for name := range want {
		if len(got.Header[name]) == 0 {
			t.Errorf("%s is missing in %v", name, got.Header)
		}
	}
	if got.Header.Get("X-Forwarded-For") != "192.0.2.1" || got.URL.RawQuery != "limit=5" {
		t.Errorf("it is asked %s from %s", got.URL, got.Header.Get("X-Forwarded-For"))
	}
}

// A plane that hangs keeps as many places as it may, and others none; watches keep none.
func TestPlacesOfPlane(t *testing.T) {
	p, s := newPlanes(t)
	here := 0
	r := newRouter(p, &here)
	ann := &user.DefaultInfo{Name: "ann"}
	release := make(chan struct{})
	s.answer = func(http.ResponseWriter, *http.Request) { <-release }
	codes := make(chan int, 10)
	for range 2 {
		go func() { codes <- ask(t, r, ann, http.MethodGet, clustersPath, nil).Code }()
	}
	for range 2 {
		<-s.requests
	}
	w := ask(t, r, ann, http.MethodGet, clustersPath, nil)
	if w.Code != http.StatusTooManyRequests || !strings.Contains(w.Body.String(), "too many requests at once for namespace own") {
		t.Errorf("a third: %d %s", w.Code, w.Body)
	}
	for range 3 {
		go func() { codes <- ask(t, r, ann, http.MethodGet, clustersPath+"?watch=true", nil).Code }()
	}
	for range 3 {
		<-s.requests
	}
	close(release)
	for range 5 {
		if c := <-codes; c != http.StatusOK {
			t.Errorf("it ends with %d", c)
		}
	}
}

// What happens to a plane is what requests for it are told.
func TestStateOfPlane(t *testing.T) {
	p, s := newPlanes(t)
	here := 0
	r := newRouter(p, &here)
	c := p.children["own-uid"]
	expect := func(code int, words string) {
		t.Helper()
		w := ask(t, r, &user.DefaultInfo{Name: "ann"}, http.MethodGet, clustersPath, nil)
		if w.Code != code || !strings.Contains(w.Body.String(), words) {
			t.Errorf("%d %s, want %d %s", w.Code, w.Body, code, words)
		}
	}
	expect(200, "there")
	c.setAnswering(false)
	expect(503, "is not ready: it has failed")
	c.setAnswering(true)
	expect(200, "there")
	p.Reject("own-uid", "its data are those of another")
	expect(503, "is not ready: its data are not there")
	if w := ask(t, r, &user.DefaultInfo{Name: "ann"}, http.MethodGet, clustersPath, nil); w.Header().Get("Retry-After") != "" {
		t.Error("it is to be tried again")
	}
	c.setAnswering(true)
	expect(503, "its data are not there")
	if state := p.State("own-uid"); state.Phase != tenancy.PlaneLost || state.Message != "its data are those of another" {
		t.Errorf("it is %+v", state)
	}
	p.Accept("own-uid")
	expect(200, "there")
	s.CloseClientConnections()
	s.Close()
	expect(503, "the plane of namespace own did not answer: ")
	c.setEndpoint(nil, 0)
	expect(503, "it is starting")
	if state := p.State("unknown"); state.Phase != tenancy.PlaneUnknown {
		t.Errorf("an unknown one is %+v", state)
	}
}

// A list of all clusters says whose are not among them.
func TestWarningOfListOfAll(t *testing.T) {
	p, _ := newPlanes(t)
	here := 0
	r := newRouter(p, &here)
	for path, want := range map[string]bool{
		"/apis/polder.dev/v1alpha1/workloadclusters": true, "/apis/polder.dev/v1alpha1/workloadclusters?watch=true": true,
		"/apis/polder.dev/v1alpha1/tenants": false, "/apis/polder.dev/v1alpha1/namespaces/shared/workloadclusters": false,
	} {
		var said []string
		h := http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
			r.ServeHTTP(w, q.WithContext(recordWarnings(q.Context(), &said)))
		})
		ask(t, h, &user.DefaultInfo{Name: "ann"}, http.MethodGet, path, nil)
		if got := strings.Contains(fmt.Sprint(said), "ask for them by namespace: own"); got != want {
			t.Errorf("%s says %q", path, said)
		}
	}
}

// A plane that was there and is not is never made anew.
func TestLostPlane(t *testing.T) {
	p, _ := newPlanes(t)
	ns := &corev1.Namespace{}
	ns.Name, ns.UID = "lost", "lost-uid"
	ns.Annotations = map[string]string{v1alpha1.PlaneUIDAnnotation: "it-was-there"}
	p.Ensure(ns)
	s := p.State("lost-uid")
	if s.Phase != tenancy.PlaneLost || !strings.Contains(s.Message, p.DirOf("lost-uid")) || p.children["lost-uid"].wanted {
		t.Errorf("it is %+v", s)
	}
	if _, err := p.Client("lost-uid"); err == nil {
		t.Error("there is a client")
	}
	fresh := ns.DeepCopy()
	fresh.UID, fresh.Annotations = "fresh-uid", nil
	p.Ensure(fresh)
	if s := p.State("fresh-uid"); s.Phase != tenancy.PlaneStarting || !p.children["fresh-uid"].wanted {
		t.Errorf("a new one is %+v", s)
	}
}

func recordWarnings(ctx context.Context, to *[]string) context.Context {
	return warning.WithWarningRecorder(ctx, recorder(func(_, text string) { *to = append(*to, text) }))
}

type recorder func(agent, text string)

func (r recorder) AddWarning(agent, text string) { r(agent, text) }
