package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Role is what the holder of a kubeconfig may do.
// +kubebuilder:validation:Enum=admin;viewer
type Role string

// Roles.
const (
	RoleAdmin  Role = "admin"  // everything
	RoleViewer Role = "viewer" // read what is no secret
)

// KubeconfigRequestSpec asks for access to a cluster. It cannot be changed.
// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="a request cannot be changed; make another"
type KubeconfigRequestSpec struct {
	// clusterName is a WorkloadCluster in the same namespace.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	ClusterName string `json:"clusterName,omitempty"`

	// role is what the holder may do in the cluster: admin needs the right to update the WorkloadCluster,
	// viewer that to get it.
	// +optional
	// +kubebuilder:default=viewer
	Role Role `json:"role,omitempty"`

	// expirationSeconds is how long the certificate is valid: from ten minutes to eight hours.
	// +optional
	// +kubebuilder:default=28800
	// +kubebuilder:validation:Minimum=600
	// +kubebuilder:validation:Maximum=28800
	ExpirationSeconds int32 `json:"expirationSeconds,omitempty"`

	// certificateRequest is a certificate signing request in PEM form, for a key that only the asker has. Without
	// it the plane makes a key, and puts a whole kubeconfig into a Secret beside the request.
	// +optional
	// +kubebuilder:validation:MaxLength=16384
	CertificateRequest string `json:"certificateRequest,omitempty"`

	// username is who asked. It is filled in by the plane, whatever is written.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Username string `json:"username,omitempty"`
}

// KubeconfigRequestStatus is the answer.
type KubeconfigRequestStatus struct {
	// certificate is the client's, in PEM form, if a certificateRequest was given.
	// +optional
	// +kubebuilder:validation:MaxLength=16384
	Certificate string `json:"certificate,omitempty"`

	// certificateAuthority is that of the cluster's API, in PEM form.
	// +optional
	// +kubebuilder:validation:MaxLength=65536
	CertificateAuthority string `json:"certificateAuthority,omitempty"`

	// endpoint is the URL of the cluster's API.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Endpoint string `json:"endpoint,omitempty"`

	// secretName is the Secret with the kubeconfig, under the key value, if no certificateRequest was given.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	SecretName string `json:"secretName,omitempty"`

	// expirationTime is when the certificate ends. The request, and its Secret, are deleted then.
	// +optional
	ExpirationTime *metav1.Time `json:"expirationTime,omitempty"`

	// conditions of the object: Ready.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// KubeconfigRequest asks for a kubeconfig that is valid for some hours.
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=kubeconfigrequests,scope=Namespaced,categories=kaas
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Cluster",type=string,JSONPath=`.spec.clusterName`
// +kubebuilder:printcolumn:name="Role",type=string,JSONPath=`.spec.role`
// +kubebuilder:printcolumn:name="User",type=string,JSONPath=`.spec.username`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Expires",type=string,JSONPath=`.status.expirationTime`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
type KubeconfigRequest struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is standard.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what is asked for.
	// +required
	Spec KubeconfigRequestSpec `json:"spec,omitempty,omitzero"`

	// status is the answer.
	// +optional
	Status KubeconfigRequestStatus `json:"status,omitempty,omitzero"`
}

// KubeconfigRequestList is a list of KubeconfigRequests.
// +kubebuilder:object:root=true
type KubeconfigRequestList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []KubeconfigRequest `json:"items"`
}
