package stackstatus

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	"github.com/polder-kaas/polder/internal/cli/clitest"
	"github.com/polder-kaas/polder/internal/cli/connect"
	"github.com/polder-kaas/polder/internal/program/exit"
)

func newRoot() *cobra.Command {
	root, g := connect.NewRoot(connect.PolderName)
	stack := &cobra.Command{Use: "stack"}
	stack.AddCommand(NewCommand(g))
	root.AddCommand(stack)
	return root
}

// serveObjects answers lists of a world, each object in a part of its own, as an API server does that is
// asked for parts. Without a world, it knows none of the kinds.
func serveObjects(p clitest.Polder, w *objectSet) (server string) {
	p.Helper()
	lists := map[string]any{}
	if w != nil {
		const own = "/apis/clusterstack.x-k8s.io/v1alpha1/"
		lists = map[string]any{
			own + "clusterstacks": w.stacks, own + "clusterstackreleases": w.releases, own + "clusteraddons": w.addons,
			"/apis/cluster.x-k8s.io/v1beta2/clusters": w.clusters,
		}
	}
	s := httptest.NewServer(http.HandlerFunc(func(a http.ResponseWriter, q *http.Request) {
		items, known := lists[q.URL.Path]
		if !known {
			http.NotFound(a, q)
			return
		}
		b, err := json.Marshal(items)
		var all []map[string]any
		if err != nil || json.Unmarshal(b, &all) != nil {
			http.Error(a, "bad test", http.StatusInternalServerError)
			return
		}
		at := 0
		fmt.Sscan(q.URL.Query().Get("continue"), &at)
		part := map[string]any{"apiVersion": "v1", "kind": "List", "metadata": map[string]any{}, "items": []any{}}
		if at < len(all) {
			all[at]["apiVersion"], all[at]["kind"] = "example/v1", "Thing"
			part["items"] = all[at : at+1]
		}
		if at+1 < len(all) {
			part["metadata"] = map[string]any{"continue": fmt.Sprint(at + 1)}
		}
		a.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(a).Encode(part)
	}))
	p.Cleanup(s.Close)
	p.WriteKubeconfig(s.URL, "")
	return s.URL
}

func TestCommand(t *testing.T) {
	p := clitest.New(t, newRoot)
	w := manyStacks()
	serveObjects(p, &w)
	p.Expect(exit.NotReady, `NAMESPACE/STACK                        STATE     MESSAGE
default/try (local scs 1.36, custom)   Waiting   1 of 1 releases is not ready
└─ local-scs-1-36-v0-sha-abc1234       Failed    ConfigMap x is not allowed

Next:
- ClusterStackRelease default/local-scs-1-36-v0-sha-abc1234: remove the object from the stack and publish a new version, or allow its kind with polderd's --stack-kinds (stack author)
`, "", "stack", "status", "try")
	out, _, code := p.Execute("stack", "status", "-A")
	if rows := strings.Count(out, "\n"); code != exit.NotReady || rows != strings.Count(manyStacksText, "\n") ||
		!strings.Contains(out, "with: polder --data-dir "+p.Dir+" kubectl edit cluster -n team-a old") {
		t.Errorf("status -A ends with %d:\n%s", code, out)
	}
	if out, _, code := p.Execute("stack", "status", "other/scs", "-o", "yaml"); code != exit.NotReady || !strings.Contains(out, "\nready: false\n") ||
		!strings.Contains(out, "  reason: SourceMissing\n") {
		t.Errorf("status -o yaml ends with %d:\n%s", code, out)
	}
	p.Expect(exit.Usage, "", `there is no ClusterStack "x" in namespace default; choose from: default/scs, default/try`, "stack", "status", "x")
	p.Expect(exit.Usage, "", `there is no ClusterStack "try" in namespace other; choose from: other/scs`, "stack", "status", "try", "-n", "other")
	p.Expect(exit.Usage, "", `there is no ClusterStack "x" in namespace nowhere, and no other`, "stack", "status", "nowhere/x")
	for i := range 9 {
		w.stacks = append(w.stacks, aStack("more", fmt.Sprint(i)))
	}
	serveObjects(p, &w)
	p.Expect(exit.Usage, "", `there is no ClusterStack "x" in any namespace; leave out the name to see all 12`, "stack", "status", "x", "-A")
}

func TestReady(t *testing.T) {
	p := clitest.New(t, newRoot)
	w := manyStacks()
	w.stacks, w.releases, w.clusters = w.stacks[2:], w.releases[1:2], w.clusters[1:2] // default/dev of default/scs
	serveObjects(p, &w)
	p.Expect(exit.OK, `NAMESPACE/STACK                        STATE   MESSAGE
default/scs (local scs 1.36, stable)   Ready   latest local-scs-1-36-v10 (v1.36.3)
└─ local-scs-1-36-v2                   Ready   v1.36.3, used by 1 cluster
   └─ default/dev                      Ready   v1.36.3, add-ons ready
`, "", "stack", "status")
	p.Expect(exit.OK, `{
  "ready": true,
  "stacks": [
    {
      "namespace": "default",
      "name": "scs",
      "provider": "local",
      "stack": "scs",
      "kubernetes": "1.36",
      "channel": "stable",
      "state": "Ready",
      "reason": "Ready",
      "latestRelease": "local-scs-1-36-v10 | v1.36.3",
      "releases": [
        {
          "namespace": "default",
          "name": "local-scs-1-36-v2",
          "kubernetes": "v1.36.3",
          "state": "Ready",
          "reason": "Ready",
          "clusters": [
            {
              "namespace": "default",
              "name": "dev",
              "kubernetes": "v1.36.3",
              "state": "Ready",
              "reason": "Ready",
              "stages": [
                {
                  "name": "cni",
                  "action": "apply",
                  "phase": "done"
                }
              ]
            }
          ]
        }
      ]
    }
  ],
  "releasesWithoutStack": [],
  "clustersWithoutRelease": [],
  "next": []
}
`, "", "stack", "status", "-o", "json")
}

