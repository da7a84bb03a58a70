package plane

import (
	"encoding/base64"
	"fmt"
	"os"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/polder-kaas/polder/api/v1alpha1"
	"github.com/polder-kaas/polder/internal/plane/audit"
	"github.com/polder-kaas/polder/test/testenv"
)

// Who did what, who wanted which kubeconfig and what was refused is on record; what the plane does and what is secret is
// not.
func TestAudit(t *testing.T) {
	p := shared.Get(t)
	admin := p.Client(t)
	ns := p.CreateNamespace(t)
	const canary = "canary-9f86d081884c7d65"
	robot := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "robot"}}
	for _, o := range []client.Object{
		robot,
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "s"}, StringData: map[string]string{"k": canary}},
		&rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "robot"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "polder:customer"},
			Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: ns, Name: "robot"}},
		},
	} {
		if err := admin.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	token := &authenticationv1.TokenRequest{}
	if err := admin.SubResource("token").Create(t.Context(), robot, token); err != nil {
		t.Fatal(err)
	}
	cfg := rest.AnonymousClientConfig(p.RESTConfig(t))
	cfg.BearerToken = token.Status.Token
	customer := testenv.NewClient(t, cfg)
	request := &v1alpha1.KubeconfigRequest{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "mine"}, Spec: v1alpha1.KubeconfigRequestSpec{ClusterName: "demo", Role: v1alpha1.RoleViewer},
	}
	testenv.Eventually(t, wait, func() error { // until the rights are known
		err := customer.Create(t.Context(), request)
		if apierrors.IsForbidden(err) && strings.Contains(err.Error(), "cannot create resource") {
			return err
		}
		return nil // whether or not there is such a cluster
	})
	if err := customer.List(t.Context(), &corev1.SecretList{}, client.InNamespace(ns)); !apierrors.IsForbidden(err) {
		t.Fatalf("a customer reads Secrets: %v", err)
	}
	user := fmt.Sprintf("system:serviceaccount:%s:robot", ns)
	testenv.Eventually(t, wait, func() error {
		out, err := polder(t, p.Tree, "audit", "--data-dir", p.Data, "-n", ns)
		for _, want := range []string{
			"create   secrets " + ns + "/s", user, "kubeconfigrequests.polder.dev " + ns + "/mine (viewer of demo)", "create   serviceaccounts/token " + ns + "/robot",
		} {
			if err == nil && !strings.Contains(strings.Join(strings.Fields(out), " "), strings.Join(strings.Fields(want), " ")) {
				err = fmt.Errorf("it lacks %q: %s", want, out)
			}
		}
		return err
	})
	out, err := polder(t, p.Tree, "audit", "--data-dir", p.Data, "-n", ns, "--refused", "--user", user)
	if err != nil || !strings.Contains(out, "403") || !strings.Contains(out, `cannot list resource "secrets"`) || strings.Contains(out, "201") {
		t.Errorf("what was refused: %v: %s", err, out)
	}
	if out, err := polder(t, p.Tree, "audit", "--data-dir", p.Data, "-o", "xml"); exitCode(err) == 0 {
		t.Errorf("%s", out)
	}
	b, err := os.ReadFile(audit.File(p.Data))
	if err != nil {
		t.Fatal(err)
	}
	encoded := base64.StdEncoding.EncodeToString([]byte(canary))
	for _, secret := range []string{canary, encoded, token.Status.Token, `"username":"system:apiserver"`, "system:anonymous"} {
		if strings.Contains(string(b), secret) {
			t.Errorf("%q is on record", secret)
		}
	}
	if info, err := os.Stat(audit.File(p.Data)); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
}
