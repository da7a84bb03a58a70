package cli

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestClusterProgram(t *testing.T) {
	for _, tt := range []struct {
		args    []string
		program string
		rest    []string
	}{
		{nil, "polder", []string{}},
		{[]string{"/usr/bin/polder", "get"}, "polder", []string{"get"}},
		{[]string{"./kubectl-polder", "get", "-A"}, "kubectl polder", []string{"get", "-A"}},
		{[]string{"kubectl-polder.exe"}, "kubectl polder", []string{}},
		{[]string{"kubectl_complete-polder", "get", ""}, "kubectl polder", []string{"__complete", "get", ""}},
	} {
		program, rest := splitProgramName(tt.args)
		if d := cmp.Diff(tt.rest, rest); program != tt.program || d != "" {
			t.Errorf("%v is %s %v", tt.args, program, rest)
		}
	}
	c := CommandAs([]string{"kubectl-polder", "get", "--help"})
	var out strings.Builder
	c.SetOut(&out)
	if err := c.ExecuteContext(t.Context()); err != nil || !strings.Contains(out.String(), "kubectl polder get [NAME...] [flags]") {
		t.Errorf("help says, with %v:\n%s", err, out.String())
	}
}
