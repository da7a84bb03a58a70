package service

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/polder-kaas/polder/api/v1alpha1"
	"github.com/polder-kaas/polder/internal/files/certificate"
	"github.com/polder-kaas/polder/test/testenv"
)

// restClient asks the REST API as somebody.
type restClient struct {
	url   string // with /v1
	token string
	http  *http.Client
}

// restAs returns a client for somebody whom the issuer knows.
func restAs(t testing.TB, p *testenv.Plane, name string, groups ...string) restClient {
	t.Helper()
	return restWith(t, p, issuerOfShared.token(t, time.Hour, name, groups...))
}

func restWith(t testing.TB, p *testenv.Plane, token string) restClient {
	t.Helper()
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(p.RESTConfig(t).CAData) {
		t.Fatal("the plane has no certificate authority")
	}
	tr := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}, ForceAttemptHTTP2: true, DisableCompression: true}
	t.Cleanup(tr.CloseIdleConnections)
	return restClient{url: p.Status(t).REST, token: token, http: &http.Client{Transport: tr}}
}

// restAnswer is what the API has said.
type restAnswer struct {
	code   int
	header http.Header
	body   string
}

func (a restAnswer) String() string { return fmt.Sprintf("%d %.1000s", a.code, a.body) }

// into reads the body.
func (a restAnswer) into(t testing.TB, v any) {
	t.Helper()
	if err := json.Unmarshal([]byte(a.body), v); err != nil {
		t.Fatalf("%v: %s", err, a)
	}
}

// do sends a request; headers are pairs.
func (c restClient) do(t testing.TB, method, path, body string, headers ...string) restAnswer {
	t.Helper()
	a, err := c.try(t.Context(), method, path, body, headers...)
	if err != nil {
		t.Fatalf("%s %s: %v", method, path, err)
	}
	return a
}

func (c restClient) try(ctx context.Context, method, path, body string, headers ...string) (restAnswer, error) {
	req, err := http.NewRequestWithContext(ctx, method, c.url+path, strings.NewReader(body))
	if err != nil {
		return restAnswer{}, err
	}
	if c.token != "" {
		req.Header.Set("Authorization", "Bearer "+c.token)
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	res, err := c.http.Do(req)
	if err != nil {
		return restAnswer{}, err
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	return restAnswer{res.StatusCode, res.Header, string(b)}, err
}

// want is do, and fails unless the answer has a code and words.
func (c restClient) want(t testing.TB, code int, words, method, path, body string, headers ...string) restAnswer {
	t.Helper()
	a := c.do(t, method, path, body, headers...)
	if a.code != code || !strings.Contains(a.body, words) {
		t.Fatalf("%s %s: want %d and %q, got %s", method, path, code, words, a)
	}
	if problem := a.header.Get("Content-Type") == "application/problem+json"; problem != (code >= 400) {
		t.Errorf("%s %s: %d of type %q", method, path, code, a.header.Get("Content-Type"))
	}
	return a
}

// restTenant is a tenant with one of each role, whom the issuer knows.
func restTenant(t testing.TB, p *testenv.Plane, name string) *v1alpha1.Tenant {
	t.Helper()
	return newTenant(t, p, name, restSpec(name))
}

// restSpec is that of a tenant with one of each role.
func restSpec(name string) v1alpha1.TenantSpec {
	return v1alpha1.TenantSpec{Members: []v1alpha1.TenantMember{
		{Kind: v1alpha1.MemberGroup, Name: "oidc:" + name + "-admins", Role: v1alpha1.TenantAdmin},
		{Kind: v1alpha1.MemberUser, Name: "oidc:" + name + "-editor", Role: v1alpha1.TenantEditor},
		{Kind: v1alpha1.MemberUser, Name: "oidc:" + name + "-viewer", Role: v1alpha1.TenantViewer},
	}}
}

// restOperator is a client of somebody who runs the plane.
func restOperator(t testing.TB, p *testenv.Plane) restClient {
	t.Helper()
	b := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "rest-operator-"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "oidc:operator-" + t.Name()}},
	}
	c := p.Client(t)
	if err := c.Create(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Delete(context.WithoutCancel(t.Context()), b) })
	return restAs(t, p, "operator-"+t.Name())
}

