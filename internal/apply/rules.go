package apply

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Rule checks one object and returns an error if it is not allowed. The error is a sentence that names the object
// and the rule. The rule sees the object in its namespace, before labels and owner references are added.
type Rule func(Ref, *unstructured.Unstructured) error

// OnlyNamespace allows objects of one namespace, and no cluster-scoped ones.
func OnlyNamespace(namespace string) Rule {
	return func(r Ref, _ *unstructured.Unstructured) error {
		switch r.Namespace {
		case namespace:
			return nil
		case "":
			return fmt.Errorf(
				"%s is not allowed: it is for the whole cluster, and only objects of namespace %s are allowed here", r, namespace,
			)
		}
		return fmt.Errorf("%s is not allowed: only objects of namespace %s are allowed here; leave the namespace out in the chart", r, namespace)
	}
}

// NoOwnerReferences allows no object with owner references, finalizers or managed fields: with those a chart
// could tie its objects to what belongs to others.
func NoOwnerReferences() Rule {
	return func(r Ref, u *unstructured.Unstructured) error {
		for _, field := range []string{"ownerReferences", "finalizers", "managedFields"} {
			v, _, _ := unstructured.NestedFieldNoCopy(u.Object, "metadata", field)
			if list, ok := v.([]any); v == nil || ok && len(list) == 0 {
				continue
			}
			return fmt.Errorf("%s is not allowed: it has metadata.%s, which no rendered object may have; remove it in the chart",
				r, field)
		}
		return nil
	}
}

// NoKubeadmObjects allows no objects that kubeadm keeps in a cluster, and no nodes: add-ons that bring those
// would cut off machines, or let strangers join.
func NoKubeadmObjects() Rule {
	return func(r Ref, u *unstructured.Unstructured) error {
		if !isKubeadmObject(r, u) {
			return nil
		}
		return fmt.Errorf("%s is not allowed: it belongs to kubeadm or to the nodes of the cluster; remove it from the chart",
			r)
	}
}

func isKubeadmObject(r Ref, u *unstructured.Unstructured) bool {
	if r.Group == "rbac.authorization.k8s.io" {
		return strings.HasPrefix(r.Name, "kubeadm:")
	}
	if r.Group != "" {
		return false
	}
	name := r.Namespace + "/" + r.Name
	switch r.Kind {
	case "Node":
		return true
	case "ConfigMap":
		return name == "kube-system/kubeadm-config" || name == "kube-public/cluster-info" ||
			strings.HasPrefix(name, "kube-system/kubelet-config")
	case "Secret":
		return strings.HasPrefix(name, "kube-system/bootstrap-token-") || u.Object["type"] == "bootstrap.kubernetes.io/token"
	case "Pod":
		_, mirror := u.GetAnnotations()["kubernetes.io/config.mirror"]
		return mirror
	}
	return false
}
