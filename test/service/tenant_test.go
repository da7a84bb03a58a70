package service

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	csv1 "github.com/polder-kaas/polder/api/clusterstack/v1alpha1"
	"github.com/polder-kaas/polder/api/v1alpha1"
	"github.com/polder-kaas/polder/test/testenv"
)

// shared is a plane with the shipped stacks, for tests of tenants; each has tenants of its own. It believes
// issuerOfShared, and serves the REST API.
var (
	shared         = testenv.NewShared()
	issuerOfShared *signer
)

func TestMain(m *testing.M) {
	shared.OfferShipped = true
	os.Exit(runTests(m))
}

func runTests(m *testing.M) int {
	dir, err := os.MkdirTemp("", "polder-issuer-")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	if issuerOfShared, err = newSigner(); err != nil {
		panic(err)
	}
	defer issuerOfShared.Close()
	file := filepath.Join(dir, "login.yaml")
	if err := errors.Join(os.Chmod(dir, 0o755), os.WriteFile(file, []byte(issuerOfShared.configuration()), 0o644)); err != nil { // polderd runs as another user
		panic(err)
	}
	shared.Flags = []string{"--rest-listen", "127.0.0.1:0", "--authentication-config", file}
	return shared.Run(m)
}

// as is the client configuration of a person whom the plane knows by a name and groups.
func as(t testing.TB, p *testenv.Plane, user string, groups ...string) *rest.Config {
	t.Helper()
	cfg := p.RESTConfig(t)
	cfg.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: append(groups, "system:authenticated")}
	cfg.QPS = -1
	return cfg
}

// newTenant makes a tenant of a test and waits until it is ready. It goes with the test, with all it has.
func newTenant(t testing.TB, p *testenv.Plane, name string, spec v1alpha1.TenantSpec) *v1alpha1.Tenant {
	t.Helper()
	c := p.Client(t)
	o := &v1alpha1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: spec}
	if err := c.Create(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		_ = c.DeleteAllOf(ctx, &v1alpha1.WorkloadCluster{}, client.InNamespace(o.NamespaceName()))
		_ = c.Delete(ctx, &v1alpha1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: name}})
		ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: o.NamespaceName()}}
		refused := c.Delete(ctx, ns)
		if !o.IsDedicated() {
			return
		}
		testenv.Eventually(t, wait, func() error { // its processes end with the plane
			if err := c.Get(ctx, client.ObjectKeyFromObject(ns), ns); !apierrors.IsNotFound(err) {
				return fmt.Errorf("namespace %s is still there: %w, %+v", ns.Name, errors.Join(err, refused), ns.Status)
			}
			return nil
		})
	})
	awaitTenant(t, c, o, v1alpha1.ReasonReady)
	return o
}

// awaitTenant waits until a tenant is ready, or not ready, for a reason.
func awaitTenant(t testing.TB, c client.Client, o *v1alpha1.Tenant, reason string) (message string) {
	t.Helper()
	testenv.Eventually(t, wait, func() error {
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(o), o); err != nil {
			return err
		}
		r := meta.FindStatusCondition(o.Status.Conditions, v1alpha1.ConditionReady)
		if r == nil || r.Reason != reason || r.ObservedGeneration != o.Generation || (reason == v1alpha1.ReasonReady) != (r.Status == metav1.ConditionTrue) {
			return fmt.Errorf("%+v", o.Status)
		}
		message = r.Message
		return nil
	})
	return message
}

// members are one of each role, and their names.
func members(tenant string) []v1alpha1.TenantMember {
	return []v1alpha1.TenantMember{
		{Kind: v1alpha1.MemberGroup, Name: tenant + "-admins", Role: v1alpha1.TenantAdmin},
		{Kind: v1alpha1.MemberUser, Name: tenant + "-editor", Role: v1alpha1.TenantEditor},
		{Kind: v1alpha1.MemberUser, Name: tenant + "-viewer", Role: v1alpha1.TenantViewer},
	}
}

// awaitStacks waits until clusters can be made.
func awaitStacks(t testing.TB, c client.Client) {
	t.Helper()
	testenv.Eventually(t, wait, func() error {
		var l csv1.ClusterStackList
		if err := c.List(t.Context(), &l, client.InNamespace(v1alpha1.CatalogueNamespace)); err != nil || len(l.Items) == 0 {
			return fmt.Errorf("%d stacks: %w", len(l.Items), err)
		}
		for _, s := range l.Items {
			if !meta.IsStatusConditionTrue(s.Status.Conditions, csv1.ConditionReady) {
				return fmt.Errorf("%s: %+v", s.Name, s.Status.Conditions)
			}
		}
		return nil
	})
}

