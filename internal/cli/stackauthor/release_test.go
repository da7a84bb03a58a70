package stackauthor

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/polder-kaas/polder/internal/program/exit"
	"github.com/polder-kaas/polder/stack/archive"
)

// A release that other tools have built gets the checks that a source gets: it is neither rendered nor published
// without a word.
func TestReleaseChecks(t *testing.T) {
	dir, to := home(t), registryOn(t)
	src, good := filepath.Join(dir, "s"), filepath.Join(dir, "rel")
	must(t, "stack", "init", src)
	must(t, "stack", "build", src, "--output", good)
	const name = "local-s-1-37-v1"
	if out := must(t, "stack", "lint", filepath.Join(good, name)); out != "" {
		t.Error("a release of a clean source is not clean:", out)
	}
	stages := func(from, to string) func(*testing.T, string) {
		return func(t *testing.T, release string) {
			replaceIn(t, filepath.Join(release, "clusteraddon.yaml"), from, to)
		}
	}
	rule := func(rule string) func(*testing.T, string) {
		return func(t *testing.T, release string) {
			changeClass(t, release, "items: {type: string, minLength: 1}", "items: {type: array, items: {type: string}, x-kubernetes-validations: [{rule: '"+rule+"'}]}")
		}
	}
	for what, tc := range map[string]struct {
		change func(*testing.T, string)
		want   string
	}{
		"an unknown action": {stages("action: apply", "action: install"),
			`clusteraddon.yaml:6: error: action "install" of stage "about" is not known; use apply or delete [stage-action]`},
		"an unknown hook": {stages("BeforeClusterUpgrade:", "BeforeClusterUpdate:"),
			`clusteraddon.yaml:7: error: hook "BeforeClusterUpdate" is not known, so its stages are never run`},
		"CEL that does not compile": {stages("action: apply", "action: apply\n      waitForPreCondition: {objects: [], conditions: 'x =='}"),
			"clusteraddon.yaml:7: error: the expression of waitForPreCondition: 1:5: Syntax error"},
		"a rule that does not compile": {rule("self.a == 1"), `the rule "self.a == 1" does not compile`},
		"a rule that costs too much":   {rule("self.all(a, self.all(b, a <= b))"), "may cost more than 100 times what is allowed"},
	} {
		t.Run(what, func(t *testing.T) {
			at := t.TempDir()
			if err := os.CopyFS(at, os.DirFS(good)); err != nil {
				t.Fatal(err)
			}
			release := filepath.Join(at, name)
			tc.change(t, release)
			for _, args := range [][]string{{"render", release}, {"lint", release}, {"params", release}, {"publish", release, to}} {
				out, complaints, err := execute(t, append([]string{"stack"}, args...)...)
				if err == nil || exit.Code(err) != exit.Failure || !strings.Contains(out+complaints+err.Error(), tc.want) {
					t.Errorf("%s: code %d, %v\n%s", args[0], exit.Code(err), err, complaints)
				}
			}
			if out, _, err := execute(t, "stack", "list", to); err == nil && strings.Contains(out, name) {
				t.Error("it was published:", out)
			}
		})
	}
}

// What is left of a release is shown also where something is wrong with it.
func TestParamsOfBrokenRelease(t *testing.T) {
	dir := home(t)
	src := filepath.Join(dir, "s")
	must(t, "stack", "init", src)
	write(t, filepath.Join(src, "cluster-addon", "about", "templates", "x.yaml"), "{{ fail \"no luck\" }}")
	out, complaints, err := execute(t, "stack", "params", src)
	if exit.Code(err) != exit.Failure || !strings.Contains(out, "| flavor |") || !strings.Contains(complaints, "no luck") {
		t.Errorf("code %d\n%s\n%s", exit.Code(err), out, complaints)
	}
}

