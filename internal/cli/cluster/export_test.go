package cluster

import (
	"strings"
	"testing"

	"github.com/polder-kaas/polder/internal/program/exit"
)

const liveCluster = `apiVersion: polder.dev/v1alpha1
kind: WorkloadCluster
metadata:
  name: demo
  uid: u
  generation: 3
  resourceVersion: "9"
  finalizers: [polder.dev/workloadcluster]
  labels: {team: a, app.kubernetes.io/managed-by: x, example.org/own: keep}
  annotations: {kubectl.kubernetes.io/last-applied-configuration: x, note: keep, polder.dev/x: z}
spec:
  provider: here
  stack: {name: scs}
  controlPlane: {replicas: 1, machineType: SCS-2V-4}
  workers:
  - {name: own, replicas: 1, machineType: m1.small}
  - {name: odd, replicas: 1, machineType: m1.odd, zones: [a, b]}
  - {name: lost, replicas: 0, machineType: m1.unknown}
  parameters: {hereOnly: 1, ofStack: 2}
status: {phase: Ready}
`

func TestExport(t *testing.T) {
	f := newFakePlane(t, liveCluster, twoProviders)
	f.expectOutput(exit.OK, `apiVersion: polder.dev/v1alpha1
kind: WorkloadCluster
metadata:
  annotations:
    note: keep
  labels:
    example.org/own: keep
    team: a
  name: demo
spec:
  controlPlane:
    machineType: SCS-2V-4
    replicas: 1
  parameters:
    ofStack: 2
  stack:
    name: scs
  workers:
  - machineType: SCS-1V-2
    name: own
    replicas: 1
  - machine:
      cpu: 3
      disk: 20G
      memory: 5Gi
    name: odd
    replicas: 1
  - name: lost
    replicas: 0
`, `warning: pool odd: its zones a, b are left out; other providers have others
warning: pool lost: nobody knows what machines m1.unknown are, so it is left out and the provider's default is taken
warning: parameter hereOnly is left out; it is one of provider here
warning: polder apply of this file on demo itself would change its machines; for that, use --exact
`, "export", "demo")
	out, errs, code := f.runWithInput("", "export", "demo", "--exact", "-o", "json")
	if code != exit.OK || errs != "" || !strings.Contains(out, `"m1.unknown"`) || !strings.Contains(out, `"provider": "here"`) ||
		!strings.Contains(out, `"zones"`) || strings.Contains(out, "status") || strings.Contains(out, "uid") || strings.Contains(out, "finalizers") {
		t.Errorf("--exact ends with %d: %s%s", code, out, errs)
	}
}

// What is exported can be read again, and says the same.
func TestExportIsAFile(t *testing.T) {
	f := newFakePlane(t, liveCluster, twoProviders)
	out, _, _ := f.runWithInput("", "export", "demo")
	again, errs, code := f.runWithInput(out, "create", "-f", "-", "--dry-run")
	if code != exit.OK || again != out {
		t.Errorf("it ends with %d: %s\n%s\n%s", code, errs, out, again)
	}
	delete(f.objects, providerPath+"/here")
	if _, errs, code := f.runWithInput("", "export", "demo"); code != exit.OK || strings.Count(errs, "nobody knows what machines") != 3 {
		t.Errorf("without its provider it ends with %d: %s", code, errs)
	}
}