// newCluster is a cluster that is paused, so that it costs nothing.
func newCluster(ns, name, machineType string, workers int32) *v1alpha1.WorkloadCluster {
	o := &v1alpha1.WorkloadCluster{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}}
	o.Spec.Provider, o.Spec.Paused, o.Spec.Stack = "local", ptr.To(true), v1alpha1.StackReference{Name: "scs"}
	o.Spec.ControlPlane.MachineType = machineType
	if workers > 0 {
		o.Spec.Workers = []v1alpha1.WorkerPool{{Name: "a", Replicas: ptr.To(workers), MachineSelection: v1alpha1.MachineSelection{MachineType: machineType}}}
	}
	return o
}

// TestTenantLife follows a tenant at the command line: it is made, people and a robot come and go, it is deleted, and what
// remains is said, stays, and is given to no other tenant of its name without somebody saying so.
func TestTenantLife(t *testing.T) {
	p := shared.Get(t)
	c := p.Client(t)
	awaitStacks(t, c)
	polder := func(code int, words string, args ...string) string {
		t.Helper()
		out, err := p.Tree.Command("polder", append([]string{"--data-dir", p.Data, "tenant"}, args...)...).CombinedOutput()
		if exitCode(err) != code || !strings.Contains(string(out), words) {
			t.Fatalf("polder tenant %s: %v, want %d and %q:\n%s", strings.Join(args, " "), err, code, words, out)
		}
		return string(out)
	}
	polder(0, "tenant/life is ready; its members use namespace life", "create", "life", "--admins", "group:life-admins", "--editors", "user:life-bob", "--machines", "5", "--title", "Life & Co")
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		_ = c.Delete(ctx, &v1alpha1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: "life"}})
		_ = c.Delete(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "life"}})
	})
	polder(2, `there is a tenant "life" already`, "create", "life")
	polder(2, "is no member; write group:NAME or user:NAME", "create", "life2", "--admins", "bob")
	polder(2, "--memory \"1e99\" is no amount", "create", "life2", "--memory", "1e99")
	polder(2, "the plane itself has namespaces of such names", "create", "polder-x")
	polder(2, "begins with a letter", "create", "1life")
	polder(2, "it is the namespace of tenant life; write another", "create", "life2", "--namespace", "life")
	sayWord(t, polder(0, "life", "list"), "Life & Co")

	editor, admin := testenv.NewClient(t, as(t, p, "life-bob")), testenv.NewClient(t, as(t, p, "ann", "life-admins"))
	if err := editor.Create(t.Context(), newCluster("life", "one", "", 2)); err != nil {
		t.Fatal(err)
	}
	sayWord(t, polder(0, "machines   3      5", "describe", "life"), "group:life-admins   admin", "user:life-bob       editor")

	// Its admin takes somebody in, and out.
	edit := func(change func(*v1alpha1.TenantSpec)) error {
		o := &v1alpha1.Tenant{}
		if err := admin.Get(t.Context(), client.ObjectKey{Name: "life"}, o); err != nil {
			return err
		}
		change(&o.Spec)
		return admin.Update(t.Context(), o)
	}
	if err := edit(func(s *v1alpha1.TenantSpec) {
		s.Members = append(s.Members, v1alpha1.TenantMember{Kind: v1alpha1.MemberUser, Name: "life-carl", Role: v1alpha1.TenantViewer})
	}); err != nil {
		t.Fatal(err)
	}
	carl := testenv.NewClient(t, as(t, p, "life-carl"))
	reads := func() error {
		return carl.List(t.Context(), &v1alpha1.WorkloadClusterList{}, client.InNamespace("life"))
	}
	testenv.Eventually(t, wait, reads)
	if err := carl.Delete(t.Context(), newCluster("life", "one", "", 0)); !apierrors.IsForbidden(err) {
		t.Errorf("a viewer may delete: %v", err)
	}
	polder(0, "user:life-carl is editor of tenant life", "add", "life", "--editors", "user:life-carl")
	testenv.Eventually(t, wait, func() error { return carl.Delete(t.Context(), newCluster("life", "one", "", 0), client.DryRunAll) })
	polder(2, "user:nobody is not in tenant life", "remove", "life", "user:nobody")
	polder(0, "tenant life is without user:life-carl", "remove", "life", "user:life-carl")
	testenv.Eventually(t, wait, func() error {
		if err := reads(); !apierrors.IsForbidden(err) {
			return fmt.Errorf("he still reads: %w", err)
		}
		return nil
	})

	testRobot(t, p, admin, polder)

	out := polder(0, "tenant/life is deleted", "delete", "life", "--yes")
	sayWord(t, out, "namespace life stays, with 1 cluster that nobody of the tenant can reach any more: one; delete all of it with: kubectl delete namespace life")
	testenv.Eventually(t, wait, func() error {
		if err := editor.List(t.Context(), &v1alpha1.WorkloadClusterList{}, client.InNamespace("life")); !apierrors.IsForbidden(err) {
			return fmt.Errorf("the editor still reads: %w", err)
		}
		return nil
	})
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: "life", Name: "one"}, &v1alpha1.WorkloadCluster{}); err != nil {
		t.Fatalf("the cluster: %v", err)
	}
	// Years later, another customer has that name.
	polder(3, "namespace life is that of an earlier tenant of this name", "create", "life", "--editors", "user:stranger")
	stranger := testenv.NewClient(t, as(t, p, "stranger"))
	if err := stranger.List(t.Context(), &v1alpha1.WorkloadClusterList{}, client.InNamespace("life")); !apierrors.IsForbidden(err) {
		t.Errorf("a stranger reads the clusters of the one before: %v", err)
	}
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "life"}}
	if err := c.Patch(t.Context(), ns, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"annotations":{"polder.dev/tenant-uid":null}}}`))); err != nil {
		t.Fatal(err)
	}
	awaitTenant(t, c, &v1alpha1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: "life"}}, v1alpha1.ReasonReady)
	testenv.Eventually(t, wait, func() error {
		return stranger.List(t.Context(), &v1alpha1.WorkloadClusterList{}, client.InNamespace("life"))
	})
}

// testRobot gets tokens for a robot of tenant life, and takes it out.
func testRobot(t *testing.T, p *testenv.Plane, admin client.Client, polder func(int, string, ...string) string) {
	t.Helper()
	polder(2, "--for 1m0s does not fit", "robot", "life", "ci", "--for", "1m")
	polder(2, "a robot is no admin", "robot", "life", "ci", "--role", "admin")
	out, err := p.Tree.Command("polder", "--data-dir", p.Data, "tenant", "robot", "life", "ci", "--role", "editor").Output()
	if err != nil {
		t.Fatal(err)
	}
	cfg, err := clientcmd.RESTConfigFromKubeConfig(out)
	if err != nil {
		t.Fatal(err)
	}
	robot := testenv.NewClient(t, cfg)
	dryRun := newCluster("life", "of-a-robot", "", 0)
	testenv.Eventually(t, wait, func() error { return robot.Create(t.Context(), dryRun.DeepCopy(), client.DryRunAll) })
	if err := robot.Get(t.Context(), client.ObjectKey{Name: "life"}, &v1alpha1.Tenant{}); err != nil {
		t.Errorf("it cannot read its tenant: %v", err)
	}
	// The platform operator has an account there whose rights are not the tenant's.
	operators := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "life", Name: "backup"}}
	if err := p.Client(t).Create(t.Context(), operators); err != nil {
		t.Fatal(err)
	}
	own, err := kubernetes.NewForConfig(as(t, p, "ann", "life-admins"))
	if err != nil {
		t.Fatal(err)
	}
	for account, c := range map[string]struct {
		seconds int64
		want    string
	}{
		"backup":   {3600, "tokens are given for robots of the tenant only"},
		"default":  {3600, "tokens are given for robots of the tenant only"},
		"robot-ci": {91 * 86400, "a token of a robot is valid for 90 days at most"},
	} {
		_, err := own.CoreV1().ServiceAccounts("life").CreateToken(t.Context(), account,
			&authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &c.seconds}}, metav1.CreateOptions{})
		if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("a token of %s for %d s: %v", account, c.seconds, err)
		}
	}
	if _, err := own.CoreV1().ServiceAccounts("life").CreateToken(t.Context(), "robot-ci", &authenticationv1.TokenRequest{}, metav1.CreateOptions{}); err != nil {
		t.Errorf("a token by the tenant's admin: %v", err)
	}
	if err := admin.Delete(t.Context(), operators); !apierrors.IsForbidden(err) {
		t.Errorf("the tenant's admin deletes accounts: %v", err)
	}
	polder(0, "tenant life is without robot:ci", "remove", "life", "robot:ci")
	testenv.Eventually(t, wait, func() error {
		err := robot.Create(t.Context(), dryRun.DeepCopy(), client.DryRunAll)
		gone := p.Client(t).Get(t.Context(), client.ObjectKey{Namespace: "life", Name: "robot-ci"}, &corev1.ServiceAccount{})
		if !apierrors.IsForbidden(err) && !apierrors.IsUnauthorized(err) || !apierrors.IsNotFound(gone) {
			return fmt.Errorf("it goes on: %w; %w", err, gone)
		}
		return nil
	})
	if err := p.Client(t).Get(t.Context(), client.ObjectKeyFromObject(operators), operators); err != nil {
		t.Errorf("the account of the platform operator: %v", err)
	}
}

// TestTenantNamespace tries what a tenant must not take: a namespace that is somebody's, and a new one in place of one that
// is gone. What is changed by hand is put right.
func TestTenantNamespace(t *testing.T) {
	p := shared.Get(t)
	c := p.Client(t)
	taken := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "taken"}}
	if err := c.Create(t.Context(), taken); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Delete(context.WithoutCancel(t.Context()), taken) })
	o := &v1alpha1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: "taker"}, Spec: v1alpha1.TenantSpec{Namespace: "taken", Members: members("taker")}}
	if err := c.Create(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Delete(context.WithoutCancel(t.Context()), o) })
	sayWord(t, awaitTenant(t, c, o, v1alpha1.ReasonNamespaceTaken), "kubectl label namespace taken polder.dev/tenant=taker")
	var bindings rbacv1.RoleBindingList
	if err := c.List(t.Context(), &bindings, client.InNamespace("taken")); err != nil || len(bindings.Items) > 0 {
		t.Errorf("%d bindings in a namespace that is not the tenant's: %v", len(bindings.Items), err)
	}
	if err := c.Patch(t.Context(), taken, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"labels":{"polder.dev/tenant":"taker"}}}`))); err != nil {
		t.Fatal(err)
	}
	awaitTenant(t, c, o, v1alpha1.ReasonReady)

	// Rights that somebody adds by hand, and those that he takes away.
	b := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "taken", Name: "polder:tenant-viewer"}}
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(b), b); err != nil {
		t.Fatal(err)
	}
	right := slices.Clone(b.Subjects)
	b.Subjects = append(b.Subjects, rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: "User", Name: "by-hand"})
	if err := c.Update(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	q := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: "taken", Name: "polder-tenant"}}
	if err := c.Delete(t.Context(), q); err != nil {
		t.Fatal(err)
	}
	testenv.Eventually(t, wait, func() error {
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(b), b); err != nil || fmt.Sprint(b.Subjects) != fmt.Sprint(right) {
			return fmt.Errorf("%v, %w", b.Subjects, err)
		}
		return c.Get(t.Context(), client.ObjectKeyFromObject(q), q)
	})

	if err := c.Delete(t.Context(), taken); err != nil {
		t.Fatal(err)
	}
	sayWord(t, awaitTenant(t, c, o, v1alpha1.ReasonNamespaceLost), "namespace taken")
	testenv.Eventually(t, wait, func() error {
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(taken), taken); !apierrors.IsNotFound(err) {
			return fmt.Errorf("it is there: %w", err)
		}
		return nil
	})
	sayWord(t, awaitTenant(t, c, o, v1alpha1.ReasonNamespaceLost), "is gone", "kubectl create namespace taken")
	again := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "taken", Labels: map[string]string{"polder.dev/tenant": "taker"}}}
	if err := c.Create(t.Context(), again); err != nil {
		t.Fatal(err)
	}
	awaitTenant(t, c, o, v1alpha1.ReasonReady)
}

