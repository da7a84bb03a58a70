package cluster

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	csv1 "github.com/polder-kaas/polder/api/clusterstack/v1alpha1"
	"github.com/polder-kaas/polder/api/v1alpha1"
	"github.com/polder-kaas/polder/internal/program/exit"
)

func TestCreateFromFlags(t *testing.T) {
	f := newFakePlane(t)
	f.expectOutput(exit.OK, `apiVersion: polder.dev/v1alpha1
kind: WorkloadCluster
metadata:
  name: demo
spec:
  controlPlane:
    machineType: SCS-2V-4
    replicas: 3
  parameters:
    count: 3
    list:
    - a
    - b: 1
    none: ""
    text: "3"
  provider: local
  stack:
    channel: custom
    kubernetesVersion: "1.30"
    name: scs
    version: v4
  workers:
  - name: default
    replicas: 0
  - machineType: SCS-4V-16-50s
    name: big
    replicas: 2
`, "", "create", "demo", "--provider", "local", "--stack", "scs", "--kubernetes", "v1.30", "--channel", "custom", "--version", "v4", "--control-planes", "3", "--control-plane-type", "SCS-2V-4",
		"--workers", "0", "--pool", "big=2:SCS-4V-16-50s", "--set", "count=3", "--set", `text="3"`, "--set", "list=[a, {b: 1}]", "--set", "none=", "--dry-run")
	if len(f.requests) > 0 {
		t.Errorf("--dry-run=client asks the plane: %v", f.requests)
	}
	f.expectOutput(exit.OK, "workloadcluster/demo created\n", "It is being made. Wait for it with: polder wait demo\n", "create", "demo", "--stack", "scs")
	want := map[string]any{
		"stack": map[string]any{"name": "scs"}, "controlPlane": map[string]any{"replicas": 1.0}, "workers": []any{map[string]any{"name": "default", "replicas": 1.0}},
	}
	if d := cmp.Diff(want, f.objects[clusterPath+"/demo"]["spec"]); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
	if q := f.requests[len(f.requests)-1]; !strings.Contains(q, "fieldManager=polder") || !strings.Contains(q, "fieldValidation=Strict") {
		t.Errorf("it asks %s", q)
	}
	f.expectOutput(exit.Failure, "", `there is a cluster "demo" in namespace default already; change it with: polder apply -f FILE, or choose another name`,
		"create", "demo", "--stack", "scs")
	f.expectOutput(exit.OK, "workloadcluster/other\n", "", "create", "other", "--stack", "scs", "-o", "name")
	f.expectOutput(exit.OK, "workloadcluster/third would be created\n", "", "create", "third", "--stack", "scs", "--dry-run=server")
	if q := f.requests[len(f.requests)-1]; !strings.Contains(q, "dryRun=All") {
		t.Errorf("it asks %s", q)
	}
	out, _, code := f.runWithInput("", "create", "fourth", "--stack", "scs", "-o", "json", "-n", "team-a")
	var made struct{ Metadata metav1.ObjectMeta }
	if err := json.Unmarshal([]byte(out), &made); err != nil || code != exit.OK || made.Metadata.Namespace != "team-a" {
		t.Errorf("-o json ends with %d, %v:\n%s", code, err, out)
	}
}

