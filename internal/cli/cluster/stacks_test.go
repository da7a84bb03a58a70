package cluster

import (
	"net/http"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/polder-kaas/polder/internal/program/exit"
)

func stackIn(namespace, name, minor, rest string) string {
	return "{apiVersion: clusterstack.x-k8s.io/v1alpha1, kind: ClusterStack, metadata: {name: " + name + ", namespace: " + namespace +
		"}, spec: {provider: local, name: scs, kubernetesVersion: '" + minor + "'}" + rest + "}"
}

func TestStacks(t *testing.T) {
	f := newFakePlane(t)
	f.expectOutput(exit.OK, "", "There is no stack for namespace default. Whoever runs the plane adds one; how, says: polder stack status\n", "stacks")
	f.add(stackIn("default", "b", "1.10", ""))
	f.add(stackIn("polder-catalogue", "c", "1.9", ", status: {latestRelease: 'local-scs-1-9-v10 | v1.9.3', conditions: [{type: Ready, status: 'True'}]}"))
	f.add(stackIn("other", "d", "1.36", ""))
	f.expectOutput(exit.OK, `PROVIDER   STACK   KUBERNETES   CHANNEL   NEWEST         READY     NAMESPACE
local      scs     1.9          stable    v10 (v1.9.3)   True      polder-catalogue
local      scs     1.10         stable    -              Unknown   default
`, "", "stacks")
	if out, _, code := f.runWithInput("", "stacks", "-A"); code != exit.OK || strings.Count(out, "\n") != 4 {
		t.Errorf("-A ends with %d: %s", code, out)
	}
	f.expectOutput(exit.OK, "clusterstack/c\nclusterstack/d\n", "", "stacks", "-n", "other", "-o", "name")
	f.expectOutput(exit.Usage, "", "--namespace and --all-namespaces contradict each other; give one of them", "stacks", "-A", "-n", "x")
	f.refuse["GET "+stackPath] = refusal(http.StatusForbidden, metav1.StatusReasonForbidden, "",
		`User "anna" cannot list resource "clusterstacks" in API group "clusterstack.x-k8s.io" in the namespace "default"`)
	f.expectOutput(exit.OK, "clusterstack/c\n",
		"warning: listing stacks: anna may not list clusterstacks in namespace default; ask the plane's operator for the right, or choose another namespace with -n\n", "stacks", "-o", "name")
	delete(f.objects, strings.Replace(stackPath, "default", "polder-catalogue", 1)+"/c")
	f.expectOutput(exit.Failure, "",
		"listing stacks: anna may not list clusterstacks in namespace default; ask the plane's operator for the right, or choose another namespace with -n", "stacks")
}