// clusterFile is cluster-values.yaml of a cluster that is paused, so that it costs nothing.
func clusterFile(name string) string {
	return "# a comment\napiVersion: polder.dev/v1alpha1\nkind: WorkloadCluster\nmetadata: {name: " + name + ", labels: {a: b}}\n" +
		"spec:\n  provider: local\n  paused: true\n  stack: {name: scs, kubernetesVersion: \"1.36\"}\n"
}

const yamlType, jsonType = "application/yaml", "application/json"

// object is what tests read of a cluster.
type object struct {
	Metadata struct {
		Name, UID, ResourceVersion string
		Generation                 int64
		Labels, Annotations        map[string]string
	}
	Spec   v1alpha1.WorkloadClusterSpec
	Status v1alpha1.WorkloadClusterStatus
}

// TestRESTClusters follows a cluster through all that can be done with it.
func TestRESTClusters(t *testing.T) {
	t.Parallel()
	p := shared.Get(t)
	awaitStacks(t, p.Client(t))
	restTenant(t, p, "rest-a")
	ed, vi := restAs(t, p, "rest-a-editor"), restAs(t, p, "rest-a-viewer")
	const all = "/tenants/rest-a/clusters"
	ed.want(t, 200, `"items":[]`, "GET", all, "")

	made := ed.want(t, 201, `"name":"one"`, "POST", all, clusterFile("one"), "Content-Type", yamlType, "Idempotency-Key", "k1")
	if l := made.header.Get("Location"); l != "/v1"+all+"/one" {
		t.Errorf("Location is %q", l)
	}
	var first, again object
	made.into(t, &first)
	if first.Metadata.Labels["a"] != "b" || len(first.Metadata.Annotations) > 0 || strings.Contains(made.body, "managedFields") {
		t.Errorf("%s", made)
	}
	ed.want(t, 201, "", "POST", all, clusterFile("one"), "Content-Type", yamlType, "Idempotency-Key", "k1").into(t, &again)
	if again.Metadata.UID != first.Metadata.UID {
		t.Errorf("the same request has made another cluster")
	}
	ed.want(t, 422, "use a new key", "POST", all, strings.Replace(clusterFile("one"), "a: b", "a: c", 1), "Content-Type", yamlType, "Idempotency-Key", "k1")
	ed.want(t, 409, "AlreadyExists", "POST", all, clusterFile("one"), "Content-Type", yamlType, "Idempotency-Key", "k2")
	ed.want(t, 409, "AlreadyExists", "POST", all, clusterFile("one"), "Content-Type", yamlType)
	vi.want(t, 403, "may not create", "POST", all, clusterFile("two"), "Content-Type", yamlType)
	ed.want(t, 201, `"two"`, "POST", all+"?dryRun=true", clusterFile("two"), "Content-Type", yamlType)
	ed.want(t, 404, "there is no cluster two in tenant rest-a", "GET", all+"/two", "")

	got := vi.want(t, 200, `"one"`, "GET", all+"/one", "")
	vi.want(t, 304, "", "GET", all+"/one", "", "If-None-Match", got.header.Get("ETag"))

	// What was read can be written back, and changes nothing; so does the file, again and again.
	testenv.Eventually(t, wait, func() error { // its status may change meanwhile
		got = vi.do(t, "GET", all+"/one", "")
		if a := ed.do(t, "PUT", all+"/one", got.body, "Content-Type", jsonType, "If-Match", got.header.Get("ETag")); a.code != 200 {
			return fmt.Errorf("%s", a)
		}
		return nil
	})
	put := ed.want(t, 200, "", "PUT", all+"/one", clusterFile("one"), "Content-Type", yamlType)
	var after object
	put.into(t, &after)
	if after.Metadata.Generation != first.Metadata.Generation || after.Metadata.UID != first.Metadata.UID {
		t.Errorf("written back, it is another: %+v %+v", first.Metadata, after.Metadata)
	}
	// Still the cluster of the first request: a key is not forgotten when the file is written again.
	ed.want(t, 201, first.Metadata.UID, "POST", all, clusterFile("one"), "Content-Type", yamlType, "Idempotency-Key", "k1")

	after = object{}
	changed := strings.Replace(clusterFile("one"), "{a: b}", "{c: d}", 1) + "  workers: [{name: w, replicas: 3, machineType: SCS-2V-4}]\n"
	ed.want(t, 200, "", "PUT", all+"/one", changed, "Content-Type", yamlType).into(t, &after)
	if len(after.Spec.Workers) != 1 || *after.Spec.Workers[0].Replicas != 3 || after.Metadata.Labels["c"] != "d" || after.Metadata.Labels["a"] != "" {
		t.Errorf("%+v", after)
	}
	ed.want(t, 412, "changed meanwhile", "PUT", all+"/one", clusterFile("one"), "Content-Type", yamlType, "If-Match", got.header.Get("ETag"))
	ed.want(t, 412, "changed meanwhile", "PUT", all+"/one", got.body, "Content-Type", jsonType) // its resourceVersion is an old one
	ed.want(t, 412, "already", "PUT", all+"/one", clusterFile("one"), "Content-Type", yamlType, "If-None-Match", "*")
	ed.want(t, 412, "there is no cluster", "PUT", all+"/two", clusterFile("two"), "Content-Type", yamlType, "If-Match", "*")
	ed.want(t, 201, "", "PUT", all+"/two", clusterFile("two"), "Content-Type", yamlType, "If-None-Match", "*")
	ed.want(t, 422, "it is not the name in the path", "PUT", all+"/three", clusterFile("two"), "Content-Type", yamlType)

	ed.want(t, 200, `"replicas":2`, "PATCH", all+"/one", `{"spec":{"workers":[{"name":"w","replicas":2}]}}`, "Content-Type", "application/merge-patch+json")
	ed.want(t, 412, "changed meanwhile", "PATCH", all+"/one", `{"spec":{"paused":true}}`, "Content-Type", "application/merge-patch+json", "If-Match", put.header.Get("ETag"))
	testenv.Eventually(t, wait, func() error { // its status may change meanwhile
		tag := ed.do(t, "GET", all+"/one", "").header.Get("ETag")
		if a := ed.do(t, "PATCH", all+"/one", `{"metadata":{"labels":{"e":"f"}}}`, "Content-Type", "application/merge-patch+json", "If-Match", tag); a.code != 200 {
			return fmt.Errorf("%s", a)
		}
		return nil
	})
	ed.want(t, 422, "only spec, and labels", "PATCH", all+"/one", `{"status":{"phase":"Ready"}}`, "Content-Type", "application/merge-patch+json")
	ed.want(t, 422, "only labels and annotations", "PATCH", all+"/one", `{"metadata":{"finalizers":[]}}`, "Content-Type", "application/merge-patch+json")

	var page struct {
		Items         []object
		NextPageToken string
	}
	vi.want(t, 200, "", "GET", all+"?pageSize=1", "").into(t, &page)
	if len(page.Items) != 1 || page.Items[0].Metadata.Name != "one" || page.NextPageToken == "" {
		t.Errorf("%+v", page)
	}
	vi.want(t, 200, "", "GET", all+"?pageSize=1&pageToken="+page.NextPageToken, "").into(t, &page)
	if len(page.Items) != 1 || page.Items[0].Metadata.Name != "two" {
		t.Errorf("%+v", page)
	}
	ed.want(t, 412, "", "DELETE", all+"/two?uid="+first.Metadata.UID, "")
	vi.want(t, 403, "may not delete", "DELETE", all+"/two", "")
	ed.want(t, 202, "", "DELETE", all+"/two", "")
	testenv.Eventually(t, wait, func() error {
		if a := ed.do(t, "GET", all+"/two", ""); a.code != 404 {
			return fmt.Errorf("%s", a)
		}
		return nil
	})
}

