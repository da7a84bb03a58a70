package local

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/yaml"

	"github.com/polder-kaas/polder/internal/providers/local/hostapi"
	"github.com/polder-kaas/polder/test/testenv"
)

// hostileArgs are what an administrator of the workload cluster would like its next API server to have.
var hostileArgs = map[string]string{
	"etcd-servers": "unix:///../../../../../etcd.sock", "encryption-provider-config": "../../../../../pki/encryption.yaml",
}

// tamper changes kubeadm's configuration in the workload cluster, as its administrator can.
func (c *cluster) tamper(t *testing.T) {
	t.Helper()
	k := c.workload(t).CoreV1().ConfigMaps("kube-system")
	m, err := k.Get(t.Context(), "kubeadm-config", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	config := map[string]any{}
	if err := yaml.Unmarshal([]byte(m.Data["ClusterConfiguration"]), &config); err != nil {
		t.Fatal(err)
	}
	args := []any{}
	for name, value := range hostileArgs {
		args = append(args, map[string]any{"name": name, "value": value})
	}
	config["apiServer"] = map[string]any{"extraArgs": args}
	b, err := yaml.Marshal(config)
	if err != nil {
		t.Fatal(err)
	}
	m.Data["ClusterConfiguration"] = string(b)
	if _, err := k.Update(t.Context(), m, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// apiServers are the API servers by the addresses of their machines.
func apiServers(s hostapi.Status) map[string]hostapi.ProcessStatus {
	all := map[string]hostapi.ProcessStatus{}
	for _, m := range s.Machines {
		for _, p := range m.Processes {
			if p.Name == "kube-apiserver" {
				all[m.Address] = p
			}
		}
	}
	return all
}

// A control plane that joins is configured by the plane, whatever the workload cluster says.
func TestJoinDoesNotTrustTheWorkloadCluster(t *testing.T) {
	p := testenv.StartPlane(t)
	c := create(t, p, "tampered", newVersion, options{cluster: small("")})
	c.awaitAvailable(t, createTimeout)
	c.tamper(t)
	c.patch(t, func(o *clusterv1.Cluster) { o.Spec.Topology.ControlPlane.Replicas = ptr.To[int32](3) })
	c.awaitControlPlane(t, createTimeout, 3, newVersion)
	servers := apiServers(c.host(t))
	if len(servers) != 3 {
		t.Fatalf("API servers: %v", servers)
	}
	var names []string
	for address, p := range servers {
		if want := fmt.Sprintf("--etcd-servers=https://%s:2379", address); !slices.Contains(p.Command, want) {
			t.Errorf("%s is not in %q", want, p.Command)
		}
		var have []string
		for _, a := range p.Command {
			name, value, _ := strings.Cut(a, "=")
			have = append(have, name)
			if hostile := hostileArgs[strings.TrimPrefix(name, "--")]; hostile != "" && strings.Contains(value, hostile) || strings.Contains(value, "..") {
				t.Errorf("the workload cluster configured %s", a)
			}
		}
		slices.Sort(have)
		if names != nil && !slices.Equal(names, have) {
			t.Errorf("API servers have different flags: %q and %q", names, have)
		}
		names = have
	}
	if names := members(t, c, machineWithStore(t, c)); len(names) != 3 {
		t.Errorf("members of the store: %v, want three", names)
	}
}