// TestTenantFields tries every field of a Tenant as its admin: members and robots are his, and nothing else. A field that
// comes later is tried as well, or the test fails.
func TestTenantFields(t *testing.T) {
	p := shared.Get(t)
	newTenant(t, p, "fields", v1alpha1.TenantSpec{Members: members("fields"), Quota: v1alpha1.TenantQuota{Machines: ptr.To[int32](3)}})
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := p.Client(t).Get(t.Context(), client.ObjectKey{Name: "tenants.polder.dev"}, crd); err != nil {
		t.Fatal(err)
	}
	try := map[string]string{
		"title": `"x"`, "namespace": `"kube-system"`, "plane": `"Dedicated"`, "quota": `{"machines":1000}`, "allow": `{"providers":["local"]}`,
		"members": `[{"kind":"Group","name":"fields-admins","role":"admin"},{"kind":"User","name":"x","role":"editor"}]`,
		"robots":  `[{"name":"x","role":"viewer"}]`,
	}
	admin, editor := testenv.NewClient(t, as(t, p, "ann", "fields-admins")), testenv.NewClient(t, as(t, p, "fields-editor"))
	patch := func(c client.Client, text string) error {
		o := &v1alpha1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: "fields"}}
		return c.Patch(t.Context(), o, client.RawPatch("application/merge-patch+json", []byte(text)), client.DryRunAll)
	}
	for name := range crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"].Properties {
		value, ok := try[name]
		if !ok {
			t.Errorf("spec.%s is not tried", name)
			continue
		}
		text := fmt.Sprintf(`{"spec":{%q:%s}}`, name, value)
		own := name == "members" || name == "robots"
		if err := patch(admin, text); (err == nil) != own {
			t.Errorf("the tenant's admin writes spec.%s: %v", name, err)
		}
		if err := patch(editor, text); !apierrors.IsForbidden(err) {
			t.Errorf("an editor writes spec.%s: %v", name, err)
		}
	}
	for name, text := range map[string]string{
		"quota taken away": `{"spec":{"quota":null}}`, "label": `{"metadata":{"labels":{"a":"b"}}}`, "annotation": `{"metadata":{"annotations":{"a":"b"}}}`,
		"finalizer":        `{"metadata":{"finalizers":["example.org/a"]}}`,
		"owner":            `{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"Namespace","name":"fields","uid":"00000000-0000-0000-0000-000000000000"}]}}`,
		"no admins":        `{"spec":{"members":[{"kind":"User","name":"x","role":"editor"}]}}`,
		"everybody":        `{"spec":{"members":[{"kind":"Group","name":"fields-admins","role":"admin"},{"kind":"Group","name":"system:authenticated","role":"viewer"}]}}`,
		"the plane":        `{"spec":{"members":[{"kind":"Group","name":"fields-admins","role":"admin"},{"kind":"User","name":"polder:operator","role":"viewer"}]}}`,
		"unseen":           `{"spec":{"members":[{"kind":"Group","name":"fields-admins","role":"admin"},{"kind":"User","name":"a\u200b","role":"viewer"}]}}`,
		"a robot as admin": `{"spec":{"robots":[{"name":"a","role":"admin"}]}}`,
	} {
		if err := patch(admin, text); !apierrors.IsInvalid(err) {
			t.Errorf("%s: %v", name, err)
		}
	}
	o := &v1alpha1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: "fields"}}
	status := admin.Status().Patch(t.Context(), o, client.RawPatch("application/merge-patch+json", []byte(`{"status":{"namespace":"kube-system"}}`)))
	if !apierrors.IsForbidden(status) {
		t.Errorf("the status: %v", status)
	}
	// What kubectl apply adds, and the platform operator's own changes.
	if err := patch(admin, `{"metadata":{"annotations":{"kubectl.kubernetes.io/last-applied-configuration":"{}"}}}`); err != nil {
		t.Errorf("kubectl apply by the tenant's admin: %v", err)
	}
	if err := patch(p.Client(t), `{"metadata":{"labels":{"a":"b"}},"spec":{"quota":{"machines":7},"title":"x"}}`); err != nil {
		t.Errorf("the platform operator: %v", err)
	}
	if err := patch(p.Client(t), `{"spec":{"namespace":"elsewhere"}}`); err == nil || !strings.Contains(err.Error(), "a tenant keeps its namespace, fields") {
		t.Errorf("the platform operator gives it another namespace: %v", err)
	}
}

