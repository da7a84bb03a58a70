package workloadcluster

import "testing"

func TestSummarizeMessage(t *testing.T) {
	for name, c := range map[string]struct{ give, want string }{
		"nothing":                {"", ""},
		"a sentence":             {"Cluster is upgrading to v1.36.3", "Cluster is upgrading to v1.36.3"},
		"a sentence, and a list": {"* Cluster is upgrading to v1.36.3\n  * KubeadmControlPlane upgrading", "Cluster is upgrading to v1.36.3"},
		"a machine": {"* Machine demo-x:\n  * InfrastructureReady: waiting for bootstrap data\n  * NodeHealthy: Waiting",
			"demo-x: waiting for bootstrap data"},
		"what helps nobody":        {"* Machine demo-x:\n  * InfrastructureReady: LocalMachine status.initialization.provisioned is false\n  * NodeHealthy: no heartbeat", "demo-x: no heartbeat"},
		"nothing but that":         {"* Machine demo-x:\n  * NodeHealthy: Waiting for Cluster control plane to be initialized", ""},
		"another machine knows":    {"* Machine a:\n  * X: Waiting for Cluster control plane to be initialized\n* Machine b:\n  * Y: broken", "b: broken"},
		"several machines":         {"* Machines a, b:\n  * InfrastructureReady: the machine is starting", "Machines a, b: the machine is starting"},
		"an item without its name": {"* Machine a:\n  * KubeadmConfig is not up-to-date", "a: KubeadmConfig is not up-to-date"},
		"a list below a condition": {"* Machine a:\n  * InfrastructureReady:\n    * LocalMachine: kube-apiserver ended: no such flag", "a: kube-apiserver ended: no such flag"},
		"a heading and no list":    {"* Machine a:\n  * InfrastructureReady:", ""},
		"not yet":                  {"Control plane not yet initialized", ""},
		"empty lines":              {"\n\n* Machine a:\n\n  * X: broken\n", "a: broken"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := summarizeMessage(c.give); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}
