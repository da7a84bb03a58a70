package capi

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	k8sversion "k8s.io/apimachinery/pkg/version"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/contract"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// contractVersions are the versions of the provider contract this Cluster API understands, best first.
var contractVersions = []string{"v1beta2", "v1beta1"}

// apiVersionGetter returns a function that says, for conversions from references without a version, which version
// of a provider's kind to use: the newest one that its CRD's labels offer for the best contract.
func apiVersionGetter(c client.Reader) func(context.Context, schema.GroupKind) (string, error) {
	return func(ctx context.Context, gk schema.GroupKind) (string, error) {
		crd := &metav1.PartialObjectMetadata{}
		crd.SetGroupVersionKind(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"))
		name := contract.CalculateCRDName(gk.Group, gk.Kind)
		if err := c.Get(ctx, client.ObjectKey{Name: name}, crd); err != nil {
			return "", fmt.Errorf("looking up the version of kind %s: %w", gk, err)
		}
		version, ok := versionFromLabels(crd.Labels)
		if !ok {
			return "", fmt.Errorf("CRD %s has no label %s/%s, so the version to use is unknown; its provider must label it",
				name, clusterv1.GroupVersion.Group, contractVersions[0])
		}
		return schema.GroupVersion{Group: gk.Group, Version: version}.String(), nil
	}
}

// versionFromLabels reads a CRD's contract labels; a label lists versions, joined by "_".
func versionFromLabels(labels map[string]string) (string, bool) {
	for _, c := range contractVersions {
		if l := labels[clusterv1.GroupVersion.Group+"/"+c]; l != "" {
			return slices.MaxFunc(strings.Split(l, "_"), k8sversion.CompareKubeAwareVersionStrings), true
		}
	}
	return "", false
}
