package v1alpha1

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TenantRole is what a member or a robot of a tenant may do.
// +kubebuilder:validation:Enum=admin;editor;viewer
type TenantRole string

// Roles in a tenant, each with all that those after it may do.
const (
	TenantAdmin  TenantRole = "admin"  // say who is a member and which robots there are
	TenantEditor TenantRole = "editor" // make, change and delete clusters, and be their admin
	TenantViewer TenantRole = "viewer" // see clusters, and look into them
)

// MemberKind says whether a member is one person or many.
// +kubebuilder:validation:Enum=Group;User
type MemberKind string

// Kinds of members.
const (
	MemberGroup MemberKind = "Group"
	MemberUser  MemberKind = "User"
)

// PlaneKind says whose management plane has a tenant's clusters.
// +kubebuilder:validation:Enum=Shared;Dedicated
type PlaneKind string

// Kinds of planes.
const (
	SharedPlane    PlaneKind = "Shared"    // the one that the Tenant itself is in
	DedicatedPlane PlaneKind = "Dedicated" // a process and a store of its own, behind the same address
)

// TenantSpec is what the tenant is given. Its own admins may change members and robots; all else is the platform
// operator's.
type TenantSpec struct {
	// title is what people call the tenant.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Title string `json:"title,omitempty"`

	// namespace has all that is the tenant's. Without it, it is called as the tenant is. It cannot be changed.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Namespace string `json:"namespace,omitempty"`

	// plane says whether the tenant's clusters are in the plane that all share, or in one of their own behind the same
	// address: a process and a store that nobody else uses, of some 220 MB. It cannot be changed.
	// +optional
	// +kubebuilder:default=Shared
	Plane PlaneKind `json:"plane,omitempty"`

	// members are who may use the tenant, by the names that the plane knows them under (polder whoami says them).
	// +optional
	// +listType=map
	// +listMapKey=kind
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=100
	Members []TenantMember `json:"members,omitempty"`

	// robots are programs that may use the tenant, with tokens that end.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=20
	Robots []TenantRobot `json:"robots,omitempty"`

	// quota is how much all clusters of the tenant together may ask for. What is left out is not limited by it.
	// +optional
	Quota TenantQuota `json:"quota,omitempty,omitzero"`

	// allow is what clusters of the tenant may be made of.
	// +optional
	Allow TenantAllowances `json:"allow,omitempty,omitzero"`
}

// TenantMember is a person or a group of them.
type TenantMember struct {
	// kind is Group or User.
	// +required
	Kind MemberKind `json:"kind,omitempty"`

	// name that the plane knows the user or the group under.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	Name string `json:"name,omitempty"`

	// role is what they may do.
	// +required
	Role TenantRole `json:"role,omitempty"`
}

// TenantRobot is a program.
type TenantRobot struct {
	// name of the robot; its service account is called robot-NAME.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=40
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Name string `json:"name,omitempty"`

	// role is what it may do: editor or viewer.
	// +required
	// +kubebuilder:validation:XValidation:rule="self != 'admin'",message="a robot is no admin: who is a member is decided by people; write editor or viewer"
	Role TenantRole `json:"role,omitempty"`
}

// TenantQuota counts what clusters ask for. While machines are replaced there is one more for the control plane and one
// for each part of a pool, which is not counted.
type TenantQuota struct {
	// clusters is how many there may be; 20 if it is left out.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=10000
	Clusters *int32 `json:"clusters,omitempty"`

	// controlPlanes is how many machines of control planes there may be.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=50000
	ControlPlanes *int32 `json:"controlPlanes,omitempty"`

	// machines is how many there may be, those of control planes included; 100 if it is left out.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100000
	Machines *int32 `json:"machines,omitempty"`

	// cpu is how many virtual CPUs all machines together may have. Then each cluster says how large its machines are.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=10000000
	CPU *int32 `json:"cpu,omitempty"`

	// memory is how much all machines together may have, for example 512Gi. Then each cluster says how large its
	// machines are.
	// +optional
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:Pattern=`^[0-9]{1,15}([KMGTP]i|[kMGTP])?$`
	Memory *resource.Quantity `json:"memory,omitempty"`

	// disk is how much all root disks together may have, for example 2T. Then each cluster says how large its machines
	// are. A machine type without a disk of its own counts for nothing.
	// +optional
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:Pattern=`^[0-9]{1,15}([KMGTP]i|[kMGTP])?$`
	Disk *resource.Quantity `json:"disk,omitempty"`
}

// TenantAllowances is what clusters may be made of. A list that is left out, or empty, allows all. Clusters keep what
// they have when something is taken away.
type TenantAllowances struct {
	// providers that clusters may name.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=63
	Providers []string `json:"providers,omitempty"`

	// stacks that clusters may be made of.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=63
	Stacks []string `json:"stacks,omitempty"`

	// machineTypes that clusters may have, by the provider's names or portable ones. Then each cluster says its types.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=256
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	MachineTypes []string `json:"machineTypes,omitempty"`

	// parameters are bounded by the values they may have, each by its name. A parameter that is not here may have any
	// value that the stack takes; one that a cluster does not write has the value that the stack says.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=64
	Parameters []AllowedParameter `json:"parameters,omitempty"`
}

// AllowedParameter is what one parameter may be.
type AllowedParameter struct {
	// name of the parameter.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name,omitempty"`

	// values that it may have; without any, nobody may write it.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	Values []apiextensionsv1.JSON `json:"values,omitempty"`
}

// TenantStatus is what was observed.
type TenantStatus struct {
	// observedGeneration is the generation of the spec that the status is about.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// namespace has all that is the tenant's.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Namespace string `json:"namespace,omitempty"`

	// namespaceUID is the UID of that namespace. If another has its name, the tenant is given nothing there.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	NamespaceUID string `json:"namespaceUID,omitempty"`

	// conditions of the object: Ready.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// Tenant is a customer: who belongs to it, what it may have, and the namespace with its clusters. To delete it takes
// its members' rights away and leaves namespace and clusters as they are.
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=tenants,scope=Cluster,categories=kaas
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Namespace",type=string,JSONPath=`.status.namespace`
// +kubebuilder:printcolumn:name="Plane",type=string,JSONPath=`.spec.plane`
// +kubebuilder:printcolumn:name="Title",type=string,JSONPath=`.spec.title`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 63",message="the name of a tenant has at most 63 characters"
type Tenant struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is standard. The name is that of the tenant.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what the tenant is given.
	// +optional
	Spec TenantSpec `json:"spec,omitempty,omitzero"`

	// status is what was observed.
	// +optional
	Status TenantStatus `json:"status,omitempty,omitzero"`
}

// NamespaceName returns the name of the tenant's namespace.
func (t *Tenant) NamespaceName() string {
	if t.Spec.Namespace != "" {
		return t.Spec.Namespace
	}
	return t.Name
}

// IsDedicated reports whether the tenant's clusters are in a plane of their own.
func (t *Tenant) IsDedicated() bool { return t.Spec.Plane == DedicatedPlane }

// TenantList is a list of Tenants.
// +kubebuilder:object:root=true
type TenantList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Tenant `json:"items"`
}
