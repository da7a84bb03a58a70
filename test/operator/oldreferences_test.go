package operator

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	csv1 "github.com/polder-kaas/polder/api/clusterstack/v1alpha1"
	"github.com/polder-kaas/polder/stack/archive"
)

// oldClass is a class as stacks for the operator that came before have it: Cluster API's version before this one, in the
// class as well as in its references.
const oldClass = `
{{- $class := printf "%s-%s" .Release.Name .Chart.Version -}}
apiVersion: cluster.x-k8s.io/v1beta1
kind: ClusterClass
metadata:
  name: {{ $class }}
spec:
  infrastructure:
    ref: {apiVersion: infrastructure.cluster.x-k8s.io/v1alpha1, kind: LocalClusterTemplate, name: {{ $class }}-cluster}
  controlPlane:
    ref: {apiVersion: controlplane.cluster.x-k8s.io/v1beta1, kind: KubeadmControlPlaneTemplate, name: {{ $class }}-control-plane}
    machineInfrastructure:
      ref: {apiVersion: infrastructure.cluster.x-k8s.io/v1alpha1, kind: LocalMachineTemplate, name: {{ $class }}-machine}
  workers:
    machineDeployments:
      - class: default-worker
        template:
          bootstrap:
            ref: {apiVersion: bootstrap.cluster.x-k8s.io/v1beta1, kind: KubeadmConfigTemplate, name: {{ $class }}-worker}
          infrastructure:
            ref: {apiVersion: infrastructure.cluster.x-k8s.io/v1alpha1, kind: LocalMachineTemplate, name: {{ $class }}-machine}
---
apiVersion: infrastructure.cluster.x-k8s.io/v1alpha1
kind: LocalClusterTemplate
metadata: {name: {{ $class }}-cluster}
spec: {template: {spec: {}}}
---
apiVersion: infrastructure.cluster.x-k8s.io/v1alpha1
kind: LocalMachineTemplate
metadata: {name: {{ $class }}-machine}
spec: {template: {spec: {}}}
---
apiVersion: controlplane.cluster.x-k8s.io/v1beta1
kind: KubeadmControlPlaneTemplate
metadata: {name: {{ $class }}-control-plane}
spec:
  template:
    spec:
      kubeadmConfigSpec:
        clusterConfiguration:
          apiServer:
            extraArgs: {profiling: "false"}
        initConfiguration: {nodeRegistration: {kubeletExtraArgs: {node-labels: from=init}}}
        joinConfiguration: {nodeRegistration: {kubeletExtraArgs: {node-labels: from=join}}}
---
apiVersion: bootstrap.cluster.x-k8s.io/v1beta1
kind: KubeadmConfigTemplate
metadata: {name: {{ $class }}-worker}
spec: {template: {spec: {joinConfiguration: {nodeRegistration: {kubeletExtraArgs: {node-labels: from=join}}}}}}
`

// withOldClass gives a stack such a class.
func withOldClass(files archive.Tree) {
	for _, name := range files.Names() {
		if strings.HasPrefix(name, "cluster-class/templates/") {
			delete(files, name)
		}
	}
	files["cluster-class/templates/class.yaml"] = []byte(oldClass)
}

// Releases with references in old versions become ready and clusters are made of them, whichever convention their
// add-ons follow. That the references are old is said, and stops nobody.
func TestOldReferences(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(archive.Tree){
		"stages":    withOldClass,
		"one chart": func(files archive.Tree) { withOldClass(files); oneChart("1-36", mapOf("stays"))(files) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWalk(t)
			w.publish(t, "1.36", "v1", change)
			w.stack(t, "old", "1.36", nil)
			w.becomesReady(t, "old", "v1")
			w.says(t, &csv1.ClusterStackRelease{}, "local-scs-1-36-v1", csv1.ConditionOldReferences, metav1.ConditionTrue,
				csv1.ReasonOldVersion, "KubeadmControlPlaneTemplate local-scs-1-36-v1-control-plane: current: v1beta1, latest: v1beta2")
			w.makeCluster(t, "1.36", "v1")
			w.addonsFrom(t, "local-scs-1-36-v1")
		})
	}
}
