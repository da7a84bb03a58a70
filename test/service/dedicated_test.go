package service

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/polder-kaas/polder/api/v1alpha1"
	"github.com/polder-kaas/polder/internal/plane/status"
	"github.com/polder-kaas/polder/internal/tenancy"
	"github.com/polder-kaas/polder/test/testenv"
)

// planeOf waits until the plane of a tenant is in a phase, and returns how it is.
func planeOf(t testing.TB, p *testenv.Plane, tenant string, phase tenancy.PlanePhase) (found status.TenantPlane) {
	t.Helper()
	testenv.Eventually(t, wait, func() error {
		all := p.Status(t).TenantPlanes
		i := slices.IndexFunc(all, func(s status.TenantPlane) bool { return s.Tenant == tenant })
		if i < 0 || all[i].Phase != string(phase) {
			return fmt.Errorf("the planes of tenants are %+v", all)
		}
		found = all[i]
		return nil
	})
	return found
}

// isAlive reports whether there is a process. One that has ended and that nobody has asked about is none.
func isAlive(pid int) bool {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, state, found := strings.Cut(string(b), ") ")
	return err == nil && found && !strings.HasPrefix(state, "Z")
}

// dedicatedPlane is a plane of a test of its own, with a tenant that has a plane of its own and one that has none.
func dedicatedPlane(t *testing.T) (p *testenv.Plane, start func()) {
	t.Helper()
	p = testenv.NewPlane(t, testenv.NewTree(t, false))
	p.OfferShipped = true
	start = func() {
		t.Helper()
		p.Start(t, shared.Flags...)
		p.AwaitReady(t)
	}
	start()
	newTenant(t, p, "plain", restSpec("plain"))
	spec := restSpec("acme")
	spec.Plane, spec.Quota.Machines = v1alpha1.DedicatedPlane, ptr.To[int32](3)
	spec.Robots = []v1alpha1.TenantRobot{{Name: "ci", Role: v1alpha1.TenantEditor}}
	newTenant(t, p, "acme", spec)
	return p, start
}