func TestCreateRefusesFlags(t *testing.T) {
	f := newFakePlane(t)
	for flags, want := range map[string]string{
		"":                                       "say what to make the cluster of, with --stack NAME or -f FILE; see which stacks there are with: polder stacks",
		"--stack s --kubernetes latest":          `--kubernetes "latest" is no minor of Kubernetes; write, for example, 1.37`,
		"--stack s --kubernetes 1.36.2":          "--kubernetes takes the minor, 1.36; the patch comes with the stack's release, which --version pins",
		"--stack s --channel beta":               `there is no channel "beta"; choose stable or custom`,
		"--stack s --control-planes 2":           "--control-planes 2 is not possible; choose 1, 3 or 5",
		"--stack s --workers -1":                 "--workers -1 is no number of machines",
		"--stack s --pool a":                     `--pool "a" is no pool; write NAME=COUNT or NAME=COUNT:TYPE, for example a=3:SCS-4V-16`,
		"--stack s --pool =1":                    `--pool "=1" is no pool; write NAME=COUNT or NAME=COUNT:TYPE, for example a=3:SCS-4V-16`,
		"--stack s --pool a=-1":                  `--pool "a=-1" is no pool; write NAME=COUNT or NAME=COUNT:TYPE, for example a=3:SCS-4V-16`,
		"--stack s --pool a=1:":                  `--pool "a=1:" is no pool; write NAME=COUNT or NAME=COUNT:TYPE, for example a=3:SCS-4V-16`,
		"--stack s --pool a=1 --pool a=2":        `there are two pools "a"; give each a name of its own`,
		"--stack s --pool default=1 --workers 2": `there are two pools "default"; give each a name of its own`,
		"--stack s --set a":                      `--set "a" is no parameter; write KEY=VALUE`,
		"--stack s --set a=1 --set a=2":          `--set gives "a" twice; give it once`,
		"--stack s --set a=[":                    `--set a: "[" is no YAML: line 1: did not find expected node content`,
		"--stack s --dry-run=maybe":              "--dry-run=maybe is not possible; choose client or server",
		"--stack s -o table":                     `invalid argument "table" for "-o, --output" flag: choose name, json or yaml; see: polder create --help`,
		"-f x --stack s":                         "give either -f or --stack: the file says it already",
		"-f x --set a=1":                         "give either -f or --set: the file says it already",
		"-f x":                                   "there is no file x; name one with a WorkloadCluster",
	} {
		f.expectOutput(exit.Usage, "", want, append([]string{"create", "demo"}, strings.Fields(flags)...)...)
	}
	f.expectOutput(exit.Usage, "", "the cluster has no name; give it one: polder create NAME", "create", "--stack", "s")
	if len(f.requests) > 0 {
		t.Errorf("the plane was asked: %v", f.requests)
	}
}

const smallFile = "apiVersion: polder.dev/v1alpha1\nkind: WorkloadCluster\nmetadata: {name: demo, namespace: team-a}\nspec: {stack: {name: scs}}\n"

func TestCreateFromFile(t *testing.T) {
	f := newFakePlane(t)
	out, errs, code := f.runWithInput(smallFile, "create", "-f", "-")
	if code != exit.OK || out != "workloadcluster/demo created\n" || !strings.Contains(errs, "polder wait demo -n team-a") {
		t.Errorf("create -f - ends with %d: %s%s", code, out, errs)
	}
	if f.objects["/apis/polder.dev/v1alpha1/namespaces/team-a/workloadclusters/demo"] == nil {
		t.Errorf("made %v", sortedKeys(f.objects))
	}
	file := filepath.Join(t.TempDir(), "demo.yaml")
	if err := os.WriteFile(file, []byte(smallFile), 0o600); err != nil {
		t.Fatal(err)
	}
	f.expectOutput(exit.OK, "workloadcluster/copy created\n", "It is being made. Wait for it with: polder wait copy -n team-a\n", "create", "copy", "-f", file)
	f.expectOutput(exit.Usage, "", "the file says namespace team-a, and -n says b; leave out one of them", "create", "-f", file, "-n", "b")
}

func TestCreateRefusedByThePlane(t *testing.T) {
	f := newFakePlane(t)
	f.refuse["POST "+clusterPath] = refusal(http.StatusUnprocessableEntity, metav1.StatusReasonInvalid, "demo", "long",
		metav1.StatusCause{Field: "spec.controlPlane.replicas", Message: `Unsupported value: 2: supported values: "1", "3", "5"`},
		metav1.StatusCause{Field: "spec.stack.name", Message: `Invalid value: "s": there is none`},
		metav1.StatusCause{Message: "Invalid value: it is wrong"},
		metav1.StatusCause{Field: "<nil>", Message: "Invalid value: \"object\": the name of a cluster has\nat most 40 characters"})
	f.expectOutput(exit.Usage, "", `making cluster "demo": the plane refuses it:
  spec.controlPlane.replicas: Unsupported value: 2: supported values: "1", "3", "5"
  spec.stack.name: "s": there is none
  it is wrong
  the name of a cluster has at most 40 characters`, "create", "demo", "--stack", "s")
}

