package plane

import (
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
)

// TestKinds lists every kind the plane must serve, in every version, from etcd.
func TestKinds(t *testing.T) {
	cfg := shared.Get(t).RESTConfig(t)
	client, err := dynamic.NewForConfig(cfg)
	if err != nil {
		t.Fatal(err)
	}
	both := []string{"v1beta2", "v1beta1"}
	want := []struct {
		group    string
		versions []string
		plurals  []string
	}{
		{"", []string{"v1"}, []string{"namespaces", "secrets", "configmaps", "events", "serviceaccounts", "resourcequotas"}},
		{"events.k8s.io", []string{"v1"}, []string{"events"}},
		{"coordination.k8s.io", []string{"v1"}, []string{"leases"}},
		{"rbac.authorization.k8s.io", []string{"v1"}, []string{"roles", "rolebindings", "clusterroles", "clusterrolebindings"}},
		{"apiextensions.k8s.io", []string{"v1"}, []string{"customresourcedefinitions"}},
		{"apiregistration.k8s.io", []string{"v1"}, []string{"apiservices"}},
		{"certificates.k8s.io", []string{"v1"}, []string{"certificatesigningrequests", "clustertrustbundles"}},
		{"flowcontrol.apiserver.k8s.io", []string{"v1"}, []string{"flowschemas", "prioritylevelconfigurations"}},
		{"admissionregistration.k8s.io", []string{"v1"}, []string{
			"mutatingwebhookconfigurations", "validatingwebhookconfigurations", "validatingadmissionpolicies", "validatingadmissionpolicybindings",
		}},
		{"cluster.x-k8s.io", both, []string{
			"clusters", "clusterclasses", "machines", "machinesets", "machinedeployments", "machinepools", "machinehealthchecks", "machinedrainrules",
		}},
		{"addons.cluster.x-k8s.io", both, []string{"clusterresourcesets", "clusterresourcesetbindings"}},
		{"ipam.cluster.x-k8s.io", both, []string{"ipaddresses", "ipaddressclaims"}},
		{"runtime.cluster.x-k8s.io", []string{"v1beta2", "v1alpha1"}, []string{"extensionconfigs"}},
		{"bootstrap.cluster.x-k8s.io", both, []string{"kubeadmconfigs", "kubeadmconfigtemplates"}},
		{"controlplane.cluster.x-k8s.io", both, []string{"kubeadmcontrolplanes", "kubeadmcontrolplanetemplates"}},
	}
	for _, g := range want {
		for _, v := range g.versions {
			for _, r := range g.plurals {
				gvr := schema.GroupVersionResource{Group: g.group, Version: v, Resource: r}
				if _, err := client.Resource(gvr).List(t.Context(), metav1.ListOptions{Limit: 1}); err != nil {
					t.Errorf("%s: %v", gvr, err)
				}
			}
		}
	}
}

// TestDiscovery makes sure that no group is broken, since kubectl and garbage collection trip
// over a single one, and that the plane does not promise kinds that nothing would run.
func TestDiscovery(t *testing.T) {
	d, err := discovery.NewDiscoveryClientForConfig(shared.Get(t).RESTConfig(t))
	if err != nil {
		t.Fatal(err)
	}
	_, lists, err := d.ServerGroupsAndResources()
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, l := range lists {
		for _, r := range l.APIResources {
			names = append(names, r.Name)
		}
	}
	for _, absent := range []string{"pods", "nodes", "services", "deployments"} {
		if slices.Contains(names, absent) {
			t.Errorf("the plane serves %s, but nothing would run them", absent)
		}
	}
}

// TestExplain asks for what `kubectl explain` needs: the schema of every group, with descriptions.
func TestExplain(t *testing.T) {
	d, err := discovery.NewDiscoveryClientForConfig(shared.Get(t).RESTConfig(t))
	if err != nil {
		t.Fatal(err)
	}
	out, err := polder(t, shared.Get(t).Tree, "--data-dir", shared.Get(t).Data, "kubectl", "explain", "cluster.spec.topology.classRef")
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, text := range []string{"KIND:       Cluster", "VERSION:    v1beta2", "classRef is the ref to the ClusterClass"} {
		if !strings.Contains(out, text) {
			t.Errorf("explain lacks %q:\n%s", text, out)
		}
	}
	paths, err := d.OpenAPIV3().Paths()
	if err != nil {
		t.Fatal(err)
	}
	for _, gv := range []string{"apis/cluster.x-k8s.io/v1beta2", "apis/cluster.x-k8s.io/v1beta1", "apis/controlplane.cluster.x-k8s.io/v1beta2", "api/v1"} {
		if paths[gv] == nil {
			t.Errorf("no OpenAPI schema for %s", gv)
			continue
		}
		if b, err := paths[gv].Schema("application/json"); err != nil || len(b) < 1000 {
			t.Errorf("schema of %s: %d bytes, %v", gv, len(b), err)
		}
	}
}
