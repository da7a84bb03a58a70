package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// The patches apply to the source as it is, and name tests that exist. Whether these find them is for make seeded.
func TestPatchesApply(t *testing.T) {
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	bugs, err := readBugs(filepath.Join(root, patches))
	if err != nil {
		t.Fatal(err)
	}
	if len(bugs) < 15 {
		t.Errorf("there are %d bugs", len(bugs))
	}
	for _, b := range bugs {
		if out, err := command(t.Context(), root, "git", "apply", "--check", b.file).CombinedOutput(); err != nil {
			t.Errorf("%s does not apply any more; make it anew: %s", b.name, out)
		}
		if !strings.HasPrefix(b.touches, b.pkg+"/") {
			t.Errorf("%s changes %s, and is looked for in %s", b.name, b.touches, b.pkg)
		}
		files, _ := filepath.Glob(filepath.Join(root, b.pkg, "*_test.go"))
		found := false
		for _, f := range files {
			content, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range regexp.MustCompile(`(?m)^func (Test\w+)`).FindAllStringSubmatch(string(content), -1) {
				found = found || b.tests.MatchString(m[1])
			}
		}
		if !found {
			t.Errorf("%s names no test of %s", b.name, b.pkg)
		}
	}
}

func TestJudge(t *testing.T) {
	b := bug{tests: regexp.MustCompile("^(TestA|TestB)$"), says: regexp.MustCompile("was lost")}
	for name, c := range map[string]struct{ output, want string }{
		"found":                {"--- FAIL: TestA (0.00s)\n  it was lost\nFAIL", "TestA"},
		"found twice":          {"--- FAIL: TestA (0.00s)\n  it was lost\n--- FAIL: TestB (0.1s)\nFAIL", "TestA, TestB"},
		"passed":               {"ok  x", ""},
		"did not compile":      {"# x\nundefined: y\nFAIL x [build failed]", ""},
		"another test":         {"--- FAIL: TestC (0.00s)\n  it was lost\nFAIL", ""},
		"for another reason":   {"--- FAIL: TestA (0.00s)\n  timed out\nFAIL", ""},
		"no tests were to run": {"testing: warning: no tests to run\nok", ""},
	} {
		if got := b.judge(c.output); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

func TestReadBugRefuses(t *testing.T) {
	good := "Bug: a\nPackage: b\nTest: ^TestC$\nSays: d\n\n--- a/b/x.go\n+++ b/b/x.go\n"
	for name, c := range map[string]struct{ old, want string }{
		"as it should be": {"", ""},
		"no bug":          {"Bug: a", `"Bug: "`},
		"no words":        {"Says: d", `"Says: "`},
		"no file":         {"+++ b/b/x.go", "it changes no file"},
	} {
		file := filepath.Join(t.TempDir(), "01-x.patch")
		if err := os.WriteFile(file, []byte(strings.Replace(good, c.old, "", 1)), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := readBug(file)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %s", name, err, c.want)
		}
	}
}