// TestRESTBadInput sends what cannot be taken: each is one sentence that says what is wrong and where.
func TestRESTBadInput(t *testing.T) {
	t.Parallel()
	p := shared.Get(t)
	awaitStacks(t, p.Client(t))
	restTenant(t, p, "rest-b")
	ed := restAs(t, p, "rest-b-editor")
	const all = "/tenants/rest-b/clusters"
	for _, x := range []struct {
		code             int
		words, body, typ string
	}{
		{400, "request body is required", "", yamlType},
		{400, "the body is empty", "# nothing\n---\n", yamlType},
		{400, "the body is no object", "[]", jsonType},
		{400, "the body is no object", "a text", yamlType},
		{400, "the body is no YAML", "a: [", yamlType},
		{400, "the body cannot be read", `{"a":`, jsonType},
		{400, `duplicate field \"spec\"`, `{"spec":{},"spec":{}}`, jsonType},
		{400, `key \"spec\" already set`, "spec: {}\nspec: {}\n", yamlType},
		{400, "more than one object", clusterFile("a") + "---\n" + clusterFile("b"), yamlType},
		{415, "is not taken; send application/yaml or application/json", "<a/>", "text/xml"},
		{415, "is not taken", "a=b", "application/x-www-form-urlencoded"},
		{422, "write WorkloadCluster, or leave it out", strings.Replace(clusterFile("a"), "kind: WorkloadCluster", "kind: Cluster", 1), yamlType},
		{422, "write polder.dev/v1alpha1", strings.Replace(clusterFile("a"), "v1alpha1", "v9", 1), yamlType},
		{422, "a cluster needs a name", "spec: {stack: {name: scs}}", yamlType},
		{422, "metadata.name: it is no text", "metadata: {name: 5}", yamlType},
		{422, "that of another tenant", "metadata: {name: a, namespace: default}", yamlType},
		{422, "metadata.finalizers: it cannot be set here", "metadata: {name: a, finalizers: [x/y]}", yamlType},
		{422, "metadata.ownerReferences: it cannot", "metadata: {name: a, ownerReferences: []}", yamlType},
		{400, `unknown field \"spec.paussed\"`, strings.Replace(clusterFile("a"), "paused", "paussed", 1), yamlType},
		{422, `"location":"spec.stack.kubernetesVersion"`, strings.Replace(clusterFile("a"), "1.36", "1.99", 1), yamlType},
		{422, `"location":"spec.parameters`, clusterFile("a") + "  parameters: {nope: 1}\n", yamlType},
		{413, "", strings.Repeat("#", 1<<20+1), yamlType},
		{422, "", "metadata: {name: " + strings.Repeat("a", 300) + "}\nspec: {stack: {name: scs}}", yamlType},
	} {
		a := ed.do(t, "POST", all, x.body, "Content-Type", x.typ)
		if a.code != x.code || !strings.Contains(a.body, x.words) || a.header.Get("Content-Type") != "application/problem+json" {
			t.Errorf("%.60q: want %d and %q, got %s", x.body, x.code, x.words, a)
		}
	}
	ed.want(t, 422, "unknown query parameter", "GET", all+"?page=2", "")
	ed.want(t, 400, "", "GET", all+"?pageToken=forged", "")
	ed.want(t, 422, "", "GET", all+"?pageSize=100000", "")
	ed.want(t, 400, "If-Match is one ETag", "DELETE", all+"/a", "", "If-Match", `W/"a", "b"`)
	ed.want(t, 405, "takes only", "POST", all+"/a", "{}")
	ed.want(t, 404, "there is no such path", "GET", "/nothing", "")
	ed.want(t, 200, `"items":[]`, "GET", all, "") // nothing was half made
}