// Names and numbers that cannot be are told without a plane, and without regular expressions.
func TestCreateWithBadValues(t *testing.T) {
	f := newFakePlane(t)
	const rule = " with a letter or digit at both ends and at most 63 in all"
	f.expectOutput(exit.Usage, "", `"Demo" is no name for a cluster; write lower case letters, digits and dashes, such as demo,`+rule, "create", "Demo", "--stack", "s")
	f.expectOutput(exit.Usage, "", `"a.b" is no name for a cluster; write lower case letters, digits and dashes,`+rule, "create", "a.b", "--stack", "s")
	f.expectOutput(exit.Usage, "", `--workers "1e3" is no whole number that fits here; see: polder create --help`, "create", "demo", "--stack", "s", "--workers", "1e3")
	f.expectOutput(exit.Usage, "", `--workers "99999999999" is no whole number that fits here; see: polder create --help`, "create", "demo", "--stack", "s", "--workers", "99999999999")
	if len(f.requests) > 0 {
		t.Errorf("the plane was asked: %v", f.requests)
	}
}

// Whatever the plane says of a cluster whose name is taken, that is what matters.
func TestCreateExisting(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*v1alpha1.WorkloadCluster)
		want   string
	}{
		"there": {func(*v1alpha1.WorkloadCluster) {},
			`there is a cluster "demo" in namespace default already; change it with: polder apply -f FILE, or choose another name`},
		"leaving": {func(o *v1alpha1.WorkloadCluster) { o.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)} },
			`cluster "demo" in namespace default is being deleted; wait until it is gone with: polder wait demo --for deleted, then make it again, or choose another name`},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFakePlane(t, aWorkload(v1alpha1.PhaseReady, "", c.change))
			f.refuse["POST "+clusterPath] = refusal(http.StatusUnprocessableEntity, metav1.StatusReasonInvalid, "demo", "long",
				metav1.StatusCause{Field: "spec.stack.kubernetesVersion", Message: "one minor at a time"})
			f.expectOutput(exit.Failure, "", c.want, "create", "demo", "--stack", "s")
		})
	}
}

const twoProviders = `apiVersion: polder.dev/v1alpha1
kind: Provider
metadata: {name: here}
status:
  zones: [a, b]
  machineTypes:
  - {name: m1.small, portable: SCS-1V-2, cpu: 1, memoryMiB: 2048}
  - {name: m1.odd, cpu: 3, memoryMiB: 5120, diskGB: 20}
  - {name: m1.huge, cpu: 64, memoryMiB: 524288}
  parameters: {hereOnly: {}, both: {}}
`

const otherProvider = `apiVersion: polder.dev/v1alpha1
kind: Provider
metadata: {name: there}
status:
  stackProvider: there
  zones: [b]
  machineTypes:
  - {name: x.small, portable: SCS-1V-2, cpu: 1, memoryMiB: 2048}
  - {name: x.medium, cpu: 4, memoryMiB: 8192, diskGB: 40}
  parameters: {both: {}}
`

const movedFile = `apiVersion: polder.dev/v1alpha1
kind: WorkloadCluster
metadata: {name: demo}
spec:
  provider: here
  stack: {name: scs, kubernetesVersion: "1.36"}
  controlPlane: {machineType: SCS-1V-2}
  workers:
  - {name: own, machineType: m1.small}
  - {name: odd, machineType: m1.odd}
  - {name: shaped, machine: {cpu: 2, memory: 4Gi}, zones: [b]}
  - {name: rare, machineType: SCS-2C-4}
  parameters: {both: 1, ofStack: 2}
`

func TestCreateElsewhere(t *testing.T) {
	f := newFakePlane(t, twoProviders, otherProvider)
	f.add("{apiVersion: clusterstack.x-k8s.io/v1alpha1, kind: ClusterStack, metadata: {name: s}, spec: {provider: there, name: scs, kubernetesVersion: '1.36'}}")
	out, errs, code := f.runWithInput(movedFile, "create", "-f", "-", "--provider", "there", "--dry-run=client", "-o", "json")
	want := `Cluster demo at provider there:
  same     control plane: SCS-1V-2
  same     pool shaped: a machine of at least 2 CPUs and 4Gi
  same     pool shaped: zone b
  same     parameter both
  same     stack scs 1.36
  changed  pool own: m1.small becomes SCS-1V-2
  changed  pool odd: m1.odd becomes a machine of at least 3 CPUs and 5Gi and a disk of 20G
  changed  pool rare: SCS-2C-4 becomes a machine of at least 2 CPUs and 4Gi
  look at  pool rare: SCS-2C-4 promises CPUs that are not shared, a shape does not
  look at  parameter ofStack: it is the stack's; the plane says if the stack for there does not have it
`
	if d := cmp.Diff(want, errs); d != "" || code != exit.OK {
		t.Errorf("it ends with %d (-want +got):\n%s", code, d)
	}
	if !strings.Contains(out, `"provider": "there"`) || !strings.Contains(out, `"machineType": "SCS-1V-2"`) || strings.Contains(out, "m1.") {
		t.Errorf("it shows %s", out)
	}
	for _, q := range f.requests {
		if !strings.HasPrefix(q, "GET ") {
			t.Errorf("a dry run asks %s", q)
		}
	}
}

