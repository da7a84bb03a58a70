// Package v1alpha1 has the kinds people use to get clusters: WorkloadCluster, which is also the file
// cluster-values.yaml, KubeconfigRequest, Provider, with which a provider describes itself, and Tenant, which says who
// may have how much.
// +kubebuilder:object:generate=true
// +groupName=polder.dev
package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion of all kinds here.
var GroupVersion = schema.GroupVersion{Group: "polder.dev", Version: "v1alpha1"}

// AddToScheme makes the kinds known to a scheme.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion,
		&WorkloadCluster{}, &WorkloadClusterList{},
		&KubeconfigRequest{}, &KubeconfigRequestList{},
		&Provider{}, &ProviderList{},
		&Tenant{}, &TenantList{},
	)
	metav1.AddToGroupVersion(s, GroupVersion)
	return nil
}
