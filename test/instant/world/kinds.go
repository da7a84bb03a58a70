package world

import (
	"net/http"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// kind is one kind that clusters serve.
type kind struct {
	schema.GroupVersionKind
	resource   string
	namespaced bool
}

// kinds are all that clusters serve: what Cluster API asks for, and what add-ons are mostly made of.
var kinds = func() []kind {
	var out []kind
	add := func(group string, namespaced bool, names ...string) {
		for _, n := range names {
			out = append(out, kind{schema.GroupVersionKind{Group: group, Version: "v1", Kind: n}, plural(n), namespaced})
		}
	}
	add("", false, "Node", "Namespace", "PersistentVolume")
	add("", true, "Pod", "ConfigMap", "Secret", "Service", "ServiceAccount", "PersistentVolumeClaim")
	add("apps", true, "Deployment", "DaemonSet", "StatefulSet")
	add("rbac.authorization.k8s.io", false, "ClusterRole", "ClusterRoleBinding")
	add("rbac.authorization.k8s.io", true, "Role", "RoleBinding")
	add("storage.k8s.io", false, "StorageClass", "VolumeAttachment")
	add("policy", true, "PodDisruptionBudget")
	return out
}()

// plural is the resource of a kind.
func plural(kind string) string {
	name := strings.ToLower(kind)
	if strings.HasSuffix(name, "s") {
		return name + "es"
	}
	return name + "s"
}

// findKind finds the kind of a resource.
func findKind(group, version, resource string) (kind, bool) {
	for _, k := range kinds {
		if k.Group == group && k.Version == version && k.resource == resource {
			return k, true
		}
	}
	return kind{}, false
}

var verbs = metav1.Verbs{"create", "delete", "get", "list", "patch", "update", "watch"}

// serveDiscovery answers with what clusters serve, in the form that every client understands.
func serveDiscovery(w http.ResponseWriter, path []string) {
	switch {
	case len(path) == 1 && path[0] == "api":
		writeJSON(w, http.StatusOK, metav1.APIVersions{
			TypeMeta: metav1.TypeMeta{Kind: "APIVersions"}, Versions: []string{"v1"}, ServerAddressByClientCIDRs: []metav1.ServerAddressByClientCIDR{},
		})
	case len(path) == 1:
		writeJSON(w, http.StatusOK, metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}, Groups: apiGroups()})
	case len(path) == 2 && path[0] == "apis":
		for _, g := range apiGroups() {
			if g.Name == path[1] {
				g.TypeMeta = metav1.TypeMeta{Kind: "APIGroup", APIVersion: "v1"}
				writeJSON(w, http.StatusOK, g)
				return
			}
		}
		writeStatus(w, http.StatusNotFound, metav1.StatusReasonNotFound, "there is no such group")
	default:
		gv := schema.GroupVersion{Version: path[len(path)-1]}
		if path[0] == "apis" {
			gv.Group = path[1]
		}
		serveResources(w, gv)
	}
}

// apiGroups are those beside the core group, each with one version.
func apiGroups() []metav1.APIGroup {
	var out []metav1.APIGroup
	for _, k := range kinds {
		if k.Group == "" || len(out) > 0 && out[len(out)-1].Name == k.Group {
			continue
		}
		v := metav1.GroupVersionForDiscovery{GroupVersion: k.GroupVersion().String(), Version: k.Version}
		out = append(out, metav1.APIGroup{Name: k.Group, Versions: []metav1.GroupVersionForDiscovery{v}, PreferredVersion: v})
	}
	return out
}

// serveResources answers with the resources of a group and version.
func serveResources(w http.ResponseWriter, gv schema.GroupVersion) {
	l := metav1.APIResourceList{TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}, GroupVersion: gv.String()}
	for _, k := range kinds {
		if k.GroupVersion() == gv {
			l.APIResources = append(l.APIResources, metav1.APIResource{
				Name: k.resource, SingularName: strings.ToLower(k.Kind), Kind: k.Kind, Namespaced: k.namespaced, Verbs: verbs,
			})
		}
	}
	if len(l.APIResources) == 0 {
		writeStatus(w, http.StatusNotFound, metav1.StatusReasonNotFound, "there is no such group and version")
		return
	}
	writeJSON(w, http.StatusOK, l)
}
