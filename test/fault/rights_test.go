package fault

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/polder-kaas/polder/internal/tenancy"
	"github.com/polder-kaas/polder/test/testenv"
)

// auditPolicy logs who asks for what, and nothing of the answers. A watch is logged when it begins, since it does not end.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules: [{level: Metadata}]
`

// right is that of a user to do something with a resource, such as "polder:operator get secrets".
type right struct{ user, verb, resource string }

func (r right) String() string { return r.user + " " + r.verb + " " + r.resource }

// TestRights takes a tenant and a cluster through their lives, from creation over scaling, access and upgrade to its end, and compares what our
// controllers have asked the API for with what they may ask. A right that was not used is in testdata/unused-rights.txt with the
// reason to have it, or is to be taken away.
func TestRights(t *testing.T) {
	p := startAudited(t)
	liveCluster(t, p)
	granted := grantedRights(t, p.Client(t))
	used := usedRights(t, filepath.Join(p.Data, "audit.log"))
	t.Logf("%d rights are granted, %d different ones were used", len(granted), len(used))
	if len(used) < 50 {
		t.Fatal("the audit log misses what was done")
	}
	reasons := readReasons(t)
	for _, r := range granted {
		if wrong := r.check(used, reasons); wrong != "" {
			t.Errorf("%s: %s", r, wrong)
		}
	}
	for _, x := range reasons {
		if !slices.ContainsFunc(granted, func(r right) bool { return x.MatchString(r.String()) }) {
			t.Errorf("testdata/unused-rights.txt has %s, which nobody is granted", x)
		}
	}
}

// startAudited starts a plane that logs who asks for what.
func startAudited(t *testing.T) *testenv.Plane {
	t.Helper()
	p := testenv.NewPlane(t, testenv.NewTree(t, true))
	p.OfferShipped = true
	if err := os.MkdirAll(p.Data, 0o700); err != nil {
		t.Fatal(err)
	}
	policy := filepath.Join(p.Data, "audit.yaml")
	if err := os.WriteFile(policy, []byte(auditPolicy), 0o600); err != nil {
		t.Fatal(err)
	}
	testenv.Chown(t, p.Data)
	testenv.Chown(t, policy)
	p.Start(t)
	p.AwaitReady(t)
	return p
}

// check says what is wrong with a right that is granted.
func (r right) check(used []right, reasons []*regexp.Regexp) string {
	ours := !strings.HasPrefix(r.user, clusterAPIUser)
	switch {
	case slices.Contains([]string{"*", "escalate", "bind", "impersonate"}, r.verb), ours && strings.Contains(r.resource, "*"):
		return "a right that gives others"
	case ours && r.resource == "secrets" && (r.verb == "list" || r.verb == "watch"):
		return "Secrets are read by name"
	case !slices.ContainsFunc(used, r.covers) && !slices.ContainsFunc(reasons, func(x *regexp.Regexp) bool { return x.MatchString(r.String()) }):
		return "never used; take it away, or add it to testdata/unused-rights.txt with a reason"
	}
	return ""
}

// clusterAPIUser begins the names of those whose roles Cluster API publishes; they are taken as they are.
const clusterAPIUser = "polder:cluster-api:"

// covers says whether this right, which may have a wildcard, is one that was used.
func (r right) covers(used right) bool {
	group, name, _ := strings.Cut(r.resource, "/")
	usedGroup, _, _ := strings.Cut(used.resource, "/")
	return r.user == used.user && r.verb == used.verb && (r.resource == used.resource || name == "*" && group == usedGroup)
}

// liveCluster makes a local cluster with the commands people have, and changes, asks for, upgrades and deletes it.
func liveCluster(t *testing.T, p *testenv.Plane) {
	t.Helper()
	run := func(args ...string) error {
		out, err := p.Tree.Command("polder", append(args, "--kubeconfig", filepath.Join(p.Data, "admin.kubeconfig"))...).CombinedOutput()
		if err != nil {
			return fmt.Errorf("polder %s: %w\n%s", strings.Join(args, " "), err, out)
		}
		return nil
	}
	polder := func(args ...string) {
		t.Helper()
		if err := run(args...); err != nil {
			t.Fatal(err)
		}
	}
	polder("tenant", "create", "acme", "--admins", "group:acme", "--clusters", "3")
	polder("tenant", "add", "acme", "--viewers", "user:bob")
	polder("tenant", "robot", "acme", "ci", "--token-only")
	polder("tenant", "remove", "acme", "robot:ci")
	testenv.Eventually(t, wait, func() error { return run("create", "demo", "--stack", "scs", "--kubernetes", "1.36") }) // the catalogue is filled after the start
	polder("wait", "demo", "--timeout", "10m")
	polder("scale", "demo", "--workers", "2", "--wait", "--timeout", "5m")
	polder("kubeconfig", "demo", "--output-file", filepath.Join(p.Tree.Home, "kubeconfig"))
	polder("upgrade", "demo", "--kubernetes", "1.37", "--wait", "--timeout", "10m")
	polder("delete", "demo", "--yes", "--wait", "--timeout", "5m")
}

// grantedRights are the rights of the plane's own controllers, one by one.
func grantedRights(t *testing.T, c client.Client) (out []right) {
	t.Helper()
	bindings, roles := &rbacv1.ClusterRoleBindingList{}, &rbacv1.ClusterRoleList{}
	for _, l := range []client.ObjectList{bindings, roles} {
		if err := c.List(t.Context(), l); err != nil {
			t.Fatal(err)
		}
	}
	for _, b := range bindings.Items {
		i := slices.IndexFunc(roles.Items, func(r rbacv1.ClusterRole) bool { return r.Name == b.RoleRef.Name })
		for _, s := range b.Subjects {
			if i >= 0 && s.Kind == rbacv1.UserKind && strings.HasPrefix(s.Name, "polder:") {
				out = append(out, rightsOf(s.Name, roles.Items[i].Rules)...)
			}
		}
	}
	return out
}

func rightsOf(user string, rules []rbacv1.PolicyRule) (out []right) {
	for _, rule := range rules {
		if slices.Equal(rule.ResourceNames, tenancy.RoleNames()) && slices.Equal(rule.Verbs, []string{"bind"}) {
			continue // no request: it is what lets members of tenants be given their three roles, and no others
		}
		for _, g := range rule.APIGroups {
			for _, r := range rule.Resources {
				for _, v := range rule.Verbs {
					out = append(out, right{user, v, resourceName(g, r)})
				}
			}
		}
	}
	return out
}

// resourceName is the resource after its group, if it has one.
func resourceName(group, resource string) string {
	if group == "" {
		return resource
	}
	return group + "/" + resource
}

// usedRights are those that were needed for the requests in an audit log.
func usedRights(t *testing.T, file string) []right {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	used := map[right]bool{}
	s := bufio.NewScanner(f)
	s.Buffer(nil, 16<<20)
	for s.Scan() {
		var e auditv1.Event
		if err := json.Unmarshal(s.Bytes(), &e); err != nil {
			t.Fatal(err)
		}
		user := e.User
		if e.ImpersonatedUser != nil {
			user = *e.ImpersonatedUser
		}
		if e.ObjectRef == nil || !strings.HasPrefix(user.Username, "polder:") {
			continue
		}
		resource := e.ObjectRef.Resource
		if e.ObjectRef.Subresource != "" {
			resource += "/" + e.ObjectRef.Subresource
		}
		r := right{user.Username, e.Verb, resourceName(e.ObjectRef.APIGroup, resource)}
		used[r] = true
		if r.verb == "watch" { // a watch begins with all that there is; where that cannot be had, with a list
			used[right{r.user, "list", r.resource}] = true
		}
		if r.verb == "patch" && strings.Contains(e.RequestURI, "fieldManager=") { // server-side apply may create
			used[right{r.user, "create", r.resource}] = true
		}
	}
	if err := s.Err(); err != nil {
		t.Fatal(err)
	}
	var out []right
	for r := range used {
		out = append(out, r)
	}
	return out
}

// readReasons returns the rights that may stay unused; * stands for anything.
func readReasons(t *testing.T) (out []*regexp.Regexp) {
	t.Helper()
	b, err := os.ReadFile("testdata/unused-rights.txt")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		pattern, reason, _ := strings.Cut(strings.TrimSpace(line), "#")
		if pattern == "" {
			continue
		}
		if fields := strings.Fields(pattern); len(fields) != 3 || len(strings.TrimSpace(reason)) < 10 {
			t.Fatalf("%q is not a user, a verb, a resource and a reason", line)
		}
		quoted := strings.ReplaceAll(regexp.QuoteMeta(strings.Join(strings.Fields(pattern), " ")), `\*`, `.*`)
		out = append(out, regexp.MustCompile("^"+quoted+"$"))
	}
	return out
}