// TestRESTTenants is about what is beside clusters: who one is, tenants, members, robots, quota, the record.
func TestRESTTenants(t *testing.T) {
	t.Parallel()
	p := shared.Get(t)
	restTenant(t, p, "rest-c")
	restTenant(t, p, "rest-c-other")
	ad, vi, op := restAs(t, p, "ann", "rest-c-admins"), restAs(t, p, "rest-c-viewer"), restOperator(t, p)
	sayWord(t, ad.want(t, 200, `"username":"oidc:ann"`, "GET", "/me", "").body, `"oidc:rest-c-admins"`)
	var l struct{ Items []object }
	for who, c := range map[string]restClient{"admin": ad, "viewer": vi} {
		if c.want(t, 200, "", "GET", "/tenants", "").into(t, &l); len(l.Items) != 1 || l.Items[0].Metadata.Name != "rest-c" {
			t.Errorf("%s sees %+v", who, l)
		}
	}
	if op.want(t, 200, "", "GET", "/tenants", "").into(t, &l); len(l.Items) < 2 {
		t.Errorf("the operator sees %+v", l)
	}
	restAs(t, p, "both", "rest-c-admins", "rest-c-other-admins").want(t, 200, `"nextPageToken":"rest-c"`, "GET", "/tenants?pageSize=1", "")
	restAs(t, p, "both", "rest-c-admins", "rest-c-other-admins").want(t, 200, `"name":"rest-c-other"`, "GET", "/tenants?pageSize=1&pageToken=rest-c", "")
	restAs(t, p, "nobody").want(t, 200, `"items":[]`, "GET", "/tenants", "")
	testenv.Eventually(t, wait, func() error { // its controller counts a moment later
		if a := vi.do(t, "GET", "/tenants/rest-c/quota", ""); !strings.Contains(a.body, `{"name":"machines","limit":"100","used":"0"}`) {
			return fmt.Errorf("%s", a)
		}
		return nil
	})

	m := vi.want(t, 200, `{"kind":"User","name":"oidc:rest-c-viewer","role":"viewer"}`, "GET", "/tenants/rest-c/members", "")
	more := strings.Replace(m.body, `"items":[`, `"items":[{"kind":"User","name":"oidc:eve","role":"viewer"},`, 1)
	vi.want(t, 403, "", "PUT", "/tenants/rest-c/members", more, "Content-Type", jsonType, "If-Match", m.header.Get("ETag"))
	ad.want(t, 428, "If-Match", "PUT", "/tenants/rest-c/members", more, "Content-Type", jsonType)
	ad.want(t, 200, "oidc:eve", "PUT", "/tenants/rest-c/members", more, "Content-Type", jsonType, "If-Match", m.header.Get("ETag"))
	ad.want(t, 412, "changed meanwhile", "PUT", "/tenants/rest-c/members", m.body, "Content-Type", jsonType, "If-Match", m.header.Get("ETag"))
	ad.want(t, 422, "role", "PUT", "/tenants/rest-c/members", strings.Replace(more, `"role":"viewer"`, `"role":"god"`, 1), "Content-Type", jsonType, "If-Match", `"1"`)
	testenv.Eventually(t, wait, func() error {
		if a := restAs(t, p, "eve").do(t, "GET", "/tenants/rest-c/clusters", ""); a.code != 200 {
			return fmt.Errorf("%s", a)
		}
		return nil
	})

	vi.want(t, 403, "", "PUT", "/tenants/rest-c/robots/ci", `{"role":"editor"}`, "Content-Type", jsonType)
	ad.want(t, 404, "there is no robot ci", "POST", "/tenants/rest-c/robots/ci/tokens", `{}`, "Content-Type", jsonType)
	ad.want(t, 200, `"name":"ci"`, "PUT", "/tenants/rest-c/robots/ci", `{"role":"editor"}`, "Content-Type", jsonType)
	vi.want(t, 403, "", "POST", "/tenants/rest-c/robots/ci/tokens", `{}`, "Content-Type", jsonType)
	ad.want(t, 422, "", "POST", "/tenants/rest-c/robots/ci/tokens", `{"expirationSeconds":99999999}`, "Content-Type", jsonType)
	var token struct{ Token string }
	ad.want(t, 201, "expirationTime", "POST", "/tenants/rest-c/robots/ci/tokens", `{"expirationSeconds":3600}`, "Content-Type", jsonType).into(t, &token)
	robot := restWith(t, p, token.Token)
	robot.want(t, 200, `"rest-c"`, "GET", "/tenants", "")
	testenv.Eventually(t, wait, func() error { // the API server learns of rights a moment later
		if a := robot.do(t, "GET", "/tenants/rest-c/robots", ""); !strings.Contains(a.body, `{"name":"ci","role":"editor"}`) {
			return fmt.Errorf("%s", a)
		}
		return nil
	})
	robot.want(t, 403, "only admins", "GET", "/tenants/rest-c/audit", "")
	ad.want(t, 204, "", "DELETE", "/tenants/rest-c/robots/ci", "")
	testenv.Eventually(t, wait, func() error {
		if a := robot.do(t, "GET", "/me", ""); a.code != 401 {
			return fmt.Errorf("the token of a robot that was taken out: %s", a)
		}
		return nil
	})

	record := ad.want(t, 200, `"verb":"update","object":"tenants.polder.dev/rest-c"`, "GET", "/tenants/rest-c/audit?limit=1000", "")
	sayWord(t, record.body, `"user":"oidc:ann"`, `"user":"oidc:rest-c-viewer"`, `"status":403`, "serviceaccounts/token")
	// Others who were refused, and what others have, are not in it.
	restAs(t, p, "stranger").want(t, 404, "", "GET", "/tenants/rest-c/clusters", "")
	record = ad.want(t, 200, "", "GET", "/tenants/rest-c/audit?limit=1000", "")
	if strings.Contains(record.body, "stranger") || strings.Contains(record.body, "rest-c-other") {
		t.Errorf("the record tells of others: %s", record)
	}
	if a := ad.want(t, 200, "", "GET", "/tenants/rest-c/audit?limit=1", ""); strings.Count(a.body, `"time"`) != 1 {
		t.Errorf("%s", a)
	}
}

