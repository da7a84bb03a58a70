package service

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/polder-kaas/polder/test/testenv"
)

// endpoint is one operation of the published document.
type endpoint struct{ id, method, path string }

// endpoints are all operations that the API publishes.
func endpoints(t testing.TB, p *testenv.Plane) []endpoint {
	t.Helper()
	var d struct {
		Paths map[string]map[string]struct{ OperationID string }
	}
	restWith(t, p, "").want(t, 200, "", "GET", "/openapi.json", "").into(t, &d)
	var out []endpoint
	for path, methods := range d.Paths {
		for method, o := range methods {
			out = append(out, endpoint{o.OperationID, strings.ToUpper(method), strings.TrimPrefix(path, "/v1")})
		}
	}
	slices.SortFunc(out, func(a, b endpoint) int { return strings.Compare(a.id, b.id) })
	return out
}

// declared says what each operation answers to viewers, editors and admins of a tenant, whose request is a good one. To
// those who belong to another tenant, what names this one is not there, and everybody without a good token is refused.
var declared = map[string]struct {
	viewer, editor, admin, operator int
	body                            string
}{
	"get-self":           {200, 200, 200, 200, ""},
	"list-tenants":       {200, 200, 200, 200, ""},
	"get-tenant":         {200, 200, 200, 200, ""},
	"get-quota":          {200, 200, 200, 200, ""},
	"list-audit":         {403, 403, 200, 200, ""},
	"list-members":       {200, 200, 200, 200, ""},
	"put-members":        {403, 403, 200, 200, ""}, // the list as it is
	"list-robots":        {200, 200, 200, 200, ""},
	"put-robot":          {403, 403, 200, 200, `{"role":"viewer"}`},
	"delete-robot":       {403, 403, 204, 204, ""},
	"create-robot-token": {403, 403, 201, 201, `{}`},
	"list-clusters":      {200, 200, 200, 200, ""},
	"create-cluster":     {403, 409, 409, 409, clusterFile("it")},
	"get-cluster":        {200, 200, 200, 200, ""},
	"put-cluster":        {403, 200, 200, 200, clusterFile("it")},
	"patch-cluster":      {403, 200, 200, 200, `{"metadata":{"labels":{"a":"b"}}}`},
	"delete-cluster":     {403, 202, 202, 202, ""}, // with dryRun
	"watch-clusters":     {200, 200, 200, 200, ""},
	"list-events":        {200, 200, 200, 200, ""},
	"list-machines":      {200, 200, 200, 200, ""},
	"list-addons":        {200, 200, 200, 200, ""},
	"list-upgrades":      {200, 200, 200, 200, ""},
	"create-kubeconfig":  {409, 409, 409, 409, `{}`}, // it is paused, so that there is nothing to get access to
	"list-stacks":        {200, 200, 200, 200, ""},
	"get-stack-schema":   {200, 200, 200, 200, ""},
	"list-providers":     {200, 200, 200, 200, ""},
	"get-plane":          {403, 403, 403, 200, ""},
	"list-releases":      {403, 403, 403, 200, ""},
	"get-version":        {200, 200, 200, 200, ""},
}

// status asks and returns the status alone: a watch does not end.
func (c restClient) status(t testing.TB, e endpoint, path, body, tag string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), e.method, c.url+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if c.token != "" {
		req.Header.Set("Authorization", "Bearer "+c.token)
	}
	kind := jsonType
	switch e.id {
	case "create-cluster", "put-cluster":
		kind = yamlType
	case "patch-cluster":
		kind = "application/merge-patch+json"
	case "put-members":
		req.Header.Set("If-Match", tag)
	}
	req.Header.Set("Content-Type", kind)
	res, err := c.http.Do(req)
	if err != nil {
		t.Fatalf("%s %s: %v", e.method, path, err)
	}
	defer res.Body.Close()
	b := make([]byte, 2000)
	n := 0
	if res.StatusCode >= 400 {
		n, _ = res.Body.Read(b)
	}
	return res.StatusCode, string(b[:n])
}

