package cluster

import (
	"bytes"
	"context"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/polder-kaas/polder/api/v1alpha1"
	"github.com/polder-kaas/polder/internal/cli/connect"
	"github.com/polder-kaas/polder/internal/cli/output"
	"github.com/polder-kaas/polder/internal/program/exit"
)

// deleteOnTerminal runs delete on a terminal where somebody types.
func (f *fakePlane) deleteOnTerminal(ctx context.Context, in io.Reader, args ...string) (stdout, stderr string, code int) {
	f.Helper()
	root, g := connect.NewRoot(connect.PolderName)
	d := newDeleteCommandAsking(g, func(io.Reader) bool { return true })
	d.SilenceErrors, d.SilenceUsage = true, true
	if err := root.PersistentFlags().Set("data-dir", f.Dir); err != nil {
		f.Fatal(err)
	}
	var out, errs bytes.Buffer
	d.SetArgs(args)
	d.SetIn(in)
	d.SetOut(&out)
	d.SetErr(&errs)
	err := d.ExecuteContext(ctx)
	return out.String(), errs.String() + output.Message(err), exit.Code(err)
}

func TestDeleteAsks(t *testing.T) {
	f := newFakePlane(t, aWorkload(v1alpha1.PhaseReady, "", atWork), aWorkload(v1alpha1.PhaseReady, "", withName("b")))
	out, errs, code := f.deleteOnTerminal(t.Context(), strings.NewReader("no\n"), "demo")
	if want := "Cluster default/demo: provider local, 8 machines, 2d old. All that is in it is lost.\nType its name to delete it: that is not its name; cluster \"demo\" was not deleted"; code != exit.Usage || out != "" || errs != want {
		t.Errorf("it ends with %d: %s%s", code, out, errs)
	}
	if len(f.objects) != 2 {
		t.Error("it was deleted all the same")
	}
	out, errs, code = f.deleteOnTerminal(t.Context(), strings.NewReader("demo\nb\n"), "demo", "b")
	if code != exit.OK || out != "workloadcluster/demo is being deleted\nworkloadcluster/b is being deleted\n" || len(f.objects) != 0 {
		t.Errorf("it ends with %d: %s%s", code, out, errs)
	}
	if body := f.bodies["DELETE"]; body["preconditions"].(map[string]any)["uid"] != "u1" {
		t.Errorf("it deletes whatever has the name: %v", body)
	}
}

func TestDeleteInterrupted(t *testing.T) {
	f := newFakePlane(t, aWorkload(v1alpha1.PhaseReady, ""))
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	silent, w := io.Pipe()
	defer w.Close()
	_, errs, code := f.deleteOnTerminal(ctx, silent, "demo")
	if code != exit.Interrupted || !strings.HasSuffix(errs, `interrupted; cluster "demo" was not deleted`) || len(f.objects) != 1 {
		t.Errorf("it ends with %d: %s", code, errs)
	}
}

func TestDeleteInAPipe(t *testing.T) {
	f := newFakePlane(t, aWorkload(v1alpha1.PhaseReady, ""))
	f.expectOutput(exit.Usage, "", "delete asks before it deletes, and here is nobody to ask; say --yes", "delete", "demo")
	f.expectOutput(exit.Usage, "", "polder delete takes the names of clusters, but got none; see: polder delete --help", "delete", "--yes")
	f.expectOutput(exit.Usage, "", `there is no cluster "x" in namespace default; see which there are with: polder get`, "delete", "demo", "x", "--yes")
	if len(f.objects) != 1 {
		t.Error("a mistyped name deletes the others")
	}
	f.expectOutput(exit.OK, "workloadcluster/demo is being deleted\nCluster demo is gone.\n", "", "delete", "demo", "--yes", "--wait")
}

// A page in place of an answer is no cluster that is gone, or was never there.
func TestPages(t *testing.T) {
	f := newFakePlane(t, aWorkload(v1alpha1.PhaseReady, ""))
	const said = " does not know the kinds of Polder: it is another cluster, its polderd is older than this polder, or something in front of it answers in its place"
	file := filepath.Join(t.TempDir(), "demo.yaml")
	f.WriteFile(file, "apiVersion: polder.dev/v1alpha1\nkind: WorkloadCluster\nmetadata: {name: demo}\nspec: {provider: local, stack: {name: scs}}\n")
	for request, args := range map[string][]string{
		"DELETE " + clusterPath + "/demo":               {"delete", "demo", "--yes"},
		"GET " + clusterPath + "/demo":                  {"apply", "-f", file},
		"GET " + clusterPath:                            {"wait", "demo", "--for", "deleted"},
		"GET /apis/polder.dev/v1alpha1/providers/other": {"create", "-f", file, "--provider", "other"},
	} {
		f.pages = map[string]bool{request: true}
		out, errs, code := f.runWithInput("", args...)
		if code != exit.Failure || out != "" || !strings.HasSuffix(errs, said) {
			t.Errorf("polder %s ends with %d: %s%s", strings.Join(args, " "), code, out, errs)
		}
	}
	if len(f.objects) != 1 || slices.ContainsFunc(f.requests, func(r string) bool { return strings.HasPrefix(r, "PATCH") || strings.HasPrefix(r, "POST") }) {
		t.Errorf("something was changed: %v", f.requests)
	}
}

// A cluster that cannot be deleted keeps none of the others, and is named in the end.
func TestDeleteSeveral(t *testing.T) {
	f := newFakePlane(t, aWorkload(v1alpha1.PhaseReady, ""), aWorkload(v1alpha1.PhaseReady, "", withName("b")), aWorkload(v1alpha1.PhaseReady, "", withName("c")))
	f.refuse["DELETE "+clusterPath+"/b"] = refusal(422, metav1.StatusReasonInvalid, "b", "the cluster is protected")
	out, errs, code := f.runWithInput("", "delete", "demo", "b", "c", "--yes", "--wait")
	const deleted = "workloadcluster/demo is being deleted\nworkloadcluster/c is being deleted\n"
	if !strings.HasPrefix(out, deleted) || !strings.HasSuffix(out, "Cluster c is gone.\n") || !strings.Contains(errs, `deleting cluster "b": the plane refuses it`) ||
		code != exit.Usage || len(f.objects) != 1 {
		t.Errorf("it ends with %d: %s%s", code, out, errs)
	}
}

func TestDeleteRefused(t *testing.T) {
	f := newFakePlane(t, aWorkload(v1alpha1.PhaseReady, "", func(c *v1alpha1.WorkloadCluster) { c.Spec.DeletionProtection = ptr.To(true) }))
	f.refuse["DELETE "+clusterPath+"/demo"] = refusal(422, metav1.StatusReasonInvalid, "demo",
		`workloadclusters.polder.dev "demo" is forbidden: ValidatingAdmissionPolicy 'x' with binding 'x' denied request: the cluster is protected`)
	_, errs, code := f.runWithInput("", "delete", "demo", "--yes")
	want := `deleting cluster "demo": the plane refuses it: the cluster is protected; if you mean it, lift the protection with: polder kubectl patch workloadcluster demo -n default --type merge -p '{"spec":{"deletionProtection":false}}'`
	if errs != want || code != exit.Usage {
		t.Errorf("it ends with %d: %s", code, errs)
	}
}
