package acceptance

import (
	"encoding/base64"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/polder-kaas/polder/test/testenv"
)

// clusterText is a cluster in HCL, with more in it.
func clusterText(tenant, name string, more ...string) string {
	return fmt.Sprintf("resource \"polder_cluster\" \"demo\" {\n  tenant = %q\n  name   = %q\n  stack = {\n    name               = \"scs\"\n    kubernetes_version = \"1.36\"\n  }\n%s}\n",
		tenant, name, strings.Join(append(more, ""), "\n"))
}

// accessText asks for a kubeconfig and hands it to a program, the only use that leaves it in no state.
const accessText = `
ephemeral "polder_kubeconfig" "demo" {
  tenant             = polder_cluster.demo.tenant
  cluster            = polder_cluster.demo.name
  uid                = polder_cluster.demo.uid
  role               = "admin"
  expiration_seconds = 600
}

resource "terraform_data" "access" {
  triggers_replace = polder_cluster.demo.labels
  provisioner "local-exec" {
    command     = "umask 077; printf %s \"$CONFIG\" >kubeconfig; printf %s \"$KEY\" >kubeconfig.key"
    environment = {
      CONFIG = ephemeral.polder_kubeconfig.demo.kubeconfig
      KEY    = ephemeral.polder_kubeconfig.demo.client_key
    }
  }
}
`

// TestLife follows a cluster that runs, from the first plan to the end: it is made once, planned again without a change,
// changed in place, used with access that is written down nowhere, protected, and deleted.
func TestLife(t *testing.T) {
	t.Parallel()
	p := shared.Get(t)
	newTenant(t, p, "tf-life")
	w := newWorkspace(t, p, "tf-life")
	file := func(replicas int, label string, more ...string) {
		w.write(t, "main.tf", clusterText("tf-life", "demo", append(more, "  labels = { team = \""+label+"\" }",
			fmt.Sprintf("  workers = [{ name = \"w\", replicas = %d }]", replicas))...)+accessText)
	}
	file(1, "blue")
	said := w.run(t, 0, "1 added", "apply", "-target=polder_cluster.demo") + w.run(t, 0, "1 added", "apply")
	uid := w.uid(t)
	if o, err := cluster(t, p, "tf-life", "demo"); err != nil || string(o.UID) != uid || o.Status.Phase != "Ready" {
		t.Fatalf("%v %+v, not %s", err, o.Status, uid)
	}
	w.unchanged(t)
	said += w.run(t, 0, "0 added, 0 changed, 0 destroyed", "apply")

	config := w.read(t, "kubeconfig")
	readNodes(t, config, 2)
	said += w.run(t, 2, "", "plan", "-out=plan", "-detailed-exitcode", "-replace=terraform_data.access")
	said += w.show(t) + w.show(t, "plan")
	w.search(t, secrets(t, w, config), said)

	file(2, "green")
	if a := w.actions(t); a != "update" {
		t.Fatalf("scaling is %q", a)
	}
	said = w.run(t, 0, "1 changed", "apply", "plan") // what was planned, with access to the cluster, is done
	readNodes(t, w.read(t, "kubeconfig"), 3)
	w.search(t, secrets(t, w, w.read(t, "kubeconfig")), said)
	w.unchanged(t)
	if o, err := cluster(t, p, "tf-life", "demo"); err != nil || string(o.UID) != uid || o.Labels["team"] != "green" || *o.Spec.Workers[0].Replicas != 2 {
		t.Errorf("%v %+v", err, o)
	}

	file(2, "green", "  deletion_protection = true")
	w.run(t, 0, "1 changed", "apply")
	w.run(t, 1, "spec.deletionProtection", "destroy")
	if w.uid(t) != uid {
		t.Error("a protected cluster is not in the state any more")
	}
	file(2, "green", "  deletion_protection = false")
	w.run(t, 0, "1 changed", "apply")
	w.run(t, 0, "2 destroyed", "destroy")
	if o, err := cluster(t, p, "tf-life", "demo"); !apierrors.IsNotFound(err) {
		t.Errorf("%v: %+v is still there", err, o.Status)
	}
	var secretsLeft corev1.SecretList
	if err := p.Client(t).List(t.Context(), &secretsLeft, client.InNamespace(namespaceOf("tf-life")), client.MatchingLabels{"cluster.x-k8s.io/cluster-name": "demo"}); err != nil || len(secretsLeft.Items) > 0 {
		t.Errorf("%v: %d Secrets are left", err, len(secretsLeft.Items))
	}
	if out := w.run(t, 0, "", "state", "list"); strings.TrimSpace(out) != "" {
		t.Errorf("the state still has %s", out)
	}
}