// TestTenantQuota asks for more than the quota has, twenty times at once: exactly as many clusters as fit are made, and
// each refusal says why. What is given back can be had again.
func TestTenantQuota(t *testing.T) {
	p := shared.Get(t)
	awaitStacks(t, p.Client(t))
	for name, c := range map[string]struct {
		quota   v1alpha1.TenantQuota
		cluster func(ns, name string) *v1alpha1.WorkloadCluster
		words   string
	}{
		"clusters": {v1alpha1.TenantQuota{Clusters: ptr.To[int32](2)}, func(ns, name string) *v1alpha1.WorkloadCluster { return newCluster(ns, name, "", 0) }, "clusters"},
		"machines": {v1alpha1.TenantQuota{Machines: ptr.To[int32](7)}, func(ns, name string) *v1alpha1.WorkloadCluster { return newCluster(ns, name, "", 2) }, "machines"},
		"controls": {v1alpha1.TenantQuota{ControlPlanes: ptr.To[int32](2)}, func(ns, name string) *v1alpha1.WorkloadCluster { return newCluster(ns, name, "", 2) }, "control"},
		"cpus":     {v1alpha1.TenantQuota{CPU: ptr.To[int32](15)}, func(ns, name string) *v1alpha1.WorkloadCluster { return newCluster(ns, name, "SCS-2V-4", 2) }, "cpu"},
		"memory":   {v1alpha1.TenantQuota{Memory: ptr.To(resource.MustParse("24Gi"))}, func(ns, name string) *v1alpha1.WorkloadCluster { return newCluster(ns, name, "SCS-2V-4", 2) }, "memory"},
		"disk":     {v1alpha1.TenantQuota{Disk: ptr.To(resource.MustParse("140G"))}, func(ns, name string) *v1alpha1.WorkloadCluster { return newCluster(ns, name, "SCS-2V-4-20", 2) }, "disk"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ns := "quota-" + name
			newTenant(t, p, ns, v1alpha1.TenantSpec{Members: members(ns), Quota: c.quota})
			editor := testenv.NewClient(t, as(t, p, ns+"-editor"))
			errs := make([]error, 20)
			var wg sync.WaitGroup
			for i := range errs {
				wg.Go(func() { errs[i] = editor.Create(t.Context(), c.cluster(ns, fmt.Sprintf("c%d", i))) })
			}
			wg.Wait()
			made := 0
			for _, err := range errs {
				if err == nil {
					made++
					continue
				}
				text := err.Error()
				why := strings.Contains(text, "are used, and this asks for") || strings.Contains(text, "exceeded quota: polder-tenant")
				if !strings.Contains(strings.ToLower(text), c.words) || !why {
					t.Errorf("it does not say why: %v", err)
				}
			}
			if made != 2 {
				t.Fatalf("%d were made", made)
			}
			one := firstCluster(t, editor, ns)
			if name != "clusters" { // to ask for more of one that is there
				more := one.DeepCopy()
				more.Spec.Workers = append(more.Spec.Workers, v1alpha1.WorkerPool{Name: "b", Replicas: ptr.To[int32](2), MachineSelection: one.Spec.ControlPlane.MachineSelection})
				more.Spec.ControlPlane.Replicas = ptr.To[int32](3)
				if err := editor.Update(t.Context(), more); err == nil {
					t.Error("a cluster grows beyond the quota")
				}
			}
			if err := editor.Delete(t.Context(), one); err != nil {
				t.Fatal(err)
			}
			testenv.Eventually(t, wait, func() error { return editor.Create(t.Context(), c.cluster(ns, "again")) })
			if err := editor.Create(t.Context(), c.cluster(ns, "too-many")); err == nil {
				t.Error("one more than fit")
			}
		})
	}
}

