package acceptance

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/polder-kaas/polder/api/v1alpha1"
	"github.com/polder-kaas/polder/test/testenv"
)

// paused is in clusters that need not run.
const paused = "  paused = true"

// everything is what a cluster can have beside its stack.
const everything = `
  paused              = true
  deletion_protection = false
  labels              = { team = "blue" }
  annotations         = { "example.org/contact" = "ops" }
  control_plane       = { replicas = 3, machine = { cpu = 2, memory = "4096Mi" } }
  workers = [
    { name = "a", machine_type = "SCS-2V-4", labels = { role = "web" }, taints = [{ key = "role", value = "web", effect = "NoSchedule" }, { key = "x", effect = "NoExecute" }] },
    { name = "b", replicas = 0, machine = { cpu = 4, memory = "8Gi", disk = "20Gi" }, labels = {}, zones = [] },
    { name = "c" },
  ]
  network    = { pod_cidrs = ["10.200.0.0/16"] }
  oidc       = { issuer_url = "https://id.example.org", client_id = "demo", groups_claim = "groups" }
  parameters = { certSANs = ["demo.example.org"] }
  timeouts   = { create = "5m" }
`

// TestNoDifference: whatever is written or left out, an apply leaves nothing to do, neither does an import.
func TestNoDifference(t *testing.T) {
	t.Parallel()
	p := shared.Get(t)
	newTenant(t, p, "tf-same")
	for name, text := range map[string]string{
		"least":   "resource \"polder_cluster\" \"demo\" {\n  tenant = \"tf-same\"\n  name = \"least\"\n  stack = { name = \"scs\" }\n  paused = true\n}\n",
		"all":     clusterText("tf-same", "all", everything),
		"empties": clusterText("tf-same", "empties", paused, "  workers = []", "  labels = {}", "  annotations = {}", "  parameters = {}", "  control_plane = { machine_type = \"\" }"),
	} {
		w := newWorkspace(t, p, "tf-same")
		w.write(t, "main.tf", text)
		w.run(t, 0, "1 added", "apply")
		w.unchanged(t)
		w.run(t, 0, "0 added, 0 changed, 0 destroyed", "apply")
		uid := w.uid(t)

		other := newWorkspace(t, p, "tf-same")
		other.write(t, "main.tf", text)
		other.run(t, 0, "Import successful", "import", "polder_cluster.demo", "tf-same/"+name)
		if other.uid(t) != uid {
			t.Errorf("%s: %s was imported, not %s", name, other.uid(t), uid)
		}
		if name == "least" {
			other.unchanged(t)
		} else {
			// What is written otherwise than the plane writes it, and timeouts, are written down once.
			if a := other.actions(t); a == "delete,create" {
				t.Errorf("%s: an imported cluster would be made anew", name)
			}
			other.run(t, 0, "0 added", "apply")
			other.unchanged(t)
		}
		w.run(t, 0, "1 destroyed", "destroy")
		if a := other.actions(t); a != "create" {
			t.Errorf("%s: a cluster that was deleted behind its back is %q", name, a)
		}
	}
	w := newWorkspace(t, p, "tf-same")
	w.write(t, "main.tf", clusterText("tf-same", "x"))
	w.run(t, 1, "must be TENANT/NAME", "import", "polder_cluster.demo", "x")
	w.run(t, 1, "non-existent", "import", "polder_cluster.demo", "tf-same/none")
}