// TestRESTOffers reads what clusters can be made of, and how the plane is.
func TestRESTOffers(t *testing.T) {
	t.Parallel()
	p := shared.Get(t)
	awaitStacks(t, p.Client(t))
	restTenant(t, p, "rest-d")
	vi, op := restAs(t, p, "rest-d-viewer"), restOperator(t, p)
	for _, c := range []restClient{vi, op} {
		c.want(t, 200, `"kubernetesVersion":"1.36"`, "GET", "/stacks", "")
		c.want(t, 200, `"items":[]`, "GET", "/stacks?tenant=rest-d", "")
		c.want(t, 200, `"certSANs"`, "GET", "/stacks/scs/schema?kubernetes=1.36", "")
		c.want(t, 404, "there is no stack nope", "GET", "/stacks/nope/schema", "")
		c.want(t, 200, `"name":"local"`, "GET", "/providers", "")
	}
	vi.want(t, 403, "", "GET", "/plane", "")
	vi.want(t, 403, "", "GET", "/releases", "")
	sayWord(t, op.want(t, 200, `"phase":"ready"`, "GET", "/plane", "").body, `"components"`, `"freeBytes"`, `"server-ca.pem"`, `"expirationTime"`)
	op.want(t, 200, `"namespace":"polder-catalogue"`, "GET", "/releases", "")
	restWith(t, p, "").want(t, 200, `"kubernetes"`, "GET", "/version", "")
	restWith(t, p, "").want(t, 200, `"openapi":"3.1.0"`, "GET", "/openapi.json", "")
	restWith(t, p, "").want(t, 200, `"openapi":"3.0.3"`, "GET", "/openapi-3.0.json", "")
}

