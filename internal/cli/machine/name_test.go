package machine

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/polder-kaas/polder/internal/cli/connect"
	"github.com/polder-kaas/polder/internal/cli/output"
	"github.com/polder-kaas/polder/internal/program/exit"
	"github.com/polder-kaas/polder/internal/providers/local/hostapi"
)

func newReport(namespace, name, node string) report {
	return report{Namespace: namespace, Cluster: "c", MachineStatus: hostapi.MachineStatus{Name: name, Node: node}}
}

func TestFind(t *testing.T) {
	these := reports{
		newReport("a", "demo-x7k2p", "node-x7k2p"), newReport("a", "demo-md-b4c5d", "demo-md-b4c5d"),
		newReport("a", "twin", "twin"), newReport("b", "twin", "twin"), newReport("b", "node-x7k2p", "other"),
	}
	tests := map[string]struct{ name, want, wrong string }{
		"by name":                 {"demo-md-b4c5d", "a/demo-md-b4c5d", ""},
		"by namespace and name":   {"b/twin", "b/twin", ""},
		"a name before a node":    {"node-x7k2p", "b/node-x7k2p", ""},
		"by node":                 {"other", "b/node-x7k2p", ""},
		"by namespace and node":   {"a/node-x7k2p", "a/demo-x7k2p", ""},
		"several of the name":     {"twin", "", `2 machines are called twin; say which: a/twin or b/twin`},
		"part of a name":          {"demo", "", `there is no machine "demo"; did you mean demo-x7k2p or demo-md-b4c5d?`},
		"mistyped":                {"demo-x7k2", "", `there is no machine "demo-x7k2"; did you mean demo-x7k2p?`},
		"in another namespace":    {"b/demo-x7k2p", "", `there is no machine "b/demo-x7k2p"; did you mean demo-x7k2p?`},
		"similar to one of twins": {"twins", "", `there is no machine "twins"; did you mean a/twin or b/twin?`},
		"nothing like it":         {"elephant-house", "", `there is no machine "elephant-house"; see them all with: polder machine list --data-dir /d`},
		"empty":                   {"", "", `there is no machine ""; see them all with: polder machine list --data-dir /d`},
	}
	g := &connect.Globals{DataDir: "/d"}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			m, err := these.find(g, tt.name)
			if tt.wrong != "" {
				if output.Message(err) != tt.wrong || exit.Code(err) != exit.Usage {
					t.Errorf("find() says: %v", err)
				}
			} else if got := m.Namespace + "/" + m.Name; err != nil || got != tt.want {
				t.Errorf("find() = %s, %v, want %s", got, err, tt.want)
			}
		})
	}
	if _, err := (reports{}).find(g, "x"); output.Message(err) != `there is no machine "x", and no other in /d` {
		t.Errorf("where there are none, find() says: %v", err)
	}
}

func TestSimilarOfTooMany(t *testing.T) {
	var these reports
	for _, letter := range "abcdef" {
		these = append(these, newReport("a", "demo-"+string(letter), ""))
	}
	want := `there is no machine "demo"; see them all with: polder machine list --data-dir /d`
	if _, err := these.find(&connect.Globals{DataDir: "/d"}, "demo"); output.Message(err) != want {
		t.Errorf("find() says: %v", err)
	}
}

func TestShortestNames(t *testing.T) {
	these := reports{newReport("a", "one", ""), newReport("a", "twin", ""), newReport("b", "twin", "")}
	if diff := cmp.Diff([]string{"one", "a/twin", "b/twin"}, these.shortestNames()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