func firstCluster(t *testing.T, c client.Client, ns string) *v1alpha1.WorkloadCluster {
	t.Helper()
	var l v1alpha1.WorkloadClusterList
	if err := c.List(t.Context(), &l, client.InNamespace(ns)); err != nil || len(l.Items) == 0 {
		t.Fatalf("%d clusters: %v", len(l.Items), err)
	}
	return &l.Items[0]
}

// TestTenantQuotaFollows changes sizes and the quota itself: what is used follows what is asked for, whoever counts.
func TestTenantQuotaFollows(t *testing.T) {
	p := shared.Get(t)
	c := p.Client(t)
	awaitStacks(t, c)
	o := newTenant(t, p, "follows", v1alpha1.TenantSpec{Members: members("follows"), Quota: v1alpha1.TenantQuota{CPU: ptr.To[int32](20), Machines: ptr.To[int32](10)}})
	editor := testenv.NewClient(t, as(t, p, "follows-editor"))
	used := func(want string) {
		t.Helper()
		testenv.Eventually(t, wait, func() error {
			q := &corev1.ResourceQuota{}
			if err := c.Get(t.Context(), client.ObjectKey{Namespace: "follows", Name: "polder-tenant"}, q); err != nil {
				return err
			}
			cpu, machines := q.Status.Used["polder.dev/cpu"], q.Status.Used["polder.dev/machines"]
			if got := fmt.Sprintf("%s CPUs of %d machines", cpu.String(), machines.Value()); got != want {
				return fmt.Errorf("%s, want %s", got, want)
			}
			return nil
		})
	}
	w := newCluster("follows", "a", "SCS-2V-4", 3)
	if err := editor.Create(t.Context(), w); err != nil {
		t.Fatal(err)
	}
	used("8 CPUs of 4 machines")
	change := func(text string) error {
		return editor.Patch(t.Context(), w, client.RawPatch("application/merge-patch+json", []byte(text)))
	}
	if err := change(`{"spec":{"workers":[{"name":"a","replicas":1,"machine":{"cpu":3,"memory":"8Gi"}}]}}`); err != nil {
		t.Fatal(err)
	}
	used("5 CPUs of 2 machines") // by the recount: nobody is charged for less
	if err := change(`{"spec":{"workers":[{"name":"a","replicas":6,"machine":{"cpu":3,"memory":"8Gi"}}]}}`); err != nil {
		t.Fatal(err)
	}
	used("20 CPUs of 7 machines")
	if err := change(`{"spec":{"workers":[{"name":"a","replicas":6}]}}`); err == nil || !strings.Contains(err.Error(), "counts how large machines are") {
		t.Errorf("machines of no known size: %v", err)
	}
	// Lowered below what is used: it stays, can shrink, and cannot grow.
	if err := c.Patch(t.Context(), o, client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"quota":{"cpu":4}}}`))); err != nil {
		t.Fatal(err)
	}
	awaitTenant(t, c, o, v1alpha1.ReasonReady)
	testenv.Eventually(t, wait, func() error { // until admission knows it, too
		if err := change(`{"spec":{"workers":[{"name":"a","replicas":7,"machine":{"cpu":3,"memory":"8Gi"}}]}}`); err == nil || !strings.Contains(err.Error(), "20 of 4 CPUs are used") {
			return fmt.Errorf("growing: %w", err)
		}
		return nil
	})
	if err := change(`{"spec":{"workers":[{"name":"a","replicas":2,"machine":{"cpu":3,"memory":"8Gi"}}],"deletionProtection":true}}`); err != nil {
		t.Errorf("shrinking above the quota: %v", err)
	}
	used("8 CPUs of 3 machines")
	if err := change(`{"spec":{"deletionProtection":false}}`); err != nil {
		t.Errorf("changing what is not counted: %v", err)
	}
	// Without the limit, it is not there.
	if err := c.Patch(t.Context(), o, client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"quota":{"cpu":null}}}`))); err != nil {
		t.Fatal(err)
	}
	used("0 CPUs of 3 machines")
}

