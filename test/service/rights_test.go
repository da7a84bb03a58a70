package service

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/polder-kaas/polder/api/v1alpha1"
	"github.com/polder-kaas/polder/test/testenv"
)

var update = flag.Bool("update", false, "write the table of rights in the documentation anew")

// rightsDocument has the table of rights between two marks.
var rightsDocument = filepath.Join("..", "..", "docs", "operate", "tenants.md")

const (
	rightsBegin = "<!-- rights: begin; made by: go test ./test/service -run TestTenantRights -update -->\n"
	rightsEnd   = "<!-- rights: end -->\n"
)

var verbs = []string{"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"}

// special are verbs that are those of one kind alone.
var special = map[string][]string{
	"users": {"impersonate"}, "groups": {"impersonate"}, "serviceaccounts": {"impersonate"}, "clusterroles": {"bind", "escalate"},
	"roles": {"bind", "escalate"}, "signers": {"approve", "sign", "attest"},
}

// kind is one that the plane serves, or a part of one.
type kind struct {
	group, name string // name has its subresource after a slash
	namespaced  bool
}

func (k kind) String() string { return strings.TrimSuffix(k.name+"."+k.group, ".") }

// servedKinds are all kinds, with their parts.
func servedKinds(t *testing.T, cfg *rest.Config) (out []kind) {
	t.Helper()
	d, err := discovery.NewDiscoveryClientForConfig(cfg)
	if err != nil {
		t.Fatal(err)
	}
	_, lists, err := d.ServerGroupsAndResources()
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range lists {
		group, _, found := strings.Cut(l.GroupVersion, "/")
		if !found {
			group = ""
		}
		for _, r := range l.APIResources {
			if k := (kind{group, r.Name, r.Namespaced}); !slices.Contains(out, k) {
				out = append(out, k)
			}
		}
	}
	// Rights that are not verbs of requests.
	out = append(out, kind{"", "users", false}, kind{"", "groups", false}, kind{"certificates.k8s.io", "signers", false})
	slices.SortFunc(out, func(a, b kind) int { return strings.Compare(a.String(), b.String()) })
	return slices.Compact(out)
}

// allowedVerbs asks the plane what somebody may do with a kind.
func allowedVerbs(t *testing.T, c client.Client, k kind, namespace string) (out []string) {
	t.Helper()
	resource, sub, _ := strings.Cut(k.name, "/")
	for _, verb := range slices.Concat(verbs, special[resource]) {
		r := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
			ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: verb, Group: k.group, Resource: resource, Subresource: sub},
		}}
		if k.namespaced {
			r.Spec.ResourceAttributes.Namespace = namespace
		}
		if err := c.Create(t.Context(), r); err != nil {
			t.Error(err)
			return nil
		}
		if r.Status.Allowed {
			out = append(out, verb)
		}
	}
	return out
}

// TestTenantRights asks for every kind and verb what each role may do in its tenant, and writes it down as the
// documentation has it. In another tenant's namespace nobody may do anything, and nobody may read Secrets or any kind of
// Cluster API.
func TestTenantRights(t *testing.T) {
	p := shared.Get(t)
	newTenant(t, p, "rights", v1alpha1.TenantSpec{Members: members("rights")})
	newTenant(t, p, "rights-other", v1alpha1.TenantSpec{Members: members("rights-other")})
	people := []struct {
		name string
		cfg  *rest.Config
	}{
		{"everybody", as(t, p, "stranger")}, {"viewer", as(t, p, "rights-viewer")}, {"editor", as(t, p, "rights-editor")}, {"admin", as(t, p, "ann", "rights-admins")},
	}
	kinds := servedKinds(t, p.RESTConfig(t))
	if len(kinds) < 60 {
		t.Fatalf("only %d kinds", len(kinds))
	}
	rows := map[string][]string{}
	var mu sync.Mutex
	for i, who := range people {
		c := testenv.NewClient(t, who.cfg)
		var wg sync.WaitGroup
		todo := make(chan kind)
		for range 8 {
			wg.Go(func() {
				for k := range todo {
					own := allowedVerbs(t, c, k, "rights")
					if k.namespaced {
						if other := allowedVerbs(t, c, k, "rights-other"); len(other) > 0 {
							t.Errorf("%s may %v %s of another tenant", who.name, other, k)
						}
					}
					if len(own) == 0 {
						continue
					}
					if resource, _, _ := strings.Cut(k.name, "/"); resource == "secrets" || strings.HasSuffix(k.group, "cluster.x-k8s.io") {
						t.Errorf("%s may %v %s", who.name, own, k)
					}
					mu.Lock()
					if rows[k.String()] == nil {
						rows[k.String()] = make([]string, len(people))
					}
					rows[k.String()][i] = strings.Join(own, ", ")
					mu.Unlock()
				}
			})
		}
		for _, k := range kinds {
			todo <- k
		}
		close(todo)
		wg.Wait()
	}
	compareRights(t, rows)
}

