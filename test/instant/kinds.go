package instant

import (
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
)

// groupVersion is that of the provider's kinds.
var groupVersion = schema.GroupVersion{Group: "instant.polder.dev", Version: "v1alpha1"}

// kind is one of the provider's kinds; each has a template beside it.
type kind string

// All kinds.
const (
	clusterKind      kind = "InstantCluster"
	controlPlaneKind kind = "InstantControlPlane"
	machineKind      kind = "InstantMachine"
	configKind       kind = "InstantConfig"
)

var kinds = []kind{clusterKind, controlPlaneKind, machineKind, configKind}

func (k kind) template() kind { return k + "Template" }

func (k kind) plural() string { return strings.ToLower(string(k)) + "s" }

func (k kind) gvk() schema.GroupVersionKind { return groupVersion.WithKind(string(k)) }

// newObject returns an empty object of the kind.
func (k kind) newObject() *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(k.gvk())
	return u
}

// CRDs are the definitions of the provider's kinds. One label names the contract of Cluster API they fulfil, the other
// lets clusterctl move them.
func (p *Provider) CRDs() []*apiextensionsv1.CustomResourceDefinition {
	var out []*apiextensionsv1.CustomResourceDefinition
	for _, k := range kinds {
		out = append(out, k.definition(), k.template().definition())
	}
	return out
}

func (k kind) definition() *apiextensionsv1.CustomResourceDefinition {
	free := apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: ptr.To(true)}
	d := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{
		Name: k.plural() + "." + groupVersion.Group, Labels: map[string]string{"cluster.x-k8s.io/v1beta2": groupVersion.Version, "clusterctl.cluster.x-k8s.io": ""},
	}}
	d.Spec = apiextensionsv1.CustomResourceDefinitionSpec{
		Group: groupVersion.Group, Scope: apiextensionsv1.NamespaceScoped,
		Names: apiextensionsv1.CustomResourceDefinitionNames{
			Kind: string(k), ListKind: string(k) + "List", Plural: k.plural(), Singular: strings.ToLower(string(k)), Categories: []string{"cluster-api"},
		},
		Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
			Name: groupVersion.Version, Served: true, Storage: true,
			Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
				Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{"spec": free, "status": free},
			}},
		}},
	}
	if k == controlPlaneKind {
		// Only here is it asked which generation a status is of. The others are written at once, spec and status.
		d.Spec.Versions[0].Subresources = &apiextensionsv1.CustomResourceSubresources{Status: &apiextensionsv1.CustomResourceSubresourceStatus{}}
	}
	return d
}
