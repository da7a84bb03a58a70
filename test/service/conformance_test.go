package service

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/utils/ptr"

	"github.com/polder-kaas/polder/api/v1alpha1"
	"github.com/polder-kaas/polder/conformance"
	"github.com/polder-kaas/polder/test/testenv"
)

// TestRESTConformance judges our own API with the program that judges others: every check is run and passes, and nothing
// is left.
// The plane of a tenant of its own is no exception.
func TestRESTConformance(t *testing.T) {
	t.Parallel()
	for tenant, kind := range map[string]v1alpha1.PlaneKind{
		"rest-judged": v1alpha1.SharedPlane, "rest-judged-own": v1alpha1.DedicatedPlane,
	} {
		t.Run(string(kind), func(t *testing.T) { judge(t, tenant, kind) })
	}
}

func judge(t *testing.T, tenant string, kind v1alpha1.PlaneKind) {
	t.Helper()
	p := shared.Get(t)
	awaitStacks(t, p.Client(t))
	newTenant(t, p, tenant, v1alpha1.TenantSpec{
		Plane: kind,
		Quota: v1alpha1.TenantQuota{Clusters: ptr.To[int32](100), Machines: ptr.To[int32](200)},
		Members: []v1alpha1.TenantMember{
			{Kind: v1alpha1.MemberUser, Name: "oidc:" + tenant + "-admin", Role: v1alpha1.TenantAdmin},
			{Kind: v1alpha1.MemberUser, Name: "oidc:" + tenant + "-editor", Role: v1alpha1.TenantEditor},
			{Kind: v1alpha1.MemberUser, Name: "oidc:" + tenant + "-viewer", Role: v1alpha1.TenantViewer},
		},
	})
	restTenant(t, p, tenant+"-other")
	who := person{Tree: testenv.NewTree(t, false)}
	who.ca = filepath.Join(who.Root, "plane.crt")
	if err := os.WriteFile(who.ca, p.RESTConfig(t).CAData, 0o644); err != nil {
		t.Fatal(err)
	}
	args := []string{
		"api-conformance", p.Status(t).REST, "--tenant", tenant, "--certificate-authority", who.ca, "--timeout", wait.String(), "--wait-ready", wait.String(), "-o", "json",
	}
	for flag, name := range map[string]string{
		"--token-file": tenant + "-editor", "--admin-token-file": tenant + "-admin", "--viewer-token-file": tenant + "-viewer",
		"--other-token-file": tenant + "-other-editor",
	} {
		file := filepath.Join(who.Root, name)
		if err := os.WriteFile(file, []byte(restAs(t, p, name).token), 0o644); err != nil {
			t.Fatal(err)
		}
		args = append(args, flag, file)
	}
	out, err := who.run("polder", args...)
	var r conformance.Report
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, x := range r.Results {
		if x.Outcome != conformance.Passed {
			t.Errorf("%s: %s: %s", x.Name, x.Outcome, x.Message)
		}
	}
	if err != nil || len(r.Results) < 60 || len(r.Left) > 0 || len(r.Deleting) > 0 {
		t.Errorf("%v: %d results, left: %q, being deleted: %q", err, len(r.Results), r.Left, r.Deleting)
	}
	ed := restAs(t, p, tenant+"-editor")
	for _, list := range []string{"clusters", "robots"} {
		if a := ed.want(t, 200, "", "GET", "/tenants/"+tenant+"/"+list, ""); strings.Contains(a.body, "api-conf-") {
			t.Errorf("%s are left: %s", list, a)
		}
	}
}