// TestTenantQuotaOfChanges lets five clusters grow at the same time where one fits, again and again, while something else
// of them changes all the time, so that the API server has to try again: exactly one grows, each time.
func TestTenantQuotaOfChanges(t *testing.T) {
	p := shared.Get(t)
	c := p.Client(t)
	awaitStacks(t, c)
	newTenant(t, p, "changes", v1alpha1.TenantSpec{Members: members("changes"), Quota: v1alpha1.TenantQuota{Machines: ptr.To[int32](12)}})
	editor := testenv.NewClient(t, as(t, p, "changes-editor"))
	var all []*v1alpha1.WorkloadCluster
	for i := range 5 {
		o := newCluster("changes", fmt.Sprintf("c%d", i), "", 0)
		if err := editor.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		all = append(all, o)
	}
	stop := make(chan struct{})
	var noise sync.WaitGroup
	for _, o := range all {
		noise.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				_ = c.Patch(t.Context(), o.DeepCopy(), client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, `{"metadata":{"annotations":{"example.org/n":"%d"}}}`, i)))
			}
		})
	}
	defer noise.Wait()
	defer close(stop)
	patch := func(o *v1alpha1.WorkloadCluster, text string) error {
		return editor.Patch(t.Context(), o.DeepCopy(), client.RawPatch("application/merge-patch+json", []byte(text)))
	}
	for round := range 5 {
		errs := make([]error, len(all))
		var wg sync.WaitGroup
		for i, o := range all {
			wg.Go(func() { errs[i] = patch(o, `{"spec":{"workers":[{"name":"a","replicas":4}]}}`) })
		}
		wg.Wait()
		grown := 0
		for i, err := range errs {
			switch {
			case err == nil:
				grown++
				// What it gives back can be had at once.
				if err := patch(all[i], `{"spec":{"workers":null}}`); err != nil {
					t.Fatal(err)
				}
			case !strings.Contains(err.Error(), "machines are used, and this asks for 4 more"):
				t.Errorf("round %d: %v", round, err)
			}
		}
		if grown != 1 {
			t.Fatalf("round %d: %d have grown", round, grown)
		}
	}
}

