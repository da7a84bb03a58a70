package apply

import (
	"cmp"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Ref names an object. Two of them are the same object if their keys are equal.
type Ref struct{ Group, Version, Kind, Namespace, Name string }

// Key is all of a Ref but the version: an object is the same in all versions of its kind.
type Key struct{ Group, Kind, Namespace, Name string }

// RefOf returns the Ref of u, with the namespace that u itself names.
func RefOf(u *unstructured.Unstructured) Ref {
	gvk := u.GroupVersionKind()
	return Ref{Group: gvk.Group, Version: gvk.Version, Kind: gvk.Kind, Namespace: u.GetNamespace(), Name: u.GetName()}
}

// Key returns the key of the object.
func (r Ref) Key() Key {
	return Key{Group: r.Group, Kind: r.Kind, Namespace: r.Namespace, Name: r.Name}
}

// GroupVersionKind returns the kind of the object, with its version.
func (r Ref) GroupVersionKind() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: r.Group, Version: r.Version, Kind: r.Kind}
}

// String names the object as people do: Deployment kube-system/cilium.
func (r Ref) String() string {
	if r.Namespace == "" {
		return r.Kind + " " + r.Name
	}
	return r.Kind + " " + r.Namespace + "/" + r.Name
}

// kubectlCommand is a kubectl command that applies a verb to the object.
func (r Ref) kubectlCommand(verb string) string {
	words := []string{"kubectl", verb}
	if r.Namespace != "" {
		words = append(words, "-n", r.Namespace)
	}
	kind := strings.ToLower(r.Kind)
	if r.Group != "" {
		kind += "." + r.Group
	}
	return strings.Join(append(words, kind, r.Name), " ")
}

func compareKeys(a, b Key) int {
	return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Kind, b.Kind),
		cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}
