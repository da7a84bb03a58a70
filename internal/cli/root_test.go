package cli

import (
	"strings"
	"testing"

	"github.com/polder-kaas/polder/internal/cli/clitest"
	"github.com/polder-kaas/polder/internal/program/exit"
)

// A flag that a command would not follow must not seem to be followed.
func TestKubeconfigIsRefused(t *testing.T) {
	p := clitest.New(t, Command)
	for _, flag := range []string{"--kubeconfig", "--context", "--server", "--token-file", "--certificate-authority"} {
		for command, args := range map[string][]string{"polder down": {"down"}, "polder stack status": {"stack", "status"},
			"polder machine list": {"machine", "list"}, "polder kubectl": {"kubectl", "get", "pods"}} {
			want := flag + " is for the commands on clusters; " + command + " works on the plane of a directory, which you can name with --data-dir"
			if _, errs, code := p.Execute(append([]string{flag, "x"}, args...)...); code != exit.Usage || !strings.Contains(errs, want) {
				t.Errorf("%s %s ends with %d: %s", flag, command, code, errs)
			}
		}
	}
}
