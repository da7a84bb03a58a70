package testenv

import (
	"fmt"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/polder-kaas/polder/config/samples"
)

// InstallStubCRDs installs the stub infrastructure's kinds, once for each plane.
func InstallStubCRDs(t testing.TB, c client.Client) {
	t.Helper()
	crds := loadSamples(t, "stub/crds.yaml")
	for _, u := range crds {
		if err := c.Create(t.Context(), u); err != nil && !apierrors.IsAlreadyExists(err) {
			t.Fatal(err)
		}
	}
	Eventually(t, startTimeout, func() error {
		for _, u := range crds {
			crd := &apiextensionsv1.CustomResourceDefinition{}
			if err := c.Get(t.Context(), client.ObjectKeyFromObject(u), crd); err != nil {
				return err
			}
			if len(crd.Status.StoredVersions) == 0 || !isEstablished(crd) {
				return fmt.Errorf("%s is not established", crd.Name)
			}
		}
		return nil
	})
}

func isEstablished(crd *apiextensionsv1.CustomResourceDefinition) bool {
	for _, c := range crd.Status.Conditions {
		if c.Type == apiextensionsv1.Established && c.Status == apiextensionsv1.ConditionTrue {
			return true
		}
	}
	return false
}

// InstallStubClass installs the sample class in a namespace and waits until Cluster API has read it,
// since admission only warns of wrong clusters before that.
func InstallStubClass(t testing.TB, c client.Client, namespace string) {
	t.Helper()
	InstallStubCRDs(t, c)
	for _, u := range loadSamples(t, "stub/class.yaml") {
		u.SetNamespace(namespace)
		// A kind may be established a moment before it is served.
		Eventually(t, startTimeout, func() error { return client.IgnoreAlreadyExists(c.Create(t.Context(), u)) })
	}
	Eventually(t, startTimeout, func() error {
		cc := &clusterv1.ClusterClass{}
		if err := c.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "stub"}, cc); err != nil {
			return err
		}
		if cc.Status.ObservedGeneration != cc.Generation || len(cc.Status.Variables) == 0 {
			return fmt.Errorf("the class has not been observed yet: %v", cc.Status.Conditions)
		}
		return nil
	})
}

// StubCluster is the sample cluster, not yet created.
func StubCluster(t testing.TB, namespace, name string) *unstructured.Unstructured {
	t.Helper()
	u := loadSamples(t, "stub/cluster.yaml")[0]
	u.SetNamespace(namespace)
	u.SetName(name)
	return u
}

func loadSamples(t testing.TB, file string) []*unstructured.Unstructured {
	t.Helper()
	us, err := samples.Load(file)
	if err != nil {
		t.Fatal(err)
	}
	return us
}