// The layout that upstream works on: a minor without a patch in both files, and its no-op hook.
func TestMinorVersionLayout(t *testing.T) {
	dir := home(t)
	src, rel := filepath.Join(dir, "s"), filepath.Join(dir, "rel")
	must(t, "stack", "init", src, "--kubernetes", "v1.35.3")
	replaceIn(t, filepath.Join(src, "stack.yaml"), "kubernetesVersion: v1.35.3", "kubernetesVersion: 1.35\naddons: {ccm: 2.35.x}")
	write(t, filepath.Join(src, "csctl.yaml"), "config:\n  kubernetesVersion: v1.35\n  clusterStackName: s\n  provider: {type: local}\n")
	replaceIn(t, filepath.Join(src, "clusteraddon.yaml"), "  BeforeClusterUpgrade:", "  AfterClusterUpgrade: [{name: about, action: apply}]\n  BeforeClusterUpgrade:")
	if out := must(t, "stack", "lint", src); strings.Count(out, " warning: ") != 2 || strings.Contains(out, " error: ") {
		t.Error(out)
	}
	must(t, "stack", "render", src)
	if _, _, err := execute(t, "stack", "build", src, "--output", rel); err == nil || !strings.Contains(err.Error(), "choose it with --kubernetes") {
		t.Error(err)
	}
	must(t, "stack", "build", src, "--output", rel, "--kubernetes", "v1.35.3")
	if out := must(t, "stack", "list", rel); !strings.Contains(out, "v1.35.3") {
		t.Error(out)
	}
	must(t, "stack", "render", filepath.Join(rel, "local-s-1-35-v1"))

	// Metadata that lies in a source does not make it a release.
	if err := os.Remove(filepath.Join(src, "stack.yaml")); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(src, "metadata.yaml"), "x: y\n")
	must(t, "stack", "lint", src)
	must(t, "stack", "render", src)
}

// A build for one minor lints that one alone; all of them are linted at once otherwise, and what is wrong with any is
// said.
func TestBuildOneMinor(t *testing.T) {
	dir := home(t)
	src, rel := filepath.Join(dir, "s"), filepath.Join(dir, "rel")
	must(t, "stack", "init", src, "--kubernetes", "v1.37.1")
	replaceIn(t, filepath.Join(src, "stack.yaml"), "kubernetesVersion: v1.37.1", "kubernetesVersions: [v1.35.3, v1.36.3, v1.37.1]")
	replaceIn(t, filepath.Join(src, "cluster-class", "Chart.yaml"), "name: local-s-1-37-cluster-class", "name: local-s-cluster-class")
	write(t, filepath.Join(src, "cluster-addon", "about", "templates", "x.yaml"),
		"{{ if ne .Capabilities.KubeVersion.Minor \"37\" }}{{ fail (print \"not for \" .Capabilities.KubeVersion.Minor) }}{{ end }}")
	if out := must(t, "stack", "build", src, "--output", rel, "--kubernetes", "1.37"); !strings.Contains(out, "local-s-1-37-v1@") {
		t.Error(out)
	}
	_, _, err := execute(t, "stack", "build", src, "--output", rel)
	for _, want := range []string{"not for 35", "not for 36"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

func replaceIn(t *testing.T, file, from, to string) {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil || !bytes.Contains(b, []byte(from)) {
		t.Fatalf("%s does not have %q: %v", file, from, err)
	}
	write(t, file, strings.Replace(string(b), from, to, 1))
}

// changeClass changes the template of the class in the archive of a release.
func changeClass(t *testing.T, release, from, to string) {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(release, "*-cluster-class-*.tgz"))
	if err != nil || len(found) != 1 {
		t.Fatal(found, err)
	}
	b, err := os.ReadFile(found[0])
	if err != nil {
		t.Fatal(err)
	}
	files, err := archive.Read(bytes.NewReader(b), archive.DefaultLimits)
	if err != nil {
		t.Fatal(err)
	}
	changed := false
	for name, text := range files {
		if filepath.Base(name) == "clusterclass.yaml" {
			files[name] = bytes.Replace(text, []byte(from), []byte(to), 1)
			changed = !bytes.Equal(files[name], text)
		}
	}
	var packed bytes.Buffer
	if err := archive.Write(&packed, files); err != nil || !changed {
		t.Fatal(changed, err)
	}
	write(t, found[0], packed.String())
}
