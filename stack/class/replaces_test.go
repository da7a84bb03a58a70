package class_test

import (
	"testing"

	"github.com/polder-kaas/polder/stack/class"
	"github.com/polder-kaas/polder/stack/render"
)

const patchedClass = `apiVersion: cluster.x-k8s.io/v1beta2
kind: ClusterClass
metadata: {name: c}
spec:
  infrastructure: {templateRef: {apiVersion: i/v1, kind: InfraClusterTemplate, name: c}}
  controlPlane:
    templateRef: {apiVersion: controlplane.cluster.x-k8s.io/v1beta2, kind: KubeadmControlPlaneTemplate, name: c}
    machineInfrastructure: {templateRef: {apiVersion: i/v1, kind: InfraMachineTemplate, name: c}}
  patches:
    - name: both
      definitions:
        - selector: {kind: InfraMachineTemplate, matchResources: {controlPlane: true, machineDeploymentClass: {names: [w]}}}
          jsonPatches: [{op: add, path: /spec/template/spec/flavor, valueFrom: {variable: flavor}}]
    - name: control plane
      enabledIf: "{{ if .oidc }}true{{ end }}"
      definitions:
        - selector: {kind: KubeadmControlPlaneTemplate, matchResources: {controlPlane: true}}
          jsonPatches: [{op: add, path: /spec/template/spec/kubeadmConfigSpec/files, value: []}]
    - name: in place
      definitions:
        - selector: {kind: KubeadmControlPlaneTemplate, matchResources: {controlPlane: true}}
          jsonPatches: [{op: add, path: /spec/template/spec/remediation/maxRetry, valueFrom: {variable: retries}}]
    - name: workers
      definitions:
        - selector: {kind: KubeadmConfigTemplate, matchResources: {machineDeploymentClass: {names: [w]}}}
          jsonPatches: [{op: add, path: /spec/template/spec/files, valueFrom: {template: "{{ range $.mirrors }}{{ .flavorful }}{{ end }}"}}]
        - selector: {kind: KubeadmConfigTemplate, matchResources: {machineDeploymentClass: {names: [w]}}}
          jsonPatches: [{op: add, path: /spec/template/spec/x, valueFrom: {variable: "proxy.host"}}]
    - name: network
      definitions:
        - selector: {kind: InfraClusterTemplate, matchResources: {infrastructureCluster: true}}
          jsonPatches: [{op: add, path: /spec/template/spec/cidr, valueFrom: {variable: nodeCIDR}}]
`

func TestReplaces(t *testing.T) {
	find := func(text string) *class.Class {
		c, err := class.Find(render.ParseObjects([]render.File{{Path: "c.yaml", Text: text}}).Objects)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	c := find(patchedClass)
	for name, want := range map[string]class.Machines{
		"flavor":   {ControlPlane: true, Workers: true},
		"oidc":     {ControlPlane: true},
		"retries":  {},
		"mirrors":  {Workers: true},
		"proxy":    {Workers: true},
		"nodeCIDR": {},
		"addon":    {}, // only values of add-ons have it
		"host":     {},
	} {
		if got := c.Replaces(name); got != want {
			t.Errorf("%s: %+v, want %+v", name, got, want)
		}
	}
	foreign := find(patchedClass + "    - {name: e, external: {generatePatchesExtension: x}}\n")
	if got := foreign.Replaces("addon"); !got.Unknown {
		t.Errorf("an external patch: %+v", got)
	}
}