// watchEvents reads server-sent events into a channel until the connection ends.
func watchEvents(t testing.TB, c restClient, path string) <-chan [2]string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, c.url+path, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+c.token)
	res, err := c.http.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	if res.StatusCode != 200 || res.Header.Get("Content-Type") != "text/event-stream" {
		t.Fatalf("%d %s", res.StatusCode, res.Header)
	}
	out := make(chan [2]string, 1000)
	go func() {
		defer close(out)
		defer res.Body.Close()
		s := bufio.NewScanner(res.Body)
		s.Buffer(nil, 1<<20)
		event := ""
		for s.Scan() {
			if v, ok := strings.CutPrefix(s.Text(), "event: "); ok {
				event = v
			}
			if v, ok := strings.CutPrefix(s.Text(), "data: "); ok {
				out <- [2]string{event, v}
			}
		}
	}()
	return out
}

// awaitEvent waits for an event with some words.
func awaitEvent(t testing.TB, from <-chan [2]string, event string, words ...string) {
	t.Helper()
	deadline := time.After(wait)
	for {
		select {
		case <-deadline:
			t.Fatalf("there was no event %s with %q", event, words)
		case e, ok := <-from:
			if !ok {
				t.Fatalf("it ended before an event %s with %q", event, words)
			}
			found := e[0] == event
			for _, w := range words {
				found = found && strings.Contains(e[1], w)
			}
			if found {
				return
			}
		}
	}
}

