// Package v1alpha1 holds the kinds of the local provider: clusters and machines that are
// processes on one Linux machine. They follow Cluster API's contract v1beta2.
//
// +kubebuilder:object:generate=true
// +groupName=infrastructure.cluster.x-k8s.io
package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion of all kinds in this package.
var GroupVersion = schema.GroupVersion{Group: "infrastructure.cluster.x-k8s.io", Version: "v1alpha1"}

// AddToScheme makes the kinds known.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion,
		&LocalCluster{}, &LocalClusterList{}, &LocalClusterTemplate{}, &LocalClusterTemplateList{},
		&LocalMachine{}, &LocalMachineList{}, &LocalMachineTemplate{}, &LocalMachineTemplateList{},
	)
	metav1.AddToGroupVersion(s, GroupVersion)
	return nil
}