// TestTenantAllowances tries what a tenant may not use; a cluster keeps what it has.
func TestTenantAllowances(t *testing.T) {
	p := shared.Get(t)
	c := p.Client(t)
	awaitStacks(t, c)
	raw := func(text string) apiextensionsv1.JSON { return apiextensionsv1.JSON{Raw: []byte(text)} }
	o := newTenant(t, p, "allowed", v1alpha1.TenantSpec{Members: members("allowed"), Allow: v1alpha1.TenantAllowances{
		Providers: []string{"local"}, Stacks: []string{"scs"}, MachineTypes: []string{"SCS-2V-4", "SCS-4V-8"},
		Parameters: []v1alpha1.AllowedParameter{{Name: "certSANs", Values: []apiextensionsv1.JSON{raw(`["a.example.org"]`), raw(`["b.example.org"]`)}}, {Name: "registryMirrors"}},
	}})
	editor := testenv.NewClient(t, as(t, p, "allowed-editor"))
	for name, tt := range map[string]struct {
		change func(*v1alpha1.WorkloadClusterSpec)
		want   string // "" is allowed
	}{
		"all that is allowed": {func(*v1alpha1.WorkloadClusterSpec) {}, ""},
		"the only provider":   {func(s *v1alpha1.WorkloadClusterSpec) { s.Provider = "" }, ""},
		"another type":        {func(s *v1alpha1.WorkloadClusterSpec) { s.ControlPlane.MachineType = "SCS-8V-16" }, "spec.controlPlane.machineType: Forbidden: tenant allowed may not have machines of type SCS-8V-16; choose from SCS-2V-4, SCS-4V-8"},
		"no type":             {func(s *v1alpha1.WorkloadClusterSpec) { s.ControlPlane.MachineType = "" }, "spec.controlPlane.machineType: Required value: tenant allowed may have some types of machines only"},
		"a shape of its own": {func(s *v1alpha1.WorkloadClusterSpec) {
			s.ControlPlane.MachineType, s.ControlPlane.Machine = "", &v1alpha1.MachineShape{CPU: 16, Memory: resource.MustParse("64Gi")}
		}, "tenant allowed may not have machines of type SCS-16V-64"},
		"a shape that is one": {func(s *v1alpha1.WorkloadClusterSpec) {
			s.ControlPlane.MachineType, s.ControlPlane.Machine = "", &v1alpha1.MachineShape{CPU: 4, Memory: resource.MustParse("8Gi")}
		}, ""},
		"a pool of another": {func(s *v1alpha1.WorkloadClusterSpec) { s.Workers[0].MachineType = "SCS-1V-2" }, "spec.workers[0].machineType: Forbidden"},
		"another stack":     {func(s *v1alpha1.WorkloadClusterSpec) { s.Stack.Name = "other" }, "spec.stack.name: Forbidden: tenant allowed may not use other; choose from scs"},
		"a value": {func(s *v1alpha1.WorkloadClusterSpec) {
			s.Parameters = map[string]apiextensionsv1.JSON{"certSANs": raw(`[ "b.example.org" ]`)}
		}, ""},
		"another value": {func(s *v1alpha1.WorkloadClusterSpec) {
			s.Parameters = map[string]apiextensionsv1.JSON{"certSANs": raw(`["c.example.org"]`)}
		}, `spec.parameters.certSANs: Forbidden: tenant allowed may not have this value; choose from ["a.example.org"], ["b.example.org"]`},
		"what may not be set": {func(s *v1alpha1.WorkloadClusterSpec) {
			s.Parameters = map[string]apiextensionsv1.JSON{"registryMirrors": raw(`[]`)}
		}, "spec.parameters.registryMirrors: Forbidden: tenant allowed may not set it; leave it out"},
	} {
		w := newCluster("allowed", "a", "SCS-2V-4", 1)
		tt.change(&w.Spec)
		err := editor.Create(t.Context(), w, client.DryRunAll)
		if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%s: %v", name, err)
		}
	}
	w := newCluster("allowed", "kept", "SCS-2V-4", 1)
	if err := editor.Create(t.Context(), w); err != nil {
		t.Fatal(err)
	}
	less := `{"spec":{"allow":{"providers":["elsewhere"],"stacks":["other"],"machineTypes":["SCS-1V-4"]}}}`
	if err := c.Patch(t.Context(), o, client.RawPatch("application/merge-patch+json", []byte(less))); err != nil {
		t.Fatal(err)
	}
	testenv.Eventually(t, wait, func() error { // until admission knows it
		err := editor.Create(t.Context(), newCluster("allowed", "b", "SCS-2V-4", 0), client.DryRunAll)
		if err == nil || !strings.Contains(err.Error(), "spec.provider: Forbidden: tenant allowed may not use local; choose from elsewhere") {
			return fmt.Errorf("it got: %w", err)
		}
		return nil
	})
	patch := func(text string) error {
		return editor.Patch(t.Context(), w, client.RawPatch("application/merge-patch+json", []byte(text)))
	}
	if err := patch(`{"spec":{"workers":[{"name":"a","replicas":2,"machineType":"SCS-2V-4"}]}}`); err != nil {
		t.Errorf("a cluster that was made before grows: %v", err)
	}
	if err := patch(`{"spec":{"workers":[{"name":"a","replicas":2,"machineType":"SCS-2V-4"},{"name":"b","replicas":1,"machineType":"SCS-2V-4"}]}}`); err == nil {
		t.Error("a new pool is of a type that is not allowed any more")
	}
}