// TestRESTWatch follows clusters, sees who loses their rights cut off, and a refusal before anything is streamed.
func TestRESTWatch(t *testing.T) {
	t.Parallel()
	p := shared.Get(t)
	awaitStacks(t, p.Client(t))
	restTenant(t, p, "rest-e")
	ed, vi := restAs(t, p, "rest-e-editor"), restAs(t, p, "rest-e-viewer")
	const all = "/tenants/rest-e/clusters"
	ed.want(t, 201, "", "POST", all, clusterFile("before"), "Content-Type", yamlType)
	restAs(t, p, "stranger").want(t, 404, "there is no tenant rest-e", "GET", all+":watch", "")
	events := watchEvents(t, vi, all+":watch")
	awaitEvent(t, events, "cluster", `"ADDED"`, `"name":"before"`)
	awaitEvent(t, events, "synced")
	ed.want(t, 201, "", "POST", all, clusterFile("one"), "Content-Type", yamlType)
	awaitEvent(t, events, "cluster", `"ADDED"`, `"name":"one"`)
	awaitEvent(t, events, "cluster", `"MODIFIED"`, `"name":"one"`, `"phase":"Paused"`)
	ed.want(t, 202, "", "DELETE", all+"/one", "")
	awaitEvent(t, events, "cluster", `"DELETED"`, `"name":"one"`)
}

var restWatch = flag.Duration("rest.watch", 65*time.Second, "how long TestRESTWatchLong watches")

// TestRESTWatchLong keeps watches open for longer than any request may take, with both versions of HTTP: at the end they
// still tell what happens.
func TestRESTWatchLong(t *testing.T) {
	t.Parallel()
	p := shared.Get(t)
	awaitStacks(t, p.Client(t))
	restTenant(t, p, "rest-w")
	ed, now, old := restAs(t, p, "rest-w-editor"), restAs(t, p, "rest-w-viewer"), restAs(t, p, "rest-w-viewer")
	tr := old.http.Transport.(*http.Transport).Clone()
	tr.ForceAttemptHTTP2, tr.TLSClientConfig.NextProtos = false, []string{"http/1.1"}
	t.Cleanup(tr.CloseIdleConnections)
	old.http = &http.Client{Transport: tr}
	all := []<-chan [2]string{watchEvents(t, now, "/tenants/rest-w/clusters:watch"), watchEvents(t, old, "/tenants/rest-w/clusters:watch")}
	for _, events := range all {
		awaitEvent(t, events, "synced")
	}
	for begin, i := time.Now(), 0; ; i++ {
		name := fmt.Sprint("c", i)
		ed.want(t, 201, "", "PUT", "/tenants/rest-w/clusters/"+name, clusterFile(name), "Content-Type", yamlType)
		for _, events := range all {
			awaitEvent(t, events, "cluster", `"ADDED"`, `"name":"`+name+`"`)
		}
		ed.want(t, 202, "", "DELETE", "/tenants/rest-w/clusters/"+name, "")
		for _, events := range all {
			awaitEvent(t, events, "cluster", `"DELETED"`, `"name":"`+name+`"`)
		}
		left := *restWatch - time.Since(begin)
		if left <= 0 {
			return
		}
		select { // nothing is told for a while, so that only what keeps it alive is sent
		case <-time.After(min(left, max(*restWatch/3, 20*time.Second))):
		case <-t.Context().Done():
		}
	}
}