// compareRights compares rights with the documentation, or writes them there.
func compareRights(t *testing.T, rows map[string][]string) {
	t.Helper()
	var table bytes.Buffer
	fmt.Fprintf(&table, "| kind | everybody | viewer, also | editor, also | admin, also |\n|---|---|---|---|---|\n")
	for _, k := range slices.Sorted(maps.Keys(rows)) {
		fmt.Fprintf(&table, "| `%s` ", k)
		have := map[string]bool{}
		for _, cell := range rows[k] {
			var more []string
			for _, v := range strings.Split(cell, ", ") {
				if v != "" && !have[v] {
					more = append(more, v)
				}
				have[v] = true
			}
			fmt.Fprintf(&table, "| %s ", strings.Join(more, ", "))
		}
		table.WriteString("|\n")
	}
	b, err := os.ReadFile(rightsDocument)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(b), rightsBegin)
	is, after, ok2 := strings.Cut(rest, rightsEnd)
	if !ok || !ok2 {
		t.Fatalf("%s has no place for the table", rightsDocument)
	}
	if is == table.String() {
		return
	}
	if !*update {
		t.Errorf("%s says otherwise; write it anew with -update:\n%s", rightsDocument, table.String())
		return
	}
	if err := os.WriteFile(rightsDocument, []byte(before+rightsBegin+table.String()+rightsEnd+after), 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestTenantsDoNotSeeEachOther reads objects of another tenant by all ways that there are: what is there and what is
// not is answered alike, to the byte.
func TestTenantsDoNotSeeEachOther(t *testing.T) {
	p := shared.Get(t)
	c := p.Client(t)
	awaitStacks(t, c)
	newTenant(t, p, "seen", v1alpha1.TenantSpec{Members: members("seen"), Title: "a secret title"})
	newTenant(t, p, "seer", v1alpha1.TenantSpec{Members: members("seer")})
	if err := c.Create(t.Context(), newCluster("seen", "there", "", 0)); err != nil {
		t.Fatal(err)
	}
	request := func(cfg *rest.Config, verb, path, body string) (int, string) {
		t.Helper()
		hc, err := rest.HTTPClientFor(cfg)
		if err != nil {
			t.Fatal(err)
		}
		r, err := http.NewRequestWithContext(t.Context(), verb, cfg.Host+strings.TrimSuffix(path, "/"), strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", map[string]string{"PATCH": "application/merge-patch+json"}[verb])
		if verb != "PATCH" {
			r.Header.Set("Content-Type", "application/json")
		}
		answer, err := hc.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		b, err := io.ReadAll(answer.Body)
		if err != nil {
			t.Fatal(err)
		}
		return answer.StatusCode, string(b)
	}
	const clusters, tenants = "/apis/polder.dev/v1alpha1/namespaces/%s/workloadclusters/%s", "/apis/polder.dev/v1alpha1/tenants/%s"
	for _, who := range []string{"seer-viewer", "seer-editor", "ann"} {
		cfg := as(t, p, who, map[string]string{"ann": "seer-admins"}[who])
		if who != "ann" {
			cfg = as(t, p, who)
		}
		for name, x := range map[string]struct{ verb, there, missing, body string }{
			"get a cluster":         {"GET", fmt.Sprintf(clusters, "seen", "there"), fmt.Sprintf(clusters, "gone", "there"), ""},
			"get another":           {"GET", fmt.Sprintf(clusters, "seen", "there"), fmt.Sprintf(clusters, "seen", "gone"), ""},
			"list":                  {"GET", fmt.Sprintf(clusters, "seen", ""), fmt.Sprintf(clusters, "gone", ""), ""},
			"watch":                 {"GET", fmt.Sprintf(clusters, "seen", "") + "?watch=true", fmt.Sprintf(clusters, "gone", "") + "?watch=true", ""},
			"delete":                {"DELETE", fmt.Sprintf(clusters, "seen", "there"), fmt.Sprintf(clusters, "gone", "there"), ""},
			"delete all":            {"DELETE", fmt.Sprintf(clusters, "seen", ""), fmt.Sprintf(clusters, "gone", ""), ""},
			"change":                {"PATCH", fmt.Sprintf(clusters, "seen", "there"), fmt.Sprintf(clusters, "seen", "gone"), `{"spec":{"paused":false}}`},
			"create one of a name":  {"POST", fmt.Sprintf(clusters, "seen", ""), fmt.Sprintf(clusters, "gone", ""), `{"apiVersion":"polder.dev/v1alpha1","kind":"WorkloadCluster","metadata":{"name":"there"},"spec":{"stack":{"name":"scs"}}}`},
			"the status":            {"GET", fmt.Sprintf(clusters, "seen", "there/status"), fmt.Sprintf(clusters, "seen", "gone/status"), ""},
			"the tenant":            {"GET", fmt.Sprintf(tenants, "seen"), fmt.Sprintf(tenants, "gone"), ""},
			"change the tenant":     {"PATCH", fmt.Sprintf(tenants, "seen"), fmt.Sprintf(tenants, "gone"), `{"spec":{"title":"x"}}`},
			"the namespace":         {"GET", "/api/v1/namespaces/seen", "/api/v1/namespaces/gone", ""},
			"events":                {"GET", "/api/v1/namespaces/seen/events", "/api/v1/namespaces/gone/events", ""},
			"the quota":             {"GET", "/api/v1/namespaces/seen/resourcequotas/polder-tenant", "/api/v1/namespaces/gone/resourcequotas/polder-tenant", ""},
			"machines":              {"GET", "/polder/machines/seen/there", "/polder/machines/gone/there", ""},
			"machines by a detour":  {"GET", "/polder/machines/seer/../seen/there", "/polder/machines/seer/../gone/there", ""},
			"the record":            {"GET", "/polder/audit/seen", "/polder/audit/gone", ""},
			"a token":               {"POST", "/api/v1/namespaces/seen/serviceaccounts/default/token", "/api/v1/namespaces/gone/serviceaccounts/default/token", `{"apiVersion":"authentication.k8s.io/v1","kind":"TokenRequest","spec":{}}`},
			"a kubeconfig":          {"POST", "/apis/polder.dev/v1alpha1/namespaces/seen/kubeconfigrequests", "/apis/polder.dev/v1alpha1/namespaces/gone/kubeconfigrequests", `{"apiVersion":"polder.dev/v1alpha1","kind":"KubeconfigRequest","metadata":{"name":"x"},"spec":{"clusterName":"there"}}`},
			"a review of namespace": {"POST", "/apis/authorization.k8s.io/v1/namespaces/seen/localsubjectaccessreviews", "/apis/authorization.k8s.io/v1/namespaces/gone/localsubjectaccessreviews", `{"apiVersion":"authorization.k8s.io/v1","kind":"LocalSubjectAccessReview","metadata":{"namespace":"seen"},"spec":{"user":"x"}}`},
		} {
			code, text := request(cfg, x.verb, x.there, x.body)
			code2, text2 := request(cfg, x.verb, x.missing, strings.ReplaceAll(x.body, "seen", "gone"))
			like := strings.NewReplacer("seen", "gone", "there", "gone").Replace
			if code != code2 || like(text) != like(text2) {
				t.Errorf("%s as %s: %d %s\nand of nothing: %d %s", name, who, code, text, code2, text2)
			}
			if code < 400 {
				t.Errorf("%s as %s: %d %s", name, who, code, text)
			}
		}
		for _, path := range []string{"/apis/polder.dev/v1alpha1/tenants", "/apis/polder.dev/v1alpha1/workloadclusters", "/api/v1/namespaces", "/metrics", "/api/v1/events"} {
			if code, text := request(cfg, "GET", path, ""); code != 403 {
				t.Errorf("%s as %s: %d %.300s", path, who, code, text)
			}
		}
		for _, path := range []string{"/apis/polder.dev/v1alpha1/providers", "/apis/clusterstack.x-k8s.io/v1alpha1/namespaces/polder-catalogue/clusterstacks", "/readyz?verbose=", "/openapi/v3", "/apis", "/version"} {
			if code, text := request(cfg, "GET", path, ""); code >= 500 || strings.Contains(text, "seen") || strings.Contains(text, "secret title") {
				t.Errorf("%s as %s: %d %.300s", path, who, code, text)
			}
		}
	}
	// A request of one's own that names another's cluster.
	editor := testenv.NewClient(t, as(t, p, "seer-editor"))
	ask := func(name string) error {
		return editor.Create(t.Context(), &v1alpha1.KubeconfigRequest{ObjectMeta: metav1.ObjectMeta{Namespace: "seer", Name: "x"}, Spec: v1alpha1.KubeconfigRequestSpec{ClusterName: name, Role: v1alpha1.RoleViewer, ExpirationSeconds: 600}})
	}
	there, gone := ask("there"), ask("gone")
	if !apierrors.IsForbidden(there) || strings.ReplaceAll(there.Error(), "there ", "gone ") != strings.ReplaceAll(gone.Error(), "there ", "gone ") {
		t.Errorf("a kubeconfig of another's cluster: %v\nand of nothing: %v", there, gone)
	}
}
