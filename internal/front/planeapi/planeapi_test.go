package planeapi

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/polder-kaas/polder/api/v1alpha1"
	"github.com/polder-kaas/polder/internal/front/planepath"
	"github.com/polder-kaas/polder/internal/plane/audit"
)

var begin = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func newTenant(name, namespace string) *v1alpha1.Tenant {
	t := &v1alpha1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.NewTime(begin)}}
	t.Spec = v1alpha1.TenantSpec{
		Namespace: namespace,
		Members: []v1alpha1.TenantMember{
			{Kind: v1alpha1.MemberGroup, Name: name + "-group", Role: v1alpha1.TenantAdmin},
			{Kind: v1alpha1.MemberUser, Name: name + "-user", Role: v1alpha1.TenantViewer},
		},
		Robots: []v1alpha1.TenantRobot{{Name: "ci", Role: v1alpha1.TenantEditor}},
	}
	return t
}

func TestBelongs(t *testing.T) {
	a := newTenant("a", "ns-a")
	for _, x := range []struct {
		user   string
		groups []string
		want   bool
	}{
		{"a-user", nil, true}, {"x", []string{"y", "a-group"}, true}, {"a-group", nil, false}, {"x", []string{"a-user"}, false}, {"", nil, false},
		{"system:serviceaccount:ns-a:robot-ci", nil, true}, {"system:serviceaccount:a:robot-ci", nil, false},
		{"system:serviceaccount:ns-a:ci", nil, false}, {"system:serviceaccount:ns-a:robot-other", nil, false},
	} {
		if got := Belongs(a, x.user, x.groups); got != x.want {
			t.Errorf("%s %v: %t", x.user, x.groups, got)
		}
	}
}

// ask asks a handler as somebody.
func ask(t *testing.T, h map[string]http.Handler, method, path, name string, groups ...string) (int, string) {
	t.Helper()
	r := httptest.NewRequest(method, path, http.NoBody)
	r = r.WithContext(request.WithUser(r.Context(), &user.DefaultInfo{Name: name, Groups: groups}))
	best := ""
	for p := range h {
		if strings.HasPrefix(r.URL.Path, p) && len(p) > len(best) {
			best = p
		}
	}
	w := httptest.NewRecorder()
	h[best].ServeHTTP(w, r)
	return w.Code, w.Body.String()
}

func newHandlers(t *testing.T, dir string) map[string]http.Handler {
	t.Helper()
	s := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(s); err != nil {
		t.Fatal(err)
	}
	c := fake.NewClientBuilder().WithScheme(s).WithObjects(newTenant("a", "ns-a"), newTenant("b", ""), newTenant("c", "")).Build()
	return Handlers(Config{
		Tenants: c, DataDir: dir, PlaneOf: func(*v1alpha1.Tenant) string { return filepath.Join(dir, "own") }, Status: func() (any, error) { return map[string]string{"phase": "ready"}, nil },
	})
}

func TestTenants(t *testing.T) {
	h := newHandlers(t, t.TempDir())
	names := func(path string, groups ...string) (out []string, next string) {
		t.Helper()
		code, body := ask(t, h, http.MethodGet, path, "x", groups...)
		var l TenantPage
		if err := json.Unmarshal([]byte(body), &l); err != nil || code != http.StatusOK {
			t.Fatalf("%d %v %s", code, err, body)
		}
		for _, x := range l.Items {
			out = append(out, x.Name)
		}
		return out, l.Continue
	}
	if got, next := names(planepath.Tenants, "a-group", "c-group"); fmt.Sprint(got) != "[a c]" || next != "" {
		t.Errorf("%v %s", got, next)
	}
	if got, next := names(planepath.Tenants+"?limit=1", "a-group", "c-group"); fmt.Sprint(got) != "[a]" || next != "a" {
		t.Errorf("%v %s", got, next)
	}
	if got, next := names(planepath.Tenants+"?limit=1&continue=a", "a-group", "c-group"); fmt.Sprint(got) != "[c]" || next != "" {
		t.Errorf("%v %s", got, next)
	}
	if got, _ := names(planepath.Tenants); len(got) > 0 {
		t.Errorf("somebody without a tenant has %v", got)
	}
	for path, want := range map[string]int{
		planepath.Tenants + "?limit=x": 400, planepath.Tenants + "?limit=0": 400, planepath.Audit + "none": 404, planepath.Audit + "a?limit=5000": 400, planepath.Status: 200,
	} {
		if code, body := ask(t, h, http.MethodGet, path, "x"); code != want {
			t.Errorf("%s: %d %s", path, code, body)
		}
	}
	if code, _ := ask(t, h, http.MethodPost, planepath.Tenants, "x"); code != http.StatusMethodNotAllowed {
		t.Errorf("POST: %d", code)
	}
}