// TestRESTMatrix asks every operation of the published document as everybody: nobody gets more than is declared, and to
// others a tenant and one that is not there are the same.
func TestRESTMatrix(t *testing.T) {
	t.Parallel()
	p := shared.Get(t)
	awaitStacks(t, p.Client(t))
	restTenant(t, p, "rest-m")
	restTenant(t, p, "rest-n")
	op, admin := restOperator(t, p), restAs(t, p, "ann", "rest-m-admins")
	admin.want(t, 200, "", "PUT", "/tenants/rest-m/robots/it", `{"role":"viewer"}`, "Content-Type", jsonType)
	admin.want(t, 201, "", "POST", "/tenants/rest-m/robots/it/tokens", `{}`, "Content-Type", jsonType)
	admin.want(t, 201, "", "PUT", "/tenants/rest-m/clusters/it", clusterFile("it"), "Content-Type", yamlType)
	testenv.Eventually(t, wait, func() error {
		if a := op.do(t, "GET", "/tenants/rest-m/quota", ""); a.code != 200 {
			return fmt.Errorf("%s", a)
		}
		return nil
	})
	refused := map[string]restClient{
		"nobody": restWith(t, p, ""), "a wrong token": restWith(t, p, "wrong"),
		"a token that has ended":      restWith(t, p, issuerOfShared.token(t, -time.Second, "ann", "rest-m-admins")),
		"a token of another issuer":   restWith(t, p, otherSigner(t).token(t, time.Hour, "ann", "rest-m-admins")),
		"a token that was changed":    restWith(t, p, swapSubject(t, issuerOfShared.token(t, time.Hour, "x"), issuerOfShared.token(t, time.Hour, "ann", "rest-m-admins"))),
		"a service account's of none": restWith(t, p, "eyJhbGciOiJub25lIn0.eyJzdWIiOiJhbm4ifQ."),
	}
	strangers := map[string]restClient{
		"an admin of another tenant": restAs(t, p, "oz", "rest-n-admins"), "somebody without a tenant": restAs(t, p, "nobody"),
		"somebody of such a name": restAs(t, p, "rest-m-admins"), "a group of an editor's name": restAs(t, p, "x", "rest-m-editor"),
	}
	all := endpoints(t, p)
	if len(all) != len(declared) {
		t.Errorf("%d operations are published, %d declared: %v", len(all), len(declared), slices.Sorted(maps.Keys(declared)))
	}
	cells := 0
	for _, e := range all {
		want, ok := declared[e.id]
		if !ok {
			t.Errorf("%s %s is not declared here", e.method, e.path)
			continue
		}
		body, tag := func() string { return want.body }, func() string { return "" }
		if e.id == "put-members" {
			body = func() string { return admin.do(t, "GET", "/tenants/rest-m/members", "").body }
			tag = func() string { return admin.do(t, "GET", "/tenants/rest-m/members", "").header.Get("ETag") }
		}
		fill := func(tenant string) string {
			path := strings.NewReplacer("{tenant}", tenant, "{cluster}", "it", "{robot}", "it", "{stack}", "scs").Replace(e.path)
			if e.id == "delete-cluster" {
				path += "?dryRun=true"
			}
			return path
		}
		check := func(who string, c restClient, code int) {
			t.Helper()
			cells++
			if got, said := c.status(t, e, fill("rest-m"), body(), tag()); got != code {
				t.Errorf("%s as %s: %d, want %d: %s", e.id, who, got, code, said)
			}
		}
		public := e.id == "get-version"
		for who, c := range refused {
			code := http.StatusUnauthorized
			if public {
				code = 200
			}
			check(who, c, code)
		}
		for who, c := range strangers {
			if !strings.Contains(e.path, "{tenant}") {
				continue // it is asked as a viewer, too
			}
			check(who, c, http.StatusNotFound)
			_, here := c.status(t, e, fill("rest-m"), body(), tag())
			_, none := c.status(t, e, fill("rest-x"), body(), tag())
			if strings.ReplaceAll(here, "rest-m", "NAME") != strings.ReplaceAll(none, "rest-x", "NAME") {
				t.Errorf("%s as %s: one that is there and one that is not differ: %s %s", e.id, who, here, none)
			}
		}
		check("viewer", restAs(t, p, "rest-m-viewer"), want.viewer)
		check("editor", restAs(t, p, "rest-m-editor"), want.editor)
		if e.id == "create-robot-token" { // the one before has taken it out
			admin.want(t, 200, "", "PUT", "/tenants/rest-m/robots/it", `{"role":"viewer"}`, "Content-Type", jsonType)
		}
		check("admin", admin, want.admin)
		if e.id == "delete-robot" {
			admin.want(t, 200, "", "PUT", "/tenants/rest-m/robots/it", `{"role":"viewer"}`, "Content-Type", jsonType)
		}
		check("operator", op, want.operator)
	}
	t.Logf("%d cells of %d operations", cells, len(all))
}

func otherSigner(t testing.TB) *signer {
	t.Helper()
	s, err := newSigner()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	s.URL = issuerOfShared.URL // it says to be the right one
	return s
}

// swapSubject is a token with the signature of one and the claims of another.
func swapSubject(t testing.TB, signature, claims string) string {
	t.Helper()
	s, c := strings.Split(signature, "."), strings.Split(claims, ".")
	if len(s) != 3 || len(c) != 3 {
		t.Fatal("they are no tokens")
	}
	return c[0] + "." + c[1] + "." + s[2]
}
