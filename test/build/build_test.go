// Package build tests how the programs are built.
package build

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// A file that is embedded and no prerequisite could be changed, and make build would say that there is nothing to do.
func TestProgramsDependOnTheFilesTheyEmbed(t *testing.T) {
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	run := func(program string, args ...string) string {
		t.Helper()
		c := exec.Command(program, args...)
		c.Dir = root
		out, err := c.Output()
		if err != nil {
			t.Fatalf("%s %v: %v", program, args, err)
		}
		return string(out)
	}
	database := run("make", "--no-print-directory", "-pn", "help")
	for _, program := range []string{"polderd", "polder"} {
		prerequisites := map[string]bool{}
		for _, line := range strings.Split(database, "\n") {
			if files, ok := strings.CutPrefix(line, "bin/"+program+": "); ok {
				for _, f := range strings.Fields(files) {
					prerequisites[f] = true
				}
			}
		}
		embedded := 0
		const format = `{{if not .Standard}}{{$dir := .Dir}}{{range .EmbedFiles}}{{$dir}}/{{.}}{{"\n"}}{{end}}{{end}}`
		for _, f := range strings.Fields(run("go", "list", "-deps", "-f", format, "./cmd/"+program)) {
			name, err := filepath.Rel(root, f)
			if err != nil || strings.HasPrefix(name, "..") || strings.Contains(name, "/manifests/generated/") {
				continue // of a module, or made by the build itself
			}
			embedded++
			if !prerequisites[name] {
				t.Errorf("bin/%s embeds %s, and is not built anew if that changes", program, name)
			}
		}
		if embedded < 10 {
			t.Errorf("bin/%s embeds %d files; they were not found", program, embedded)
		}
	}
}
