// Package acceptance uses the provider as customers do: a real OpenTofu, the built provider, a real plane with its REST
// API. `make test-terraform` builds what is needed.
package acceptance

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	csv1 "github.com/polder-kaas/polder/api/clusterstack/v1alpha1"
	"github.com/polder-kaas/polder/api/v1alpha1"
	"github.com/polder-kaas/polder/test/testenv"
)

const wait = 3 * time.Minute

// shared is a plane with the shipped stacks; each test has tenants of its own. It believes issuer.
var (
	shared = testenv.NewShared()
	issuer *testenv.Issuer
	root   string // of the checkout
)

func TestMain(m *testing.M) {
	os.Exit(run(m))
}

func run(m *testing.M) int {
	var err error
	if root, err = filepath.Abs("../.."); err != nil {
		panic(err)
	}
	if err := os.Chdir(root); err != nil { // programs are looked for in bin of the module that tests run in
		panic(err)
	}
	if issuer, err = testenv.StartIssuer(); err != nil {
		panic(err)
	}
	defer issuer.Close()
	dir, err := os.MkdirTemp("", "polder-issuer-")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "login.yaml")
	text := fmt.Sprintf("apiVersion: apiserver.config.k8s.io/v1\nkind: AuthenticationConfiguration\njwt:\n"+
		"- issuer: {url: %q, audiences: [polder], certificateAuthority: %q}\n"+
		"  claimMappings: {username: {claim: sub, prefix: 'oidc:'}, groups: {claim: groups, prefix: 'oidc:'}}\n", issuer.URL, issuer.CA)
	if err := errors.Join(os.Chmod(dir, 0o755), os.WriteFile(file, []byte(text), 0o644)); err != nil { // polderd runs as another user
		panic(err)
	}
	shared.OfferShipped = true
	shared.Flags = []string{"--rest-listen", "127.0.0.1:0", "--authentication-config", file}
	return shared.Run(m)
}

// newTenant makes a tenant with one editor, who is called as it is. It goes with the test, with all it has.
func newTenant(t *testing.T, p *testenv.Plane, name string) {
	t.Helper()
	c := p.Client(t)
	testenv.Eventually(t, wait, func() error { // clusters can be made
		var l csv1.ClusterStackList
		if err := c.List(t.Context(), &l, client.InNamespace(v1alpha1.CatalogueNamespace)); err != nil || len(l.Items) == 0 {
			return fmt.Errorf("%d stacks: %w", len(l.Items), err)
		}
		for _, s := range l.Items {
			if !apimeta.IsStatusConditionTrue(s.Status.Conditions, csv1.ConditionReady) {
				return fmt.Errorf("%s: %+v", s.Name, s.Status.Conditions)
			}
		}
		return nil
	})
	o := &v1alpha1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: name}}
	o.Spec.Members = []v1alpha1.TenantMember{{Kind: v1alpha1.MemberUser, Name: "oidc:" + name, Role: v1alpha1.TenantEditor}}
	if err := c.Create(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		_ = c.DeleteAllOf(ctx, &v1alpha1.WorkloadCluster{}, client.InNamespace(o.NamespaceName()))
		_ = c.Delete(ctx, &v1alpha1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: name}})
		_ = c.Delete(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: o.NamespaceName()}})
	})
	testenv.Eventually(t, wait, func() error {
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(o), o); err != nil {
			return err
		}
		if !apimeta.IsStatusConditionTrue(o.Status.Conditions, v1alpha1.ConditionReady) {
			return fmt.Errorf("%+v", o.Status)
		}
		return nil
	})
}

// cluster is one as the plane's operator sees it.
func cluster(t *testing.T, p *testenv.Plane, tenant, name string) (*v1alpha1.WorkloadCluster, error) {
	t.Helper()
	o := &v1alpha1.WorkloadCluster{}
	return o, p.Client(t).Get(t.Context(), client.ObjectKey{Namespace: namespaceOf(tenant), Name: name}, o)
}

func namespaceOf(tenant string) string {
	return (&v1alpha1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: tenant}}).NamespaceName()
}