// TestChanges: what can be changed in place is, and the rest needs another cluster.
func TestChanges(t *testing.T) {
	t.Parallel()
	p := shared.Get(t)
	newTenant(t, p, "tf-change")
	newTenant(t, p, "tf-change-other")
	w := newWorkspace(t, p, "tf-change")
	base := []string{paused, "  labels = { a = \"1\", b = \"1\" }", "  workers = [{ name = \"w\", machine_type = \"SCS-2V-4\" }]"}
	w.write(t, "main.tf", clusterText("tf-change", "demo", base...))
	w.run(t, 0, "1 added", "apply")
	for text, want := range map[string]string{
		clusterText("tf-change", "demo", base...):                                                                         "no-op",
		clusterText("tf-change", "demo", base[0]):                                                                         "update",
		strings.Replace(clusterText("tf-change", "demo", base...), `"1.36"`, `"1.37"`, 1):                                 "update",
		clusterText("tf-change", "demo", append([]string{"  control_plane = { replicas = 3 }"}, base...)...):              "update",
		clusterText("tf-change", "demo", append([]string{"  timeouts = { create = \"1h\" }"}, base...)...):                "update",
		clusterText("tf-change", "other", base...):                                                                        "delete,create",
		clusterText("tf-change-other", "demo", base...):                                                                   "delete,create",
		clusterText("tf-change", "demo", append([]string{"  network = { pod_cidrs = [\"10.200.0.0/16\"] }"}, base...)...): "delete,create",
	} {
		w.write(t, "main.tf", text)
		if a := w.actions(t); a != want {
			t.Errorf("%q, not %q:\n%s", a, want, text)
		}
	}

	// What others have put on it stays, and what was ours and is taken out goes.
	change := func(f func(o *v1alpha1.WorkloadCluster)) {
		t.Helper()
		testenv.Eventually(t, wait, func() error {
			o, err := cluster(t, p, "tf-change", "demo")
			if err != nil {
				return err
			}
			f(o)
			return p.Client(t).Update(t.Context(), o)
		})
	}
	change(func(o *v1alpha1.WorkloadCluster) {
		o.Labels["others"], o.Annotations = "1", map[string]string{"others": "1"}
	})
	w.write(t, "main.tf", clusterText("tf-change", "demo", paused, "  labels = { a = \"2\" }", "  workers = [{ name = \"w\", machine_type = \"SCS-2V-4\", replicas = 2 }]"))
	w.run(t, 0, "1 changed", "apply")
	w.unchanged(t)
	o, err := cluster(t, p, "tf-change", "demo")
	if err != nil || o.Labels["a"] != "2" || o.Labels["others"] != "1" || o.Annotations["others"] != "1" || *o.Spec.Workers[0].Replicas != 2 {
		t.Errorf("%v %+v", err, o)
	}
	if _, ok := o.Labels["b"]; ok {
		t.Error("a label that was taken out is still there")
	}

	// Somebody scales it: the next plan says so. A plan that was made before that is refused.
	w.write(t, "main.tf", clusterText("tf-change", "demo", paused, "  labels = { a = \"2\" }", "  workers = [{ name = \"w\", machine_type = \"SCS-2V-4\", replicas = 3 }]"))
	if a := w.actions(t); a != "update" {
		t.Fatal(a)
	}
	change(func(o *v1alpha1.WorkloadCluster) { o.Spec.Workers[0].Replicas = ptr.To[int32](7) })
	w.run(t, 1, "somebody has changed it since this plan was made", "apply", "plan")
	if o, err := cluster(t, p, "tf-change", "demo"); err != nil || *o.Spec.Workers[0].Replicas != 7 {
		t.Errorf("%v: a change of somebody else's was overwritten: %+v", err, o.Spec)
	}
	w.run(t, 2, "7 -> 3", "plan", "-detailed-exitcode")
	w.run(t, 0, "1 changed", "apply")
	w.unchanged(t)

	// Another cluster of its name is not taken for it, and not deleted.
	old, err := cluster(t, p, "tf-change", "demo")
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Client(t).Delete(t.Context(), old); err != nil {
		t.Fatal(err)
	}
	testenv.Eventually(t, wait, func() error {
		if _, err := cluster(t, p, "tf-change", "demo"); !apierrors.IsNotFound(err) {
			return fmt.Errorf("it is still there (%w)", err)
		}
		return nil
	})
	next := &v1alpha1.WorkloadCluster{}
	next.Name, next.Namespace, next.Spec = "demo", old.Namespace, old.Spec
	if err := p.Client(t).Create(t.Context(), next); err != nil {
		t.Fatal(err)
	}
	w.run(t, 2, "is gone, and another has its name", "plan", "-detailed-exitcode")
	w.run(t, 1, "import it as tf-change/demo", "apply")
	w.run(t, 0, "", "destroy")
	if err := p.Client(t).Get(t.Context(), client.ObjectKeyFromObject(next), next); err != nil || !next.DeletionTimestamp.IsZero() {
		t.Errorf("a cluster of somebody else was deleted: %v", err)
	}
}