// TestRESTKubeconfig gets access to a cluster that runs, with a key of one's own and with one that is made.
func TestRESTKubeconfig(t *testing.T) {
	t.Parallel()
	p := shared.Get(t)
	awaitStacks(t, p.Client(t))
	restTenant(t, p, "rest-f")
	ed, vi := restAs(t, p, "rest-f-editor"), restAs(t, p, "rest-f-viewer")
	const cluster = "/tenants/rest-f/clusters/one"
	ed.want(t, 201, "", "PUT", cluster, strings.Replace(clusterFile("one"), "  paused: true\n", "", 1), "Content-Type", yamlType)
	testenv.Eventually(t, wait, func() error {
		var o object
		ed.want(t, 200, "", "GET", cluster, "").into(t, &o)
		if o.Status.Phase != v1alpha1.PhaseReady {
			return fmt.Errorf("%s: %s", o.Status.Phase, o.Status.Message)
		}
		return nil
	})
	var k struct{ Kubeconfig, Certificate, Endpoint string }
	nodes := func(file string) error {
		cfg, err := clientcmd.RESTConfigFromKubeConfig([]byte(file))
		if err != nil {
			return err
		}
		c, err := kubernetes.NewForConfig(cfg)
		if err != nil {
			return err
		}
		_, err = c.CoreV1().Secrets("default").List(t.Context(), metav1.ListOptions{})
		return err
	}
	ed.want(t, 201, "kubeconfig", "POST", cluster+"/kubeconfig", `{"role":"admin","expirationSeconds":600}`, "Content-Type", jsonType).into(t, &k)
	if err := nodes(k.Kubeconfig); err != nil {
		t.Error(err)
	}
	vi.want(t, 403, "may not be admin", "POST", cluster+"/kubeconfig", `{"role":"admin"}`, "Content-Type", jsonType)
	vi.want(t, 201, "kubeconfig", "POST", cluster+"/kubeconfig", `{}`, "Content-Type", jsonType).into(t, &k)
	if err := nodes(k.Kubeconfig); err == nil || !strings.Contains(err.Error(), "forbidden") {
		t.Errorf("a viewer reads Secrets: %v", err)
	}
	key, err := certificate.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	csr, err := certificate.NewRequest(pkix.Name{CommonName: "me"}, key)
	if err != nil {
		t.Fatal(err)
	}
	body, _ := json.Marshal(map[string]string{"role": "admin", "certificateRequest": string(csr)})
	ed.want(t, 201, "certificate", "POST", cluster+"/kubeconfig", string(body), "Content-Type", jsonType).into(t, &k)
	if k.Certificate == "" || strings.Contains(k.Kubeconfig, "client-key-data") {
		t.Errorf("%+v", k)
	}
	ed.want(t, 422, "", "POST", cluster+"/kubeconfig", `{"role":"admin","certificateRequest":"x"}`, "Content-Type", jsonType)
	ed.want(t, 404, "there is no cluster none", "POST", "/tenants/rest-f/clusters/none/kubeconfig", `{}`, "Content-Type", jsonType)
	for part, words := range map[string]string{"events": "the cluster is ready", "addons": `"done":true`, "machines": `"controlPlane":true,"phase":"Running","ready":true`, "upgrades": `"kubernetesVersion":"1.37"`} {
		vi.want(t, 200, words, "GET", cluster+"/"+part, "")
	}
	// Nothing of it is kept.
	var l v1alpha1.KubeconfigRequestList
	if err := p.Client(t).List(t.Context(), &l, client.InNamespace("rest-f")); err != nil || len(l.Items) > 0 {
		t.Errorf("%d requests are left (%v)", len(l.Items), err)
	}
	ed.want(t, 202, "", "DELETE", cluster, "")
	testenv.Eventually(t, wait, func() error {
		if a := ed.do(t, "GET", cluster, ""); a.code != 404 {
			return fmt.Errorf("%s", a)
		}
		return nil
	})
}

// TestRESTKilledClient breaks requests off at any moment and repeats them with their keys: there is one cluster of each.
func TestRESTKilledClient(t *testing.T) {
	t.Parallel()
	p := shared.Get(t)
	awaitStacks(t, p.Client(t))
	restTenant(t, p, "rest-g")
	ed := restAs(t, p, "rest-g-editor")
	const all = "/tenants/rest-g/clusters"
	broken := 0
	for i := range 15 {
		file := clusterFile(fmt.Sprint("c", i))
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i)*2*time.Millisecond)
		if _, err := ed.try(ctx, "POST", all, file, "Content-Type", yamlType, "Idempotency-Key", fmt.Sprint("key", i)); err != nil {
			broken++
		}
		cancel()
		a := ed.want(t, 201, "", "POST", all, file, "Content-Type", yamlType, "Idempotency-Key", fmt.Sprint("key", i))
		b := ed.want(t, 201, "", "POST", all, file, "Content-Type", yamlType, "Idempotency-Key", fmt.Sprint("key", i))
		var x, y object
		a.into(t, &x)
		b.into(t, &y)
		if x.Metadata.UID != y.Metadata.UID {
			t.Errorf("c%d was made twice", i)
		}
	}
	if broken == 0 {
		t.Error("no request was broken off")
	}
	if n := bytes.Count([]byte(ed.want(t, 200, "", "GET", all, "").body), []byte(`"kind":"WorkloadCluster"`)); n != 15 {
		t.Errorf("there are %d clusters, not 15", n)
	}
}