// readNodes uses a kubeconfig.
func readNodes(t *testing.T, file string, want int) {
	t.Helper()
	cfg, err := clientcmd.RESTConfigFromKubeConfig([]byte(file))
	if err != nil {
		t.Fatal(err)
	}
	k, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		t.Fatal(err)
	}
	l, err := k.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	if err != nil || len(l.Items) != want {
		t.Errorf("%v: %d nodes, not %d", err, len(l.Items), want)
	}
}

// secrets are what must be found nowhere: the key and the certificate, as they are and as kubeconfigs have them, and the
// token.
func secrets(t *testing.T, w *workspace, config string) map[string]string {
	t.Helper()
	var k struct {
		Users []struct {
			User map[string]string `json:"user"`
		} `json:"users"`
	}
	if err := yaml.Unmarshal([]byte(config), &k); err != nil || len(k.Users) != 1 {
		t.Fatalf("%v %+v", err, k)
	}
	key, err := base64.StdEncoding.DecodeString(k.Users[0].User["client-key-data"])
	if err != nil || string(key) != w.read(t, "kubeconfig.key") {
		t.Fatalf("the key of the kubeconfig is another than client_key (%v)", err)
	}
	lines := strings.Split(string(key), "\n")
	return map[string]string{
		"the key": lines[1], "the key in base64": k.Users[0].User["client-key-data"][40:100],
		"the certificate": k.Users[0].User["client-certificate-data"][100:160], "the token": w.read(t, "token"), "a key": "PRIVATE KEY-----",
	}
}

// TestKilledAndOutOfTime: a run that is killed, one that is interrupted and one that has no time leave one cluster, and
// each next one goes on with it.
func TestKilledAndOutOfTime(t *testing.T) {
	t.Parallel()
	p := shared.Get(t)
	newTenant(t, p, "tf-killed")
	w := newWorkspace(t, p, "tf-killed")
	w.write(t, "main.tf", clusterText("tf-killed", "demo"))
	kill := func(sig syscall.Signal, whom int) string {
		t.Helper()
		c := w.command("apply", "-auto-approve")
		out := &testenv.Buffer{}
		c.Stdout, c.Stderr = out, out
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		testenv.Eventually(t, wait, func() error {
			o, err := cluster(t, p, "tf-killed", "demo")
			if err == nil && o.Status.Phase == "" {
				return fmt.Errorf("the plane has not looked at it yet: %s", out)
			}
			return err
		})
		if err := syscall.Kill(whom*c.Process.Pid, sig); err != nil {
			t.Fatal(err)
		}
		_ = c.Wait() // with whatever code
		return out.String()
	}
	kill(syscall.SIGKILL, -1) // and all that it has started
	made, err := cluster(t, p, "tf-killed", "demo")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(w.dir + "/terraform.tfstate"); err == nil && w.uid(t) != "" {
		t.Fatal("a run that was killed has written its state: it was killed too late")
	}
	w.write(t, "main.tf", clusterText("tf-killed", "demo", "  timeouts = { create = \"1s\", update = \"1s\" }"))
	w.run(t, 0, "was made, and is not ready", "apply") // the same cluster, and too little time for it
	if uid := w.uid(t); uid != string(made.UID) {
		t.Fatalf("the cluster in the state is %s, not %s", uid, made.UID)
	}
	out := w.run(t, 1, "is not ready", "apply")
	if !strings.Contains(unwrap(out), "not ready after 1s: ") || !strings.Contains(unwrap(out), "the next apply waits for it again") {
		t.Errorf("it does not say why: %s", out)
	}
	w.write(t, "main.tf", clusterText("tf-killed", "demo"))
	w.run(t, 0, "1 changed", "apply")
	w.unchanged(t)
	if o, err := cluster(t, p, "tf-killed", "demo"); err != nil || o.UID != made.UID || o.Status.Phase != "Ready" {
		t.Errorf("%v %s %+v", err, o.UID, o.Status)
	}
	w.run(t, 0, "1 destroyed", "destroy")

	// The one that follows is interrupted, as with Ctrl-C, and fails where the configuration asks for it.
	const mustBeReady = "  lifecycle {\n    postcondition {\n      condition     = self.status.phase == \"Ready\"\n      error_message = \"It is not ready: ${self.status.message}\"\n    }\n  }"
	w.write(t, "main.tf", clusterText("tf-killed", "demo", mustBeReady, "  workers = [{ name = \"w\", replicas = 2 }]"))
	if out := kill(syscall.SIGINT, 1); !strings.Contains(unwrap(out), "when it was interrupted") || !strings.Contains(unwrap(out), "It is not ready") {
		t.Errorf("%s", out)
	}
	uid := w.uid(t)
	if uid == "" || uid == string(made.UID) {
		t.Fatalf("a run that was interrupted has the cluster %q in its state", uid)
	}
	w.run(t, 0, "1 changed", "apply")
	w.unchanged(t)
	if w.uid(t) != uid {
		t.Error("the cluster was made twice")
	}
	w.run(t, 0, "1 destroyed", "destroy")
}