// A tenant with a plane of its own is used as any other, through the same doors. What it has is nowhere else.
func TestDedicatedTenant(t *testing.T) {
	t.Parallel()
	p, start := dedicatedPlane(t)
	c := p.Client(t)
	editor, viewer := restAs(t, p, "acme-editor"), restAs(t, p, "acme-viewer")
	const clusters = "/tenants/acme/clusters"
	testenv.Eventually(t, wait, func() error {
		if a := editor.do(t, "POST", clusters, clusterFile("one"), "Content-Type", yamlType); a.code != 201 {
			return fmt.Errorf("%s", a) // until its plane has a stack
		}
		return nil
	})
	viewer.want(t, 200, `"one"`, "GET", clusters, "")
	viewer.want(t, 403, "acme-viewer may not create workloadclusters", "POST", clusters, clusterFile("two"), "Content-Type", yamlType)
	large := strings.Replace(clusterFile("large"), "paused: true", "paused: true\n  workers: [{name: w, replicas: 9}]", 1)
	editor.want(t, 422, "1 of 3 machines are used", "POST", clusters, large, "Content-Type", yamlType)
	admin := restAs(t, p, "ann", "acme-admins")
	var token struct{ Token string }
	admin.want(t, 201, "", "POST", "/tenants/acme/robots/ci/tokens", `{"expirationSeconds":3600}`, "Content-Type", jsonType).into(t, &token)
	restWith(t, p, token.Token).want(t, 200, `"one"`, "GET", clusters, "")

	// The record has what was asked for, and why the tenant's plane refused it.
	var record struct {
		Items []struct{ User, Verb, Object, Refusal string }
	}
	admin.want(t, 200, "", "GET", "/tenants/acme/audit", "").into(t, &record)
	if !slices.ContainsFunc(record.Items, func(e struct{ User, Verb, Object, Refusal string }) bool {
		return e.User == "oidc:acme-editor" && e.Verb == "create" && strings.Contains(e.Refusal, "1 of 3 machines are used")
	}) {
		t.Errorf("the record does not have what the tenant's plane refused: %+v", record)
	}

	// It is not in this plane's store, and others learn nothing of it.
	var here v1alpha1.WorkloadClusterList
	if err := c.List(t.Context(), &here); err != nil || len(here.Items) > 0 {
		t.Errorf("the plane itself has %d clusters: %v", len(here.Items), err)
	}
	plain := restAs(t, p, "plain-editor")
	theirs, nobodys := plain.do(t, "GET", clusters+"/one", ""), plain.do(t, "GET", "/tenants/nobo/clusters/one", "")
	if theirs.code != nobodys.code || theirs.body != strings.ReplaceAll(nobodys.body, "nobo", "acme") {
		t.Errorf("of another's cluster it says %s, of nobody's %s", theirs, nobodys)
	}

	// However it ends, its data are there again, and so is it; this plane's are never shown in its place.
	its := planeOf(t, p, "acme", tenancy.PlaneReady)
	if b, err := os.ReadFile(fmt.Sprintf("/proc/%d/oom_score_adj", its.PID)); err != nil || strings.TrimSpace(string(b)) != "300" {
		t.Errorf("short of memory, the kernel does not end it first: %s, %v", b, err)
	}
	seen := func() error {
		a := viewer.do(t, "GET", clusters, "")
		switch {
		case a.code == 200 && strings.Contains(a.body, `"one"`):
			return nil
		case a.code != 503:
			t.Errorf("while its plane is not there it says %s", a)
		}
		return fmt.Errorf("%s", a)
	}
	if err := syscall.Kill(its.PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	testenv.Eventually(t, wait, func() error {
		if err := seen(); err != nil {
			return err
		}
		if now := planeOf(t, p, "acme", tenancy.PlaneReady); now.PID == its.PID {
			return fmt.Errorf("it is still %+v", now)
		}
		return nil
	})
	its = planeOf(t, p, "acme", tenancy.PlaneReady)
	p.Kill()
	testenv.Eventually(t, wait, func() error {
		if isAlive(its.PID) {
			return fmt.Errorf("process %d outlives the plane that started it", its.PID)
		}
		return nil
	})
	start()
	viewer = restAs(t, p, "acme-viewer")
	testenv.Eventually(t, wait, seen)

	testHangingPlane(t, p)
	testLostPlane(t, p, start)
	testRemovedPlane(t, p)
}

// A plane that hangs keeps nobody else from being served, and those who ask it are told.
func testHangingPlane(t *testing.T, p *testenv.Plane) {
	t.Helper()
	its := planeOf(t, p, "acme", tenancy.PlaneReady)
	if err := syscall.Kill(its.PID, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	defer syscall.Kill(its.PID, syscall.SIGCONT)
	viewer, plain := restAs(t, p, "acme-viewer"), restAs(t, p, "plain-viewer")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for range 50 { // those who wait for it
		go viewer.try(ctx, "GET", "/tenants/acme/clusters", "") // until it is known to hang
	}
	planeOf(t, p, "acme", tenancy.PlaneFailed)
	began := time.Now()
	for range 20 {
		plain.want(t, 200, "", "GET", "/tenants/plain/clusters", "")
	}
	t.Logf("20 lists of another tenant took %s", time.Since(began).Round(time.Millisecond))
	cancel()
	if a := viewer.do(t, "GET", "/tenants/acme/clusters", ""); a.code != 503 {
		t.Errorf("of a plane that hangs it says %s", a)
	}
	o := &v1alpha1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: "acme"}}
	awaitTenant(t, p.Client(t), o, v1alpha1.ReasonPlaneFailed)
	if err := syscall.Kill(its.PID, syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	awaitTenant(t, p.Client(t), o, v1alpha1.ReasonReady)
	viewer.want(t, 200, `"one"`, "GET", "/tenants/acme/clusters", "")
}

// A plane whose data are gone, or are those of another, is said to be lost. No empty one takes its place.
func testLostPlane(t *testing.T, p *testenv.Plane, start func()) {
	t.Helper()
	its := planeOf(t, p, "acme", tenancy.PlaneReady)
	p.Signal(t, syscall.SIGTERM, wait)
	away := its.DataDir + ".away"
	if err := os.Rename(its.DataDir, away); err != nil {
		t.Fatal(err)
	}
	start()
	o := &v1alpha1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: "acme"}}
	message := awaitTenant(t, p.Client(t), o, v1alpha1.ReasonPlaneLost)
	if strings.Contains(message, its.DataDir) {
		t.Errorf("members are told where the operator keeps data: %s", message)
	}
	sayWord(t, planeOf(t, p, "acme", tenancy.PlaneLost).Message, its.DataDir, "no empty plane is made in their place")
	editor := restAs(t, p, "acme-editor")
	editor.want(t, 503, "the platform operator must put them back", "GET", "/tenants/acme/clusters", "")
	editor.want(t, 503, "", "POST", "/tenants/acme/clusters", clusterFile("two"), "Content-Type", yamlType)
	if _, err := os.Stat(its.DataDir); err == nil {
		t.Errorf("%s was made anew", its.DataDir)
	}
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "acme"}}
	if err := p.Client(t).Delete(t.Context(), ns); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "cannot be asked whether a cluster in it is protected") {
		t.Errorf("deleting its namespace: %v", err)
	}

	// Data of another plane, which polder restore or a hand may put there.
	other := filepath.Join(filepath.Dir(its.DataDir), "other")
	spec := restSpec("swapped")
	spec.Plane = v1alpha1.DedicatedPlane
	newTenant(t, p, "swapped", spec)
	swapped := planeOf(t, p, "swapped", tenancy.PlaneReady)
	p.Signal(t, syscall.SIGTERM, wait)
	for from, to := range map[string]string{swapped.DataDir: its.DataDir} {
		if err := os.Rename(from, to); err != nil {
			t.Fatal(err)
		}
	}
	start()
	sayWord(t, planeOf(t, p, "acme", tenancy.PlaneLost).Message, "its data are those of another plane")
	restAs(t, p, "acme-editor").want(t, 503, "its data are not there", "GET", "/tenants/acme/clusters", "")
	p.Signal(t, syscall.SIGTERM, wait)
	for _, move := range [][2]string{{its.DataDir, other}, {away, its.DataDir}, {other, swapped.DataDir}} {
		if err := os.Rename(move[0], move[1]); err != nil {
			t.Fatal(err)
		}
	}
	start()
	awaitTenant(t, p.Client(t), o, v1alpha1.ReasonReady)
	restAs(t, p, "acme-editor").want(t, 200, `"one"`, "GET", "/tenants/acme/clusters", "")
}

