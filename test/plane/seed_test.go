package plane

import (
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/polder-kaas/polder/test/testenv"
)

// Definitions are seeded into an empty etcd; they must be what the API server itself makes of them. So all are deleted,
// and the next start has to bring them through the API.
func TestSeededDefinitionsAreAsTheAPIMakesThem(t *testing.T) {
	p := testenv.StartPlane(t)
	c := p.Client(t)
	seeded := definitions(t, c)
	if len(seeded) < 17 {
		t.Fatalf("there are %d definitions, want at least Cluster API's 17", len(seeded))
	}
	for name := range seeded {
		crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if err := c.Delete(t.Context(), crd); err != nil && !apierrors.IsNotFound(err) {
			t.Fatal(err)
		}
	}
	// One that is not ours, so that etcd is not empty and nothing is seeded again.
	testenv.InstallStubCRDs(t, c)
	p.Signal(t, syscall.SIGTERM, wait)
	p.Start(t)
	p.AwaitReady(t)
	made := definitions(t, p.Client(t))
	for name, want := range seeded {
		if diff := cmp.Diff(want, made[name], cmpopts.IgnoreFields(metav1.ObjectMeta{}, "UID", "ResourceVersion", "CreationTimestamp", "ManagedFields"),
			cmpopts.IgnoreTypes(metav1.Time{})); diff != "" {
			t.Errorf("%s (-seeded +made by the API):\n%s", name, diff)
		}
	}
}

func definitions(t *testing.T, c client.Client) map[string]apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	var l apiextensionsv1.CustomResourceDefinitionList
	if err := c.List(t.Context(), &l); err != nil {
		t.Fatal(err)
	}
	all := map[string]apiextensionsv1.CustomResourceDefinition{}
	for _, crd := range l.Items {
		all[crd.Name] = crd
	}
	return all
}