// A name that a provider gives its meaning is the same elsewhere only if it means the same.
func TestMoveOwnNames(t *testing.T) {
	read := func(text string) *v1alpha1.Provider {
		p := &v1alpha1.Provider{}
		if err := yaml.Unmarshal([]byte(text), p); err != nil {
			t.Fatal(err)
		}
		return p
	}
	here, there := read(twoProviders), read(otherProvider)
	same := v1alpha1.MachineType{Name: "both.same", CPU: 2, MemoryMiB: 4096}
	here.Status.MachineTypes = append(here.Status.MachineTypes, same, v1alpha1.MachineType{Name: "both.other", CPU: 8, MemoryMiB: 4096})
	there.Status.MachineTypes = append(there.Status.MachineTypes, same, v1alpha1.MachineType{Name: "both.other", CPU: 1, MemoryMiB: 4096})
	for _, tt := range []struct {
		selection v1alpha1.MachineSelection
		from      *v1alpha1.Provider
		want      string
		becomes   string
	}{
		{v1alpha1.MachineSelection{MachineType: "both.same"}, here, "same     pool: both.same", "both.same"},
		{v1alpha1.MachineSelection{MachineType: "both.other"}, here, "lost     pool: there has nothing like both.other; see what it has with: polder providers there",
			"the provider's default"},
		{v1alpha1.MachineSelection{MachineType: "both.other"}, nil,
			"look at  pool: both.other is a name of there too, but nobody knows whether it is the same machine", "both.other"},
		{v1alpha1.MachineSelection{}, here, "look at  pool: the provider's default is there's, which may be another machine", "the provider's default"},
		{v1alpha1.MachineSelection{MachineType: "SCS-2V-4-20s"}, here,
			"changed  pool: SCS-2V-4-20s becomes a machine of at least 2 CPUs and 4Gi and a disk of 20G\n  look at  pool: SCS-2V-4-20s promises a fast local disk, a shape does not", "a machine of at least 2 CPUs and 4Gi and a disk of 20G"},
	} {
		m := &moveReport{to: "there"}
		m.moveMachine("pool", &tt.selection, tt.from, there)
		var out strings.Builder
		m.print(&out, "demo")
		if d := cmp.Diff("Cluster demo at provider there:\n  "+tt.want+"\n", out.String()); d != "" || describeMachineSelection(tt.selection) != tt.becomes {
			t.Errorf("it becomes %s (-want +got):\n%s", describeMachineSelection(tt.selection), d)
		}
	}
}

// A stack is the same elsewhere only in its channel, and versions are counted for each provider.
func TestMoveStack(t *testing.T) {
	to := &v1alpha1.Provider{Status: v1alpha1.ProviderStatus{StackProvider: "there"}}
	to.Name = "there"
	all := []csv1.ClusterStack{{Spec: csv1.ClusterStackSpec{Provider: "there", Name: "scs", KubernetesVersion: "1.36"}}}
	for want, ref := range map[string]v1alpha1.StackReference{
		"  same     stack scs 1.36\n":                                {Name: "scs", KubernetesVersion: "1.36", Channel: v1alpha1.ChannelStable},
		"  look at  stack scs 1.36 v3: it is there for there, but ":  {Name: "scs", KubernetesVersion: "1.36", Version: "v3"},
		"  look at  stack scs 1.36 custom: there is none for there ": {Name: "scs", KubernetesVersion: "1.36", Channel: v1alpha1.ChannelCustom},
	} {
		m, c := &moveReport{to: "there"}, &v1alpha1.WorkloadCluster{}
		c.Spec.Stack = ref
		m.reviewStack(c, to, all)
		var out strings.Builder
		m.print(&out, "demo")
		if !strings.Contains(out.String(), want) {
			t.Errorf("%+v: %s", ref, out.String())
		}
	}
}