const firstStack = `There is no ClusterStack in WHERE. One keeps the newest release of a stack ready for clusters; make it with:

polder --data-dir DIR kubectl apply -f - <<EOF
apiVersion: clusterstack.x-k8s.io/v1alpha1
kind: ClusterStack
metadata: {name: scs, namespace: NAMESPACE}
spec:
  provider: local
  name: scs
  kubernetesVersion: "1.36"
  # source: {oci: "oci://registry.example.org/stacks"}   # without it, that of polderd's --stack-source
EOF
`

func TestWithoutStacks(t *testing.T) {
	p := clitest.New(t, newRoot)
	say := func(where, namespace string) string {
		return strings.NewReplacer("WHERE", where, "NAMESPACE", namespace).Replace(firstStack)
	}
	serveObjects(p, &objectSet{})
	p.Expect(exit.NotReady, "", say("namespace default", "default"), "stack", "status")
	p.Expect(exit.NotReady, "", say("any namespace", "default"), "stack", "status", "-A")
	if out, _, code := p.Execute("stack", "status", "-o", "json"); code != exit.NotReady || !strings.Contains(out, `"stacks": [],`) ||
		!strings.Contains(out, `"ready": false,`) {
		t.Errorf("-o json ends with %d:\n%s", code, out)
	}
	w := manyStacks()
	p.WriteKubeconfig(serveObjects(p, &w), "of-the-kubeconfig")
	p.Expect(exit.NotReady, "", say("namespace of-the-kubeconfig (3 elsewhere; see: polder stack status -A --data-dir DIR)", "of-the-kubeconfig"), "stack",
		"status")
	p.Expect(exit.NotReady, "", say("namespace x (3 elsewhere; see: polder stack status -A --data-dir DIR)", "x"), "stack", "status", "-n", "x")
}

func TestWithoutPlane(t *testing.T) {
	p := clitest.New(t, newRoot)
	p.Expect(exit.Failure, "", "there is no plane in DIR yet; start one with: polder up --data-dir DIR", "stack", "status")
	serveObjects(p, nil)
	p.Expect(exit.Failure, "", "the plane in DIR has no clusterstacks.clusterstack.x-k8s.io: its polderd is older than this polder; start the one beside it with: polder down --data-dir DIR, then polder up --data-dir DIR", "stack", "status")
	p.WriteKubeconfig("http://127.0.0.1:1", "")
	p.Expect(exit.Failure, "", "the plane in DIR does not answer: dial tcp 127.0.0.1:1: connect: connection refused; see: polder status --data-dir DIR", "stack",
		"status")
	p.WriteFile(filepath.Join(p.Dir, "admin.kubeconfig"), "{}")
	if _, errs, code := p.Execute("stack", "status"); code != exit.Failure ||
		!strings.HasPrefix(errs, filepath.Join(p.Dir, "admin.kubeconfig")+" cannot be used: ") || strings.Contains(errs, "\n") {
		t.Errorf("with an empty kubeconfig it ends with %d: %s", code, errs)
	}
}

func TestWithBadInput(t *testing.T) {
	p := clitest.New(t, newRoot)
	p.Expect(exit.Usage, "", "--namespace and --all-namespaces contradict each other; give one of them", "stack", "status", "-A", "-n", "x")
	p.Expect(exit.Usage, "", "polder stack status takes at most the name of a ClusterStack, but got 2 arguments; see: polder stack status --help", "stack",
		"status", "a", "b")
	for _, bad := range []string{"", "/", "a/", "/a", "a/b/c"} {
		p.Expect(exit.Usage, "", fmt.Sprintf("%q is no name of a ClusterStack; say NAME or NAMESPACE/NAME", bad), "stack", "status", bad)
	}
	p.Expect(exit.Usage, "", `"a/b" names a namespace already; leave out --namespace and --all-namespaces`, "stack", "status", "a/b", "-A")
	p.Expect(exit.Usage, "", `"a/b" names a namespace already; leave out --namespace and --all-namespaces`, "stack", "status", "a/b", "-n", "c")
}

func TestCompletion(t *testing.T) {
	p := clitest.New(t, newRoot)
	w := manyStacks()
	serveObjects(p, &w)
	for typed, want := range map[string][]string{"": {"scs", "try"}, "other/": {"other/scs"}} {
		out, _, _ := p.Execute("__complete", "stack", "status", typed)
		var got []string
		for _, l := range strings.Split(out, "\n") {
			if strings.HasPrefix(l, typed) && l != "" && !strings.HasPrefix(l, ":") {
				got = append(got, l)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q (-want +got):\n%s", typed, diff)
		}
	}
}