// A plane goes with the namespace, and not before what is in it may go.
func testRemovedPlane(t *testing.T, p *testenv.Plane) {
	t.Helper()
	c := p.Client(t)
	editor := restAs(t, p, "acme-editor")
	protect := func(is bool) {
		editor.want(t, 200, "", "PATCH", "/tenants/acme/clusters/one", fmt.Sprintf(`{"spec":{"deletionProtection":%t}}`, is), "Content-Type",
			"application/merge-patch+json")
	}
	protect(true)
	its := planeOf(t, p, "acme", tenancy.PlaneReady)
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "acme"}}
	if err := c.Delete(t.Context(), ns); !apierrors.IsForbidden(err) || strings.Count(err.Error(), "denied the request") != 1 || !strings.Contains(err.Error(), "cluster one of this namespace is protected") {
		t.Errorf("deleting its namespace: %v", err)
	}
	label := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"labels":{"polder.dev/plane":null}}}`))
	if err := c.Patch(t.Context(), ns.DeepCopy(), label); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "stays as it was made") {
		t.Errorf("taking the namespace out of its plane: %v", err)
	}
	label = client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"labels":{"polder.dev/plane":"Dedicated"}}}`))
	if err := c.Patch(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "plain"}}, label); !apierrors.IsForbidden(err) {
		t.Errorf("giving another namespace a plane: %v", err)
	}
	change := client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"plane":"Shared"}}`))
	if err := c.Patch(t.Context(), &v1alpha1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: "acme"}}, change); err == nil ||
		!strings.Contains(err.Error(), "a tenant keeps the plane that it was made with") {
		t.Errorf("changing the kind of plane: %v", err)
	}
	protect(false)
	if err := c.Delete(t.Context(), ns); err != nil {
		t.Fatal(err)
	}
	testenv.Eventually(t, wait, func() error {
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(ns), ns); !apierrors.IsNotFound(err) {
			return fmt.Errorf("the namespace is still there: %w, %+v", err, ns.Status)
		}
		return nil
	})
	if entries, err := os.ReadDir(filepath.Dir(its.DataDir)); err != nil || slices.ContainsFunc(entries, func(e os.DirEntry) bool {
		return strings.HasPrefix(e.Name(), filepath.Base(its.DataDir))
	}) || isAlive(its.PID) {
		t.Errorf("of the plane are left: %v, %v, process %t", entries, err, isAlive(its.PID))
	}
	o := &v1alpha1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: "acme"}}
	sayWord(t, awaitTenant(t, c, o, v1alpha1.ReasonNamespaceLost), "delete the tenant, and make it again")
}
