package translations_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	_ "k8s.io/kubectl/pkg/cmd/options" // which asks for a translation while it is initialized
	"k8s.io/kubectl/pkg/util/i18n"

	_ "github.com/polder-kaas/polder/internal/cli/plane/translations"
)

const english = "Approve a certificate signing request"

// TestMain is also the process that is looked at: it says what kubectl would.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "say" {
		_, _ = os.Stdout.WriteString(i18n.T(english))
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// Only kubectl itself loads translations, which takes longer than all else at the start of a process.
func TestLoadsTranslationsForKubectlOnly(t *testing.T) {
	for _, args := range [][]string{{"say"}, {"say", "kubectl", "top"}} {
		c := exec.CommandContext(t.Context(), os.Args[0], args...)
		c.Env = []string{"LANG=de_DE.UTF-8"}
		out, err := c.Output()
		if err != nil || len(out) == 0 {
			t.Fatal(err)
		}
		if loaded := strings.TrimSpace(string(out)) != english; loaded != (len(args) > 1) {
			t.Errorf("%v: %s", args, out)
		}
	}
}
