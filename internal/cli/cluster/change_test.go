package cluster

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/polder-kaas/polder/api/v1alpha1"
	"github.com/polder-kaas/polder/internal/program/exit"
)

func TestApply(t *testing.T) {
	f := newFakePlane(t)
	file := filepath.Join(t.TempDir(), "demo.yaml")
	write := func(text string) {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("apiVersion: polder.dev/v1alpha1\nkind: WorkloadCluster\nmetadata: {name: demo}\nspec: {stack: {name: scs}}\n")
	f.expectOutput(exit.OK, "workloadcluster/demo created\n", "", "apply", "-f", file)
	f.expectOutput(exit.OK, "workloadcluster/demo unchanged\n", "", "apply", "-f", file)
	write("apiVersion: polder.dev/v1alpha1\nkind: WorkloadCluster\nmetadata: {name: demo}\nspec: {stack: {name: other}}\n")
	f.expectOutput(exit.OK, "workloadcluster/demo configured\n", "", "apply", "-f", file)
	if q := f.requests[len(f.requests)-1]; q != "PATCH "+clusterPath+"/demo?fieldManager=polder&fieldValidation=Strict&force=false" {
		t.Errorf("it asks %s", q)
	}
	f.refuse["PATCH "+clusterPath+"/demo"] = refusal(409, metav1.StatusReasonConflict, "demo", "Apply failed", metav1.StatusCause{
		Type: metav1.CauseTypeFieldManagerConflict, Field: ".spec.stack.name", Message: `conflict with "kubectl-edit" using polder.dev/v1alpha1`,
	})
	f.expectOutput(exit.Failure, "",
		`applying cluster "demo": others have set spec.stack.name (kubectl-edit); leave that out of the file, or change it with --force`, "apply", "-f", file)
	f.expectOutput(exit.Usage, "", "say which file to apply: polder apply -f FILE", "apply")
	write("apiVersion: polder.dev/v1alpha1\nkind: WorkloadCluster\nspec: {stack: {name: other}}\n")
	f.expectOutput(exit.Usage, "", "the cluster in "+file+" has no name; write metadata.name", "apply", "-f", file)
}

// What polder create wrote belongs to apply afterwards; else a pool that is taken out of the file would stay.
func TestApplyAdopts(t *testing.T) {
	f := newFakePlane(t, aWorkload(v1alpha1.PhaseReady, "", func(c *v1alpha1.WorkloadCluster) {
		c.ResourceVersion = "5"
		c.ManagedFields = []metav1.ManagedFieldsEntry{
			{Manager: "polder", Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "polder.dev/v1alpha1", FieldsType: "FieldsV1", FieldsV1: &metav1.FieldsV1{
				Raw: []byte(`{"f:spec":{"f:provider":{}}}`),
			}},
		}
	}))
	_, errs, _ := f.runWithInput("apiVersion: polder.dev/v1alpha1\nkind: WorkloadCluster\nmetadata: {name: demo}\nspec: {stack: {name: scs}}\n", "apply", "-f",
		"-")
	patches := 0
	for _, q := range f.requests {
		if strings.HasPrefix(q, "PATCH ") {
			patches++
		}
	}
	if patches != 2 {
		t.Errorf("it asks %v: %s", f.requests, errs)
	}
}

func twoPools(c *v1alpha1.WorkloadCluster) {
	c.ResourceVersion = "5"
	c.Spec.ControlPlane.Replicas = ptr.To[int32](1)
	c.Spec.Workers = []v1alpha1.WorkerPool{{Name: "a", Replicas: count(1), Labels: map[string]string{"l": "1"}}, {Name: "b", Replicas: count(2)}}
}

func onePool(c *v1alpha1.WorkloadCluster) {
	twoPools(c)
	c.Spec.Workers = c.Spec.Workers[:1]
}

func TestScale(t *testing.T) {
	f := newFakePlane(t, aWorkload(v1alpha1.PhaseReady, "", twoPools), aWorkload(v1alpha1.PhaseReady, "", onePool, withName("one")),
		aWorkload("", "", withName("none")))
	f.objects[clusterPath+"/demo"]["spec"].(map[string]any)["workers"].([]any)[1].(map[string]any)["future"] = "kept"
	f.expectOutput(exit.OK, "workloadcluster/demo scaled: control plane 1 to 3, pool b 2 to 0\n", "", "scale", "demo", "--pool", "b=0", "--pool", "a=1",
		"--control-planes", "3")
	want := map[string]any{
		"metadata": map[string]any{"resourceVersion": "5", "uid": "u1"},
		"spec": map[string]any{
			"controlPlane": map[string]any{"replicas": 3.0},
			"workers": []any{
				map[string]any{"name": "a", "replicas": 1.0, "labels": map[string]any{"l": "1"}}, map[string]any{"name": "b", "replicas": 0.0, "future": "kept"},
			},
		},
	}
	if d := cmp.Diff(want, f.bodies["PATCH"]); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
	f.expectOutput(exit.OK, "workloadcluster/demo unchanged\n", "", "scale", "demo", "--pool", "b=0")
	f.expectOutput(exit.Usage, "", `--pool names "b" twice; say once how many machines it shall have`, "scale", "demo", "--pool", "b=1", "--pool", "b=2")
	f.expectOutput(exit.OK, "workloadcluster/one scaled: pool a 1 to 4\n", "", "scale", "one", "--workers", "4")
	for args, want := range map[string]string{
		"demo":                        "say what to scale, with --workers N, --pool POOL=N or --control-planes N",
		"demo --workers 1":            "--workers is for clusters with one pool; say which with --pool POOL=1: it has a, b",
		"none --workers 1":            "--workers is for clusters with one pool; say which with --pool POOL=1: it has none; add one to its file and use polder apply",
		"demo --pool c=1":             `cluster "demo" has no pool "c"; it has a, b`,
		"demo --pool a":               `--pool "a" is not possible; write POOL=NUMBER, for example a=3`,
		"demo --pool a=many":          `--pool "a=many" is not possible; write POOL=NUMBER, for example a=3`,
		"demo --pool a=1 --workers 2": "--workers and --pool contradict each other; give one of them",
		"demo --control-planes 4":     "--control-planes 4 is not possible; choose 1, 3 or 5",
		"demo --workers -1":           "--workers -1 is no number of machines",
		"x --workers 1":               `there is no cluster "x" in namespace default; see which there are with: polder get`,
	} {
		f.expectOutput(exit.Usage, "", want, append([]string{"scale"}, strings.Fields(args)...)...)
	}
}

func TestScaleAtTheSameTime(t *testing.T) {
	f := newFakePlane(t, aWorkload(v1alpha1.PhaseReady, "", onePool))
	reads := 0
	f.after = func(method, _ string, o map[string]any) { // the status is written after the first read
		if method == "GET" {
			if reads++; reads == 1 {
				f.objects[clusterPath+"/demo"] = deepCopy(o)
				metaOf(f.objects[clusterPath+"/demo"])["resourceVersion"] = "6"
			}
		}
	}
	f.expectOutput(exit.OK, "workloadcluster/demo scaled: pool a 1 to 4\n", "", "scale", "demo", "--workers", "4")
	reads = 0
	f.after = func(method, _ string, o map[string]any) { // the spec is
		if method == "GET" {
			if reads++; reads == 1 {
				f.objects[clusterPath+"/demo"] = deepCopy(o)
				metaOf(f.objects[clusterPath+"/demo"])["resourceVersion"], metaOf(f.objects[clusterPath+"/demo"])["generation"] = "7", 9
			}
		}
	}
	f.expectOutput(exit.Failure, "", `changing cluster "demo": somebody else changed it at the same time; look at it and try again`, "scale", "demo", "--workers",
		"5")
	f.after = nil
	f.refuse["PATCH "+clusterPath+"/demo"] = refusal(409, metav1.StatusReasonConflict, "demo", "x")
	f.requests = nil
	f.expectOutput(exit.Failure, "", `changing cluster "demo": somebody else changed it at the same time; look at it and try again`, "scale", "demo", "--workers",
		"6")
	if len(f.requests) != 2*maxPatchAttempts {
		t.Errorf("it asks %d times", len(f.requests))
	}
}

func deepCopy(o map[string]any) map[string]any {
	c := map[string]any{}
	for k, v := range o {
		if m, ok := v.(map[string]any); ok {
			v = deepCopy(m)
		}
		c[k] = v
	}
	return c
}

func upgradable(c *v1alpha1.WorkloadCluster) {
	atWork(c)
	c.ResourceVersion = "5"
	c.Spec.Stack = v1alpha1.StackReference{Name: "scs", KubernetesVersion: "1.35"}
	c.Status.Versions = v1alpha1.Versions{Kubernetes: "v1.35.4", WantedKubernetes: "v1.35.4", Release: "r1", WantedRelease: "r1"}
	c.Status.Updates = []v1alpha1.Update{
		{KubernetesVersion: "1.35", Version: "v9", Kubernetes: "v1.35.5"}, {KubernetesVersion: "1.36", Version: "v5", Kubernetes: "v1.36.3"},
	}
}

func pinned(c *v1alpha1.WorkloadCluster) {
	upgradable(c)
	c.Spec.Stack.Version = "v3"
	c.Status.Undo = "Nothing is under way."
}

func TestUpgradeShows(t *testing.T) {
	f := newFakePlane(t, aWorkload(v1alpha1.PhaseReady, "", upgradable), aWorkload(v1alpha1.PhaseReady, "", pinned, withName("pinned")),
		aWorkload(v1alpha1.PhaseReady, "", atWork, withName("new")))
	f.expectOutput(exit.OK, `Cluster demo runs Kubernetes v1.35.4 of release r1, and follows the newest release of channel stable of stack scs.

KUBERNETES   VERSION   EXACTLY   TAKE IT WITH
1.35         v9        v1.35.5   nothing: it comes by itself
1.36         v5        v1.36.3   polder upgrade demo --kubernetes 1.36

Kubernetes cannot be lowered afterwards: a version can be taken back with --version only as long as it has the same Kubernetes (EXACTLY).
`, "", "upgrade", "demo")
	f.expectOutput(exit.OK, `Cluster pinned runs Kubernetes v1.35.4 of release r1, and stays at version v3 of stack scs.
Undo: Nothing is under way.

KUBERNETES   VERSION   EXACTLY   TAKE IT WITH
1.35         v9        v1.35.5   polder upgrade pinned --version v9
1.36         v5        v1.36.3   polder upgrade pinned --kubernetes 1.36 --version v5

Kubernetes cannot be lowered afterwards: a version can be taken back with --version only as long as it has the same Kubernetes (EXACTLY).
`, "", "upgrade", "pinned")
	if out, _, code := f.runWithInput("", "upgrade", "new"); code != exit.OK || !strings.HasSuffix(out, "\nThere is nothing newer.\n") {
		t.Errorf("it ends with %d: %s", code, out)
	}
}

func TestUpgradeTakes(t *testing.T) {
	for _, tt := range []struct {
		args, say string
		pinned    bool
		want      map[string]any
	}{
		{"--kubernetes 1.36", "is on its way to 1.36", false, map[string]any{"kubernetesVersion": "1.36"}},
		{"--kubernetes 1.36", "is on its way to 1.36 v5 (v1.36.3)", true, map[string]any{"kubernetesVersion": "1.36", "version": "v5"}},
		{"--kubernetes 1.36 --version v4", "is on its way to 1.36 v4", true, map[string]any{"kubernetesVersion": "1.36", "version": "v4"}},
		{"--version v4", "is on its way to v4", false, map[string]any{"version": "v4"}},
		{"--version newest", "is on its way to newest", true, map[string]any{"version": nil}},
		{"--version newest", "unchanged: its spec says so already", false, nil},
		{"--version v3", "unchanged: its spec says so already", true, nil},
		{"--to-latest", "is on its way to 1.36 (v1.36.3)", false, map[string]any{"kubernetesVersion": "1.36"}},
		{"--to-latest", "is on its way to 1.36 v5 (v1.36.3)", true, map[string]any{"kubernetesVersion": "1.36", "version": "v5"}},
	} {
		cluster := aWorkload(v1alpha1.PhaseReady, "", upgradable)
		if tt.pinned {
			pinned(cluster)
		}
		f := newFakePlane(t, cluster)
		f.expectOutput(exit.OK, "workloadcluster/demo "+tt.say+"\n", "", append([]string{"upgrade", "demo"}, strings.Fields(tt.args)...)...)
		var got map[string]any
		if body := f.bodies["PATCH"]; body != nil {
			got = body["spec"].(map[string]any)["stack"].(map[string]any)
		}
		if d := cmp.Diff(tt.want, got); d != "" {
			t.Errorf("%s (-want +got):\n%s", tt.args, d)
		}
	}
}

func TestUpgradeRefuses(t *testing.T) {
	f := newFakePlane(t, aWorkload(v1alpha1.PhaseReady, "", pinned))
	for args, want := range map[string]string{
		"--kubernetes 1.34":        `Kubernetes cannot be lowered: cluster "demo" runs 1.35`,
		"--kubernetes 1.37":        `Kubernetes is raised by one minor at a time: cluster "demo" runs 1.35, so take 1.36 first`,
		"--kubernetes x":           `--kubernetes "x" is no minor of Kubernetes; write, for example, 1.37`,
		"--to-latest --version v1": "--to-latest chooses itself; leave out --kubernetes and --version",
	} {
		f.expectOutput(exit.Usage, "", want, append([]string{"upgrade", "demo"}, strings.Fields(args)...)...)
	}
	none := aWorkload(v1alpha1.PhaseReady, "", pinned)
	none.Status.Updates = nil
	f.add(none)
	f.expectOutput(exit.Usage, "", `cluster "demo" stays at version v3 of its stack; say which one of Kubernetes 1.36 it shall have, with --version`, "upgrade",
		"demo", "--kubernetes", "1.36")
	f.expectOutput(exit.OK, "workloadcluster/demo unchanged: there is nothing newer\n", "", "upgrade", "demo", "--to-latest")
	f.expectOutput(exit.Usage, "", `Kubernetes is raised by one minor at a time: cluster "demo" runs 1.35, and its stack has no 1.36, so 1.37 cannot be reached`, "upgrade",
		"demo", "--kubernetes", "1.37")
}