// A customer sees what can be chosen before an error says it.
func TestStackParameters(t *testing.T) {
	f := newFakePlane(t)
	f.expectOutput(exit.Usage, "", `there is no stack "scs", and no other`, "stacks", "scs")
	f.add(stackIn("default", "b", "1.37", ""))
	f.expectOutput(exit.Failure, "", "stack scs has no release yet; why, says: polder stack status", "stacks", "scs")
	f.add(stackIn("polder-catalogue", "c", "1.36", ", status: {latestRelease: 'local-scs-1-36-v2 | v1.36.6'}"))
	f.add(stackIn("polder-catalogue", "d", "1.35", ", status: {latestRelease: 'local-scs-1-35-v1 | v1.35.10'}"))
	f.add(`{apiVersion: clusterstack.x-k8s.io/v1alpha1, kind: ClusterStackRelease, metadata: {name: local-scs-1-35-v1, namespace: polder-catalogue}}`)
	f.add(`{apiVersion: clusterstack.x-k8s.io/v1alpha1, kind: ClusterStackRelease, metadata: {name: local-scs-1-36-v2, namespace: polder-catalogue}, status: {parameters: [
  {name: flavor, type: string, default: '"SCS-2V-4"', allowed: 'like ^SCS-', description: "The shape.\nOf all.", replaces: All},
  {name: mirrors, type: list of object, replaces: ControlPlane},
  {name: 'mirrors[].host', type: string, required: true, replaces: ControlPlane},
  {name: level, type: string, allowed: '"a", "b"', replaces: None}, {name: x, type: string, replaces: Workers}, {name: z, type: integer, replaces: Unknown}]}}`)
	f.expectOutput(exit.OK, `Stack scs of provider local, release local-scs-1-36-v2, Kubernetes v1.36.6
Set these in spec.parameters. REPLACES names the machines that are replaced when one changes.
One that the provider sets from another field, such as machineType, is refused with the name of that field.

PARAMETER                   TYPE             DEFAULT      ALLOWED      REPLACES        MEANING
flavor                      string           "SCS-2V-4"   like ^SCS-   all machines    The shape. Of all.
mirrors                     list of object   -            -            control plane   -
mirrors[].host (required)   string           -            -            control plane   -
level                       string           -            "a", "b"     none            -
x                           string           -            -            workers         -
z                           integer          -            -            perhaps         -
`, "", "stacks", "scs")
	out, _, code := f.runWithInput("", "stacks", "scs", "-o", "yaml")
	for _, want := range []string{"- kubernetes: v1.36.6\n", "  release: local-scs-1-36-v2\n", "default: '\"SCS-2V-4\"'", "  - allowed: like ^SCS-", "replaces: All", "required: true"} {
		if code != exit.OK || !strings.Contains(out, want) {
			t.Errorf("%d, %s, want %s", code, out, want)
		}
	}
	f.expectOutput(exit.OK, "clusterstackrelease/local-scs-1-36-v2\n", "", "stacks", "scs", "-o", "name")
	f.expectOutput(exit.OK, `Stack scs of provider local, release local-scs-1-35-v1, Kubernetes v1.35.10
It has no parameters, or the plane has not listed them yet.
`, "", "stacks", "scs", "--kubernetes", "1.35")
	f.add("{apiVersion: polder.dev/v1alpha1, kind: Provider, metadata: {name: here}, status: {stackProvider: local, parameters: {" +
		"network: {type: object, description: Where., required: [name], properties: {name: {type: string, enum: [a, b]}}}}}}")
	f.add("{apiVersion: polder.dev/v1alpha1, kind: Provider, metadata: {name: other}, status: {stackProvider: other, parameters: {no: {type: string}}}}")
	f.expectOutput(exit.OK, `Stack scs of provider local, release local-scs-1-35-v1, Kubernetes v1.35.10
It has no parameters, or the plane has not listed them yet.

And these, which provider here takes whatever the stack:

PARAMETER                 TYPE     DEFAULT   ALLOWED    REPLACES   MEANING
network                   object   -         -          perhaps    Where.
network.name (required)   string   -         "a", "b"   perhaps    -
`, "", "stacks", "scs", "--kubernetes", "1.35")
	if out, _, _ := f.runWithInput("", "stacks", "scs", "-o", "yaml"); !strings.Contains(out, "providerParameters:\n    here:\n") || strings.Contains(out, "other") {
		t.Errorf("%s", out)
	}
	f.expectOutput(exit.Usage, "", "stack scs is not there for Kubernetes 1.30; choose from: 1.35, 1.36, 1.37", "stacks", "scs", "--kubernetes", "1.30")
	f.expectOutput(exit.Usage, "", `there is no stack "sss"; choose from: scs; did you mean scs?`, "stacks", "sss")
	f.expectOutput(exit.Usage, "", "--kubernetes needs the name of a stack", "stacks", "--kubernetes", "1.36")
	if out, _, _ := f.runWithInput("", "__complete", "stacks", ""); out != "scs\n:4\n" {
		t.Errorf("it completes to %q", out)
	}
}

func TestProviders(t *testing.T) {
	f := newFakePlane(t)
	f.expectOutput(exit.OK, "", "There are no providers yet, so no cluster can be made; the plane's operator installs them.\n", "providers")
	f.expectOutput(exit.Usage, "", `there is no provider "x", and no other`, "providers", "x")
	f.add(twoProviders)
	f.add("{apiVersion: polder.dev/v1alpha1, kind: Provider, metadata: {name: any}, status: {title: All shapes, version: v1, anyShape: true, capabilities: [a, b], conditions: [{type: Ready, status: 'False', message: 'no\nroom'}]}}")
	f.expectOutput(exit.OK, `NAME   READY     TITLE        VERSION   CAPABILITIES   MACHINE-TYPES   MESSAGE
any    False     All shapes   v1        a,b            any             no room
here   Unknown   -            -         -              3               -
`, "", "providers")
	f.expectOutput(exit.OK, `Provider here: 
Ready: Unknown
Zones: a, b

MACHINE-TYPE   PORTABLE   CPU   MEMORY    DISK
m1.small       SCS-1V-2   1     2 GiB     -
m1.odd         -          3     5 GiB     20 GB
m1.huge        -          64    512 GiB   -
`, "", "providers", "here")
	f.expectOutput(exit.OK, `Provider any: All shapes, v1
Ready: False: no room
Capabilities: a, b
Machines: any shape, so every portable name such as SCS-2V-4 works
`, "", "providers", "any")
	f.expectOutput(exit.Usage, "", `there is no provider "x"; choose from: any, here`, "providers", "x")
	f.expectOutput(exit.OK, "provider/any\nprovider/here\n", "", "providers", "-o", "name")
	if out, _, _ := f.runWithInput("", "__complete", "providers", ""); out != "any\tAll shapes\nhere\n:4\n" {
		t.Errorf("it completes to %q", out)
	}
}
