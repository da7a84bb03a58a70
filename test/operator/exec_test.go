//go:build fault

package operator

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	csv1 "github.com/polder-kaas/polder/api/clusterstack/v1alpha1"
	"github.com/polder-kaas/polder/stack/archive"
	"github.com/polder-kaas/polder/test/testenv"
)

// hidden are stacks that would like to have something run: by templates, by Helm's plugins and post-renderers, by programs among
// their files, by what a shell would take for commands.
var hidden = map[string]func(archive.Tree){
	"a template":      withClass(`x: {{ exec "/bin/sh" "-c" "id" }}`),
	"a plugin":        withFile("cluster-class/plugin.yaml", "name: evil\nversion: 1.0.0\ncommand: /bin/sh -c id\nhooks: {install: /bin/sh}\n"),
	"a post-renderer": withFile("cluster-class/post-renderer", "#!/bin/sh\nid\n"),
	"a program":       withFile("cluster-class/files/evil", "\x7fELF\x02\x01\x01"),
	"a shell": withClass("apiVersion: infrastructure.cluster.x-k8s.io/v1alpha1\nkind: LocalMachineTemplate\n" +
		"metadata: {name: evil, annotations: {run: \"$(id)\", too: \"`id`\"}}\nspec: {template: {spec: {}}}\n"),
}

func withFile(name, text string) func(archive.Tree) {
	return func(files archive.Tree) { files[name] = []byte(text) }
}

// A whole plane is watched while it reads and renders stacks that hide programs: it runs itself, to render, and nothing else.
func TestFaultHiddenPrograms(t *testing.T) {
	p := shared.Get(t)
	log := filepath.Join(t.TempDir(), "exec")
	s := p.Strace(t, "-o", log, "-e", "trace=execve,execveat")
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
	end := func() {
		_ = s.Process.Signal(os.Interrupt) // it lets go of the plane, and ends
		_ = s.Wait()
	}
	defer end()
	testenv.Eventually(t, soon, func() error { // it is there once it has seen the first child
		w := newWalk(t)
		w.publish(t, "1.36", "v1", nil)
		w.stack(t, "stack", "1.36", nil)
		w.becomesReady(t, "stack", "v1")
		_, err := os.Stat(log)
		return err
	})
	for name, change := range hidden {
		t.Run(name, func(t *testing.T) {
			w := newWalk(t)
			w.publish(t, "1.36", "v1", change)
			w.stack(t, "stack", "1.36", nil)
			testenv.Eventually(t, soon, func() error { return w.isJudged(t, "local-scs-1-36-v1") })
		})
	}
	end()
	own, others := executed(t, log, p.Tree.Bin)
	t.Logf("polderd was run %d times, others %d times", own, len(others))
	if own < len(hidden)/2 || len(others) > 0 {
		t.Errorf("polderd was run %d times, and: %v", own, others)
	}
}

// isJudged returns nil once a release is ready, or is known not to be.
func (w *walk) isJudged(t *testing.T, name string) error {
	t.Helper()
	rel := &csv1.ClusterStackRelease{}
	if err := w.get(t, name, rel); err != nil {
		return err
	}
	c := meta.FindStatusCondition(rel.Status.Conditions, csv1.ConditionReady)
	if c == nil || c.Status != metav1.ConditionTrue && c.Reason != csv1.ReasonInvalid && c.Reason != csv1.ReasonRefused {
		return fmt.Errorf("nothing is known about the release: %+v", c)
	}
	return nil
}

var execLine = regexp.MustCompile(`execve(?:at)?\((?:\d+, )?"([^"]*)"`)

// executed counts what the log says was run: the programs of the tree, also by the link to the running one, and others.
func executed(t *testing.T, log, bin string) (own int, others []string) {
	t.Helper()
	b, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range execLine.FindAllStringSubmatch(string(b), -1) {
		if strings.HasPrefix(m[1], bin+"/") || m[1] == "/proc/self/exe" {
			own++
			continue
		}
		others = append(others, m[1])
	}
	return own, others
}
