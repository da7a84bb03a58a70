package cluster

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/polder-kaas/polder/api/v1alpha1"
	"github.com/polder-kaas/polder/internal/program/exit"
)

var update = flag.Bool("update", false, "write golden files anew")

// golden compares a text with that of a file in testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), got); d != "" {
		t.Errorf("%s (-want +got):\n%s", name, d)
	}
}

// cases are the parts of a golden file: "-- name --", the input, "--> " and what is said of it.
type cases struct{ names, inputs []string }

func readCases(t *testing.T, name string) (c cases) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range strings.Split("\n"+string(b), "\n-- ")[1:] {
		title, rest, _ := strings.Cut(part, " --\n")
		input, _, ok := strings.Cut("\n"+rest, "\n--> ")
		if !ok {
			t.Fatalf("%s: %q has no answer", name, title)
		}
		c.names, c.inputs = append(c.names, title), append(c.inputs, strings.TrimPrefix(input, "\n"))
	}
	return c
}

func TestFileRefused(t *testing.T) {
	const file = "files.txt"
	c := readCases(t, file)
	var b strings.Builder
	for i, input := range c.inputs {
		answer := "taken"
		if _, err := parseCluster("FILE", []byte(input)); err != nil {
			answer = err.Error()
		}
		if input != "" && !strings.HasSuffix(input, "\n") {
			input += "\n"
		}
		fmt.Fprintf(&b, "-- %s --\n%s--> %s\n", c.names[i], input, answer)
	}
	golden(t, file, b.String())
}

const wholeFile = `# what people write
apiVersion: polder.dev/v1alpha1
kind: WorkloadCluster
metadata:
  name: demo
  uid: abc
  resourceVersion: "7"
  creationTimestamp: "2026-01-01T00:00:00Z"
  labels: {team: a}
spec:
  provider: local
  stack: {name: scs, kubernetesVersion: "1.36"}
  controlPlane: {replicas: 3, machineType: SCS-2V-4}
  workers:
  - name: a
    replicas: 0
    machine: {cpu: 2, memory: 4Gi}
    taints: [{key: x, effect: NoSchedule}]
  parameters: {anything: {goes: [1, two]}}
status: {phase: Ready}
---
`

func TestFileTaken(t *testing.T) {
	c, err := readCluster("-", strings.NewReader("---\n# nothing yet\n---\n"+wholeFile))
	if err != nil {
		t.Fatal(err)
	}
	if c.UID != "" || c.ResourceVersion != "" || !c.CreationTimestamp.IsZero() || c.Status.Phase != "" {
		t.Errorf("what the server writes is still there: %+v", c)
	}
	p := c.Spec.Workers[0]
	if c.Labels["team"] != "a" || *c.Spec.ControlPlane.Replicas != 3 || *p.Replicas != 0 || p.Machine.Memory.String() != "4Gi" ||
		string(c.Spec.Parameters["anything"].Raw) != `{"goes":[1,"two"]}` {
		t.Errorf("read as %+v", c)
	}
}

func TestFileCannotBeRead(t *testing.T) {
	dir := t.TempDir()
	large := filepath.Join(dir, "large")
	if err := os.WriteFile(large, []byte(strings.Repeat("# x\n", maxFileSize/4+1)), 0o600); err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]string{
		dir:                        dir + " is a directory; name a file with a WorkloadCluster",
		filepath.Join(dir, "none"): "there is no file " + filepath.Join(dir, "none") + "; name one with a WorkloadCluster",
		large:                      large + " is larger than 1 MiB, which no cluster is; name a file with one WorkloadCluster",
		"-":                        "the input is empty; it must have a WorkloadCluster",
	} {
		if _, err := readCluster(file, strings.NewReader("")); err == nil || err.Error() != want || exit.Code(err) != exit.Usage {
			t.Errorf("%s: %v (%d), want %s", file, err, exit.Code(err), want)
		}
	}
}

// References can make a small file large; it must end all the same.
func TestFileOfManyReferences(t *testing.T) {
	var b strings.Builder
	b.WriteString("apiVersion: polder.dev/v1alpha1\nkind: WorkloadCluster\nmetadata: {name: x}\nspec:\n  workers:\n  - &a {name: a, labels: {")
	for i := range 2000 {
		fmt.Fprintf(&b, "l%d: x, ", i)
	}
	b.WriteString("}}\n" + strings.Repeat("  - *a\n", 2000))
	if _, err := parseCluster("FILE", []byte(b.String())); err == nil || !strings.Contains(err.Error(), "too many parts") {
		t.Errorf("it says %.200v", err)
	}
	document, err := findDocument("FILE", []byte(b.String()))
	if err != nil {
		t.Fatal(err)
	}
	w := &fileCheck{}
	if w.check(document, clusterType, ""); w.nodes > 2*maxNodes {
		t.Errorf("it looks at %d parts", w.nodes)
	}
}

func FuzzFile(f *testing.F) {
	f.Add([]byte(wholeFile))
	f.Add([]byte("apiVersion: polder.dev/v1alpha1\nkind: WorkloadCluster\nspec: &a {workers: [*a]}"))
	f.Add([]byte("- &a [*a]"))
	f.Fuzz(func(t *testing.T, b []byte) {
		c, err := parseCluster("FILE", b)
		if err == nil && (c.Kind != "WorkloadCluster" || c.Status.Phase != v1alpha1.Phase("")) {
			t.Errorf("%q is read as %+v", b, c)
		}
	})
}