// TestRefusals: what the plane refuses is said at plan, in its words, at the attribute.
func TestRefusals(t *testing.T) {
	t.Parallel()
	p := shared.Get(t)
	newTenant(t, p, "tf-bad")
	w := newWorkspace(t, p, "tf-bad")
	for _, x := range []struct{ line, words string }{
		{`  provider_name = "nowhere"`, "there is no such provider"},
		{`  workers = [{ name = "w", replicas = -1 }]`, "workers[0].replicas: -1: it should be greater than or equal to 0"},
		{`  workers = [{ name = "w", machine_type = "SCS-2V-4", machine = { cpu = 1, memory = "4Gi" } }]`, "not both"},
		{`  control_plane = { machine = { cpu = 1, memory = "1e2000000000" } }`, "control_plane.machine.memory: \"1e2000000000\" is no amount"},
		{`  control_plane = { replicas = 2 }`, "control_plane.replicas: Unsupported value: 2: supported values"},
		{`  network = { pod_cidrs = ["nonsense"] }`, "nonsense"},
		{`  parameters = { nope = 1 }`, `parameters["nope"]`},
		{`  parameters = "text"`, "parameters are an object"},
		{`  labels = { "not a name" = "a" }`, "not a name"},
	} {
		w.write(t, "main.tf", clusterText("tf-bad", "demo", paused, x.line))
		lines, said := refused(t, w)
		if !strings.Contains(strings.ToLower(said), strings.ToLower(x.words)) {
			t.Errorf("%s is refused without %q: %s", x.line, x.words, said)
		}
		if !strings.Contains(lines, strings.TrimSpace(strings.Split(x.line, "=")[0])) && !strings.Contains(x.line, `"text"`) { // the line of the attribute
			t.Errorf("%s is refused at %q: %s", x.line, lines, said)
		}
	}
	w.write(t, "main.tf", strings.Replace(clusterText("tf-bad", "demo", paused), `"1.36"`, `"1.99"`, 1))
	if lines, said := refused(t, w); !strings.Contains(lines, "stack = {") || !strings.Contains(said, `stack.kubernetes_version: "1.99"`) {
		t.Errorf("at %q: %s", lines, said)
	}
	if _, err := cluster(t, p, "tf-bad", "demo"); !apierrors.IsNotFound(err) {
		t.Errorf("a plan has made something: %v", err)
	}

	// A token that does not see the tenant any more is no cluster that is gone.
	w.write(t, "main.tf", clusterText("tf-bad", "demo", paused))
	w.run(t, 0, "1 added", "apply")
	uid := w.uid(t)
	w.write(t, "token", token(t, "stranger"))
	w.run(t, 1, "you do not belong to it", "plan")
	w.run(t, 1, "you do not belong to it", "destroy")
	w.write(t, "token", "nonsense")
	w.run(t, 1, "does not believe this token", "apply")
	w.write(t, "token", token(t, "tf-bad"))
	if w.uid(t) != uid {
		t.Error("a cluster that was not seen was forgotten")
	}
	w.run(t, 0, "1 destroyed", "destroy")
}

// refused plans, and returns which lines of the configuration are wrong, and why.
func refused(t *testing.T, w *workspace) (lines, said string) {
	t.Helper()
	out, err := w.command("plan", "-json").Output()
	if err == nil {
		t.Fatalf("it is planned: %s", out)
	}
	for line := range strings.Lines(string(out)) {
		var m struct {
			Diagnostic struct {
				Summary, Detail string
				Snippet         struct{ Code string }
			}
		}
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			t.Fatal(err)
		}
		lines, said = lines+m.Diagnostic.Snippet.Code+"\n", said+m.Diagnostic.Summary+": "+m.Diagnostic.Detail+"\n"
	}
	return lines, said
}
