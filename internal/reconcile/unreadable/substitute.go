package unreadable

import (
	"encoding/json"
	"reflect"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	toolscache "k8s.io/client-go/tools/cache"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/polder-kaas/polder/api/v1alpha1"
)

// examined is an object as it came, and what is wrong with it.
type examined struct {
	toolscache.ObjectName // its key in the informer's store
	UID                   types.UID
	ResourceVersion       string

	raw     []byte
	problem error // nil if it can be read
}

// examine tries to decode an object as the informer will. Names come from metadata, which the API server decodes
// itself and serves without what is wrong in it.
func (k *kindFilter) examine(raw []byte) examined {
	var o struct {
		Metadata struct {
			Namespace       string    `json:"namespace"`
			Name            string    `json:"name"`
			UID             types.UID `json:"uid"`
			ResourceVersion string    `json:"resourceVersion"`
		} `json:"metadata"`
	}
	err := utiljson.Unmarshal(raw, &o)
	if err == nil {
		err = k.decode(raw)
	}
	m := o.Metadata
	return examined{
		ObjectName: toolscache.NewObjectName(m.Namespace, m.Name), UID: m.UID,
		ResourceVersion: m.ResourceVersion, raw: raw, problem: err,
	}
}

// decode decodes as Kubernetes' clients do.
func (k *kindFilter) decode(raw []byte) error {
	return utiljson.Unmarshal(raw, reflect.New(k.goType).Interface())
}

// substitute records an unreadable object and returns what the informer gets instead; nil if it gets nothing. hasIt
// says that the informer has that already.
func (k *kindFilter) substitute(o examined) (instead json.RawMessage, hasIt bool) {
	part, wrong := removeUnreadable(o.raw, k.decode)
	k.setBad(Object{
		Kind: k.gvk, Namespace: o.Namespace, Name: o.Name, UID: o.UID, ResourceVersion: o.ResourceVersion,
		Problem: describeFields(wrong, o.problem),
	})
	if last := k.lastReadable(o); last != nil {
		return encode(last), true
	}
	if part == nil || !k.isCounted() {
		return nil, false
	}
	k.pause(part)
	return encode(part), false
}

// lastReadable returns the version of the object that the informer has; nil if it has none, or only a part.
func (k *kindFilter) lastReadable(o examined) client.Object {
	stored, ok, err := k.store.GetByKey(o.String())
	last, isObject := stored.(client.Object)
	// Under the same name there may be an earlier object, whose deletion the informer has not handled yet.
	if err != nil || !ok || !isObject || last.GetUID() != o.UID || isPartial(last) {
		return nil
	}
	last, _ = last.DeepCopyObject().(client.Object)
	last.GetObjectKind().SetGroupVersionKind(k.gvk)
	return last
}

// isPartial reports whether an object from the store lacks fields that could not be read.
func isPartial(o client.Object) bool {
	return o.GetAnnotations()[v1alpha1.UnreadableAnnotation] != "" && o.GetResourceVersion() == v1alpha1.UnreadableVersion
}

// isCounted reports whether the absence of an object of this kind from a cache would be acted on.
func (k *kindFilter) isCounted() bool {
	return k.gvk.Group == clusterv1.GroupVersion.Group &&
		slices.Contains([]string{"Cluster", "Machine", "MachineSet", "MachineDeployment", "MachinePool"}, k.gvk.Kind)
}

// pause makes controllers leave an object alone of which a part is missing.
func (k *kindFilter) pause(part map[string]any) {
	u := unstructured.Unstructured{Object: part}
	a := u.GetAnnotations()
	if a == nil {
		a = map[string]string{}
	}
	a[v1alpha1.UnreadableAnnotation], a[clusterv1.PausedAnnotation] = "true", "true"
	u.SetAnnotations(a)
	u.SetResourceVersion(v1alpha1.UnreadableVersion)
	if k.gvk.Kind == "Cluster" {
		spec, _ := part["spec"].(map[string]any)
		if spec == nil {
			spec = map[string]any{}
		}
		spec["paused"] = true
		part["spec"] = spec
	}
}

// describeDeleted returns an unreadable object for the event of its deletion: handlers want the spec they knew.
func (k *kindFilter) describeDeleted(o examined) json.RawMessage {
	if last := k.lastReadable(o); last != nil {
		last.SetResourceVersion(o.ResourceVersion)
		return encode(last)
	}
	var m metav1.PartialObjectMetadata
	if utiljson.Unmarshal(o.raw, &m) != nil {
		m.Namespace, m.Name, m.UID, m.ResourceVersion = o.Namespace, o.Name, o.UID, o.ResourceVersion
	}
	m.SetGroupVersionKind(k.gvk)
	return encode(m)
}

// encode encodes what was decoded before.
func encode(o any) json.RawMessage {
	b, err := json.Marshal(o)
	if err != nil {
		return nil
	}
	return b
}
