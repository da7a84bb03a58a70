// Package v1alpha1 has the kinds of cluster stacks: ClusterStack, ClusterStackRelease and
// ClusterAddon. Names and meanings of fields are those of the cluster-stack-operator, so that its
// manifests work unchanged; what we add is optional.
// +kubebuilder:object:generate=true
// +groupName=clusterstack.x-k8s.io
package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion of all kinds here.
var GroupVersion = schema.GroupVersion{Group: "clusterstack.x-k8s.io", Version: "v1alpha1"}

// AddToScheme makes the kinds known to a scheme.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion,
		&ClusterStack{}, &ClusterStackList{},
		&ClusterStackRelease{}, &ClusterStackReleaseList{},
		&ClusterAddon{}, &ClusterAddonList{},
	)
	metav1.AddToGroupVersion(s, GroupVersion)
	return nil
}