// A tenant reads what was done to what it has: not what others have, nor who of them tried, nor what was before it.
func TestAudit(t *testing.T) {
	dir := t.TempDir()
	line := func(after time.Duration, who, namespace, resource, name string, code int) string {
		return fmt.Sprintf(`{"user":{"username":%q},"verb":"get","objectRef":{"resource":%q,"namespace":%q,"name":%q,"apiGroup":"polder.dev"},"responseStatus":{"code":%d,"message":"why"},"requestReceivedTimestamp":%q,"requestObject":{"spec":{"clusterName":"one","role":"admin"}}}`+"\n",
			who, resource, namespace, name, code, begin.Add(after).Format(time.RFC3339Nano))
	}
	text := line(-time.Second, "a-user", "ns-a", "workloadclusters", "of-an-earlier-tenant", 200) +
		line(time.Second, "a-user", "ns-a", "workloadclusters", "one", 200) +
		line(2*time.Second, "a-user", "ns-a", "workloadclusters", "refused", 403) +
		line(3*time.Second, "stranger", "ns-a", "workloadclusters", "tried", 403) +
		line(4*time.Second, "b-user", "b", "workloadclusters", "of-b", 200) +
		line(5*time.Second, "operator", "", "tenants", "a", 200) +
		line(6*time.Second, "operator", "", "tenants", "b", 200) +
		line(7*time.Second, "operator", "", "providers", "a", 200) +
		line(8*time.Second, "a-user", "ns-a", "kubeconfigrequests", "", 201)
	if err := os.Mkdir(audit.Dir(dir), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(audit.File(dir), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	h := newHandlers(t, dir)
	read := func(path string) string {
		t.Helper()
		code, body := ask(t, h, http.MethodGet, path, "x")
		var p AuditPage
		if err := json.Unmarshal([]byte(body), &p); err != nil || code != http.StatusOK || p.Truncated {
			t.Fatalf("%d %s", code, body)
		}
		var out []string
		for _, e := range p.Items {
			out = append(out, fmt.Sprint(e.User, " ", e.Object, " ", e.Status, e.Refusal, e.Details))
		}
		return strings.Join(out, "\n")
	}
	want := "a-user kubeconfigrequests.polder.dev 201admin of one\noperator tenants.polder.dev/a 200\na-user workloadclusters.polder.dev/refused 403why\na-user workloadclusters.polder.dev/one 200"
	if got := read(planepath.Audit + "a"); got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
	if got := read(planepath.Audit + "a?limit=1"); got != strings.Split(want, "\n")[0] {
		t.Errorf("%s", got)
	}
	// What was asked for, and why it was refused, is known by the tenant's own plane alone.
	own := filepath.Join(dir, "own")
	lines := func(id, resource, rest string) string {
		return fmt.Sprintf(`{"auditID":%q,"user":{"username":"a-user"},"verb":"create","objectRef":{"resource":%q,"namespace":"ns-a"},"requestReceivedTimestamp":%q,%s}`+"\n",
			id, resource, begin.Add(time.Minute).Format(time.RFC3339Nano), rest)
	}
	for d, text := range map[string]string{
		dir: lines("1", "kubeconfigrequests", `"responseStatus":{"code":201}`) + lines("2", "workloadclusters", `"responseStatus":{"code":422}`) +
			lines("3", "workloadclusters", `"responseStatus":{"code":201}`),
		own: lines("1", "kubeconfigrequests", `"responseStatus":{"code":201},"requestObject":{"spec":{"clusterName":"two","role":"view"}}`) +
			lines("2", "workloadclusters", `"responseStatus":{"code":422,"message":"too many"}`) + strings.ReplaceAll(lines("3", "workloadclusters", `"responseStatus":{"code":201}`), `"namespace":"ns-a"`, `"namespace":"ns-a","name":"three"`) + lines("4", "workloadclusters", `"responseStatus":{"code":200}`),
	} {
		if err := os.MkdirAll(audit.Dir(d), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(audit.File(d), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if got, want := read(planepath.Audit+"a"), "a-user workloadclusters/three 201\na-user workloadclusters 422too many\na-user kubeconfigrequests 201view of two"; got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
	// Who comes while another reads waits for his turn, and not for ever.
	a := &auditReader{turn: make(chan struct{}, 1)}
	a.turn <- struct{}{}
	a.tenants = fake.NewClientBuilder().WithScheme(func() *runtime.Scheme {
		s := runtime.NewScheme()
		_ = v1alpha1.AddToScheme(s)
		return s
	}()).WithObjects(newTenant("a", "")).Build()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	w := httptest.NewRecorder()
	a.serve(w, httptest.NewRequestWithContext(ctx, http.MethodGet, planepath.Audit+"a", http.NoBody))
	if w.Code != http.StatusTooManyRequests {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}
