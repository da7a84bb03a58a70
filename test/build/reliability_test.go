package build

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// faults is how many lines the table of reliability has.
const faults = 50

var (
	faultLine = regexp.MustCompile(`(?m)^\| (\d+) \|(.*)\|$`)
	testName  = regexp.MustCompile("`([a-z0-9/]+)\\.((?:Test|Fuzz)[A-Za-z0-9]+)`")
)

// The page says which test shows what. Each number is there once, each names a test or says that it is open, and every
// test that is named exists.
func TestReliability(t *testing.T) {
	b, err := os.ReadFile("../../docs/operate/reliability.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, fault := range checkReliability("../..", string(b)) {
		t.Error(fault)
	}
}

// checkReliability returns what is wrong with the page.
func checkReliability(root, page string) (wrong []string) {
	seen := map[int]int{}
	for _, m := range faultLine.FindAllStringSubmatch(page, -1) {
		n, _ := strconv.Atoi(m[1])
		seen[n]++
		if !testName.MatchString(m[2]) && !strings.Contains(m[2], "**open**") {
			wrong = append(wrong, fmt.Sprintf("line %d names no test, and does not say that it is open", n))
		}
		if cells := strings.Split(m[2], "|"); len(cells) != 4 {
			wrong = append(wrong, fmt.Sprintf("line %d has %d cells beside its number, not 4", n, len(cells)))
		}
	}
	for n := 1; n <= faults; n++ {
		if seen[n] != 1 {
			wrong = append(wrong, fmt.Sprintf("number %d is there %d times", n, seen[n]))
		}
		delete(seen, n)
	}
	if len(seen) > 0 {
		wrong = append(wrong, fmt.Sprintf("numbers that are none: %v", seen))
	}
	found := map[string]map[string]bool{}
	for _, m := range testName.FindAllStringSubmatch(page, -1) {
		dir := m[1]
		if found[dir] == nil {
			found[dir] = testsOf(filepath.Join(root, dir))
		}
		if !found[dir][m[2]] {
			wrong = append(wrong, fmt.Sprintf("there is no %s in %s", m[2], dir))
		}
	}
	return wrong
}

// testsOf are the names of the tests of a package, whatever they are built with.
func testsOf(dir string) map[string]bool {
	out := map[string]bool{}
	files, _ := filepath.Glob(filepath.Join(dir, "*_test.go")) // the pattern is good
	for _, f := range files {
		parsed, err := parser.ParseFile(token.NewFileSet(), f, nil, parser.SkipObjectResolution)
		if err != nil {
			continue // it does not compile, which others will say
		}
		for _, d := range parsed.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil {
				out[f.Name.Name] = true
			}
		}
	}
	return out
}

// The test above must be able to fail.
func TestCheckReliability(t *testing.T) {
	var good strings.Builder
	for n := 1; n <= faults; n++ {
		fmt.Fprintf(&good, "| %d | a | b | `test/build.TestReliability` | c |\n", n)
	}
	for name, c := range map[string]struct{ old, new, want string }{
		"as it should be":     {"", "", ""},
		"a number is gone":    {"| 7 | a", "| x | a", "number 7 is there 0 times"},
		"a number is twice":   {"| 7 | a", "| 8 | a", "number 8 is there 2 times"},
		"one too many":        {"| 50 | a", "| 51 | a", "numbers that are none"},
		"no test":             {"| 7 | a | b | `test/build.TestReliability`", "| 7 | a | b | later", "line 7 names no test"},
		"open":                {"| 7 | a | b | `test/build.TestReliability`", "| 7 | a | b | **open**: later", ""},
		"a test that is gone": {"| 7 | a | b | `test/build.TestReliability`", "| 7 | a | b | `test/build.TestGone`", "there is no TestGone in test/build"},
		"no such package":     {"| 7 | a | b | `test/build.TestReliability`", "| 7 | a | b | `test/gone.TestReliability`", "there is no TestReliability in test/gone"},
		"cells are missing":   {"| 7 | a | b |", "| 7 | b |", "line 7 has 3 cells"},
	} {
		t.Run(name, func(t *testing.T) {
			got := checkReliability("../..", strings.Replace(good.String(), c.old, c.new, 1))
			if c.want == "" && len(got) > 0 || c.want != "" && !strings.Contains(strings.Join(got, "\n"), c.want) {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}