func TestCreateElsewhereLoses(t *testing.T) {
	f := newFakePlane(t, twoProviders, otherProvider)
	file := strings.NewReplacer("SCS-2C-4", "SCS-2C-4_GNa", "m1.odd", "m1.huge", "m1.small", "m1.unknown", "zones: [b]", "zones: [a, b]", "both: 1",
		"hereOnly: 1").Replace(movedFile)
	_, errs, code := f.runWithInput(file, "create", "-f", "-", "--provider", "there")
	for _, want := range []string{
		"\n  lost     pool own: there has nothing like m1.unknown; see what it has with: polder providers there\n",
		"\n  lost     pool rare: there has nothing like SCS-2C-4_GNa; see",
		"\n  lost     pool odd: there has nothing like m1.huge; see",
		"\n  lost     pool shaped: there has no zone a; it has b\n",
		"\n  lost     parameter hereOnly: it is one of provider here, which there does not have\n",
		"\n  look at  stack scs 1.36: there is none for there in this namespace or the catalogue yet; see: polder stacks\n",
		"\nprovider there cannot make this cluster as it is (5 lost above); change the file, or leave those parts out with --force",
	} {
		if !strings.Contains(errs, want) {
			t.Errorf("it does not say %q:\n%s", want, errs)
		}
	}
	if code != exit.Usage || f.objects[clusterPath+"/demo"] != nil {
		t.Errorf("it ends with %d, and there are %v", code, sortedKeys(f.objects))
	}
	if _, errs, code = f.runWithInput(file, "create", "-f", "-", "--provider", "there", "--force"); code != exit.OK {
		t.Fatalf("--force ends with %d: %s", code, errs)
	}
	b, _ := json.Marshal(f.objects[clusterPath+"/demo"]["spec"])
	if text := string(b); strings.Contains(text, "m1.") || strings.Contains(text, "hereOnly") || !strings.Contains(text, `"zones":["b"]`) ||
		!strings.Contains(text, `"provider":"there"`) {
		t.Errorf("made %s", text)
	}
	if _, errs, code = f.runWithInput(movedFile, "create", "x", "-f", "-", "--provider", "nowhere"); code != exit.Usage ||
		errs != `there is no provider "nowhere"; see which there are with: polder providers` {
		t.Errorf("it ends with %d: %s", code, errs)
	}
	if _, errs, code = f.runWithInput(movedFile, "create", "same", "-f", "-", "--provider", "here"); code != exit.OK || strings.Contains(errs, "at provider") {
		t.Errorf("at the same provider it ends with %d: %s", code, errs)
	}
}

func TestMachineSatisfiesShape(t *testing.T) {
	for name, tt := range map[string]struct {
		t    v1alpha1.MachineType
		s    v1alpha1.MachineSelection
		want bool
	}{
		"just enough":    {v1alpha1.MachineType{CPU: 2, MemoryMiB: 4096, DiskGB: 20}, newShapeSelection(2, 4096, 20), true},
		"too few CPUs":   {v1alpha1.MachineType{CPU: 1, MemoryMiB: 8192, DiskGB: 20}, newShapeSelection(2, 4096, 20), false},
		"too little":     {v1alpha1.MachineType{CPU: 8, MemoryMiB: 4095, DiskGB: 20}, newShapeSelection(2, 4096, 20), false},
		"too small":      {v1alpha1.MachineType{CPU: 2, MemoryMiB: 4096, DiskGB: 19}, newShapeSelection(2, 4096, 20), false},
		"disk on demand": {v1alpha1.MachineType{CPU: 2, MemoryMiB: 4096}, newShapeSelection(2, 4096, 20), true},
		"any disk":       {v1alpha1.MachineType{CPU: 2, MemoryMiB: 4096, DiskGB: 1}, newShapeSelection(2, 4096, 0), true},
	} {
		if got := satisfiesShape(tt.t, tt.s.Machine); got != tt.want {
			t.Errorf("%s: %t", name, got)
		}
	}
	anyShape := &v1alpha1.Provider{Status: v1alpha1.ProviderStatus{AnyShape: true}}
	for name, want := range map[string]bool{"SCS-2V-4": true, "": true, "m1.small": false, "SCS-2V-4_GNa": false, "SCS-2V-4_ib": false} {
		if got := hasMachines(anyShape, v1alpha1.MachineSelection{MachineType: name}); got != want {
			t.Errorf("any shape, %q: %t", name, got)
		}
	}
}
