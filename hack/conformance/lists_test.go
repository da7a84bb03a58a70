package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/mod/modfile"
)

const kubernetes = "k8s.io/kubernetes"

// module asks the go command about a module that we require.
func module(t *testing.T, format, name string) string {
	t.Helper()
	c := exec.Command("go", "list", "-m", "-f", format, name)
	c.Dir = "../.."
	out, err := c.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	return strings.TrimSpace(string(out))
}

// The tests must be of the version of Kubernetes that is tested, in all its modules.
func TestVersionsAreTheSame(t *testing.T) {
	b, err := os.ReadFile("../../test/conformance/go.mod")
	if err != nil {
		t.Fatal(err)
	}
	f, err := modfile.Parse("go.mod", b, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{kubernetes: module(t, "{{.Version}}", kubernetes)}
	got := map[string]string{}
	for _, r := range f.Require {
		if r.Mod.Path == kubernetes {
			got[kubernetes] = r.Mod.Version
		}
	}
	for _, r := range f.Replace {
		want[r.Old.Path], got[r.Old.Path] = "v0"+strings.TrimPrefix(want[kubernetes], "v1"), r.New.Version
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("test/conformance/go.mod has other versions than go.mod; change them there and run go mod tidy; -want +got:\n%s", d)
	}
}

// Another version of Kubernetes has other tests. Each must be put into one of the lists.
func TestListsAreOfAllTests(t *testing.T) {
	dir := module(t, "{{.Dir}}", kubernetes)
	if dir == "" {
		t.Fatal("the module of Kubernetes is not downloaded; run: go mod download " + kubernetes)
	}
	b, err := os.ReadFile(filepath.Join(dir, "test/conformance/testdata/conformance.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	names, err := parseNames(b)
	if err != nil {
		t.Fatal(err)
	}
	j, err := readLists(filepath.Join("../..", listsDir))
	if err != nil {
		t.Fatal(err)
	}
	for _, sentence := range j.findMismatches(names) {
		t.Error(sentence)
	}
}

func TestListsThatDoNotFit(t *testing.T) {
	j := testLists{included: []string{"[a]", "[b]", "[old]", "[a]"}, excluded: map[string]string{"[b]": "DNS", "[c]": "DNS"}}
	want := []string{
		`"[b]" is in both lists; take it out of one`,
		`"[new]" is in neither list; add it to included.txt, or to excluded.txt below what it needs`,
		`"[a]" is in included.txt twice`,
		`"[old]" is no conformance test of this version; take it out`,
	}
	if d := cmp.Diff(want, j.findMismatches([]string{"[a]", "[b]", "[c]", "[new]"})); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
}

// Versions differ in where they put labels, and in what tests they have.
func TestPartitionTestsOfAnotherVersion(t *testing.T) {
	j := testLists{
		included: []string{"[sig-a] Things should work [Conformance] [Serial]"},
		excluded: map[string]string{"[sig-a] Things should talk [Conformance] [NodeConformance]": "traffic"},
	}
	in, unlisted := j.partitionTests([]string{
		"[sig-a] Things [Serial] should work [Conformance]", "[sig-a] Things should talk [NodeConformance] [Conformance]", "[sig-a] Things should rust [Conformance]",
	})
	if d := cmp.Diff([][]string{{"[sig-a] Things [Serial] should work [Conformance]"}, {"[sig-a] Things should rust [Conformance]"}},
		[][]string{in, unlisted}); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
}

func TestReadLists(t *testing.T) {
	for name, tc := range map[string]struct {
		excluded string
		want     map[string]string
		err      string
	}{
		"by reason":      {"# for readers\n\nDNS:\n[x] a\n[x] b: c:\n\ntraffic:\n[y]\n", map[string]string{"[x] a": "DNS", "[x] b: c:": "DNS", "[y]": "traffic"}, ""},
		"without reason": {"[x] a\n", nil, `"[x] a" has no reason above it`},
		"twice":          {"DNS:\n[x]\ntraffic:\n[x]\n", nil, `"[x]" is there twice`},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			write(t, filepath.Join(dir, "included.txt"), "[i] 1\n")
			write(t, filepath.Join(dir, "excluded.txt"), tc.excluded)
			j, err := readLists(dir)
			if tc.err != "" {
				if err == nil || !strings.Contains(err.Error(), tc.err) {
					t.Fatalf("%v; want %s", err, tc.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(tc.want, j.excluded); d != "" || len(j.included) != 1 {
				t.Errorf("%v, -want +got:\n%s", j.included, d)
			}
		})
	}
}

func write(t *testing.T, file, content string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}
