package fault

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/polder-kaas/polder/api/v1alpha1"
	"github.com/polder-kaas/polder/test/testenv"
)

func keyOf(o client.Object) types.NamespacedName { return client.ObjectKeyFromObject(o) }

// What is secret in a Secret: private keys, in PEM form or once more encoded in a kubeconfig, and bootstrap tokens.
var (
	pemKey         = regexp.MustCompile(`(?s)-----BEGIN [A-Z ]*PRIVATE KEY-----\s*([A-Za-z0-9+/]{40})`)
	kubeconfigKey  = regexp.MustCompile(`client-key-data: ([A-Za-z0-9+/]{200,})`)
	bootstrapToken = regexp.MustCompile(`\b[a-z0-9]{6}\.[a-z0-9]{16}\b`)
)

// TestSecretsStaySecret makes a cluster on a plane that logs all it can, with a canary in every Secret that people write,
// and looks for all that is secret in the logs, in all objects but Secrets, in metrics, and in what the commands print.
func TestSecretsStaySecret(t *testing.T) {
	p := startWithCluster(t, "--log-level", "trace")
	c, ns := p.Client(t), p.CreateNamespace(t)
	const canary = "canary-of-a-customer-4711-8f3a"
	source := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "registry"}, StringData: map[string]string{
		"username": "somebody", "password": canary, "token": canary,
	}}
	stack := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"provider": "local", "name": "scs", "kubernetesVersion": "1.37", "channel": "stable", "autoSubscribe": true,
		"source": map[string]any{"oci": "oci://192.0.2.1/stacks", "secretRef": map[string]any{"name": "registry"}},
	}}}
	stack.SetAPIVersion("clusterstack.x-k8s.io/v1alpha1")
	stack.SetKind("ClusterStack")
	stack.SetNamespace(ns)
	stack.SetName("canary")
	if err := c.Create(t.Context(), source); err != nil {
		t.Fatal(err)
	}
	if err := c.Create(t.Context(), stack); err != nil {
		t.Logf("the stack is refused, which tests its words: %v", err)
		if strings.Contains(err.Error(), canary) {
			t.Errorf("the answer has the canary: %v", err)
		}
	}
	requestAccess(t, p)
	secrets := collectSecrets(t, p)
	secrets[canary] = "the password of a registry"
	if len(secrets) < 10 {
		t.Fatalf("only %d secrets were found; the test looks in the wrong place", len(secrets))
	}
	places := collectPlaces(t, p)
	for place, text := range places {
		for secret, of := range secrets {
			if strings.Contains(text, secret) {
				at := strings.Index(text, secret)
				line := text[strings.LastIndex(text[:at], "\n")+1 : at]
				t.Errorf("%s has %s: %.300s … %s", place, of, line, line[max(0, len(line)-200):])
			}
		}
	}
	if !strings.Contains(places["the log"], `"level":"DEBUG`) {
		t.Error("the log has no details; the test does not test what it should")
	}
	t.Logf("%d secrets were looked for in %d places", len(secrets), len(places))
}

// requestAccess asks for a kubeconfig of the cluster, with a key that the plane makes.
func requestAccess(t *testing.T, p *testenv.Plane) {
	t.Helper()
	var all v1alpha1.WorkloadClusterList
	c := p.Client(t)
	if err := c.List(t.Context(), &all); err != nil || len(all.Items) != 1 {
		t.Fatalf("%d clusters, %v", len(all.Items), err)
	}
	cmd := p.Tree.Command("polder", "--kubeconfig", filepath.Join(p.Data, "admin.kubeconfig"), "kubeconfig", all.Items[0].Name, "-n", all.Items[0].Namespace)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("polder kubeconfig: %v, %s", err, out)
	}
}

// collectSecrets returns what is secret in all Secrets, in the forms in which it could be seen, each with what it is.
func collectSecrets(t *testing.T, p *testenv.Plane) map[string]string {
	t.Helper()
	out := map[string]string{}
	var all corev1.SecretList
	if err := p.Client(t).List(t.Context(), &all); err != nil {
		t.Fatal(err)
	}
	for _, s := range all.Items {
		for key, value := range s.Data {
			of := fmt.Sprintf("%s of Secret %s/%s", key, s.Namespace, s.Name)
			isSecret := false
			for _, m := range pemKey.FindAllStringSubmatch(string(value), -1) {
				out[m[1]], isSecret = of, true
			}
			for _, m := range kubeconfigKey.FindAllStringSubmatch(string(value), -1) {
				out[m[1][100:160]], isSecret = of, true
			}
			for _, token := range bootstrapToken.FindAllString(string(value), -1) {
				out[token], isSecret = of, true
			}
			if encoded := base64.StdEncoding.EncodeToString(value); isSecret && len(encoded) > 400 {
				out[encoded[200:260]] = of + ", as in JSON"
			}
		}
	}
	return out
}

// collectPlaces returns everything where a secret must not be.
func collectPlaces(t *testing.T, p *testenv.Plane) map[string]string {
	t.Helper()
	out := map[string]string{"the log": p.Log()}
	for _, path := range []string{"/metrics", "/metrics/controllers", "/metrics/etcd", "/readyz?verbose"} {
		out[path] = p.GetPath(t, path)
	}
	forEachObject(t, p, func(r schema.GroupVersionResource, o *unstructured.Unstructured) {
		if r.Resource == "secrets" || strings.HasPrefix(r.Resource, "kubeadmconfig") {
			return // kubeadm's configurations have the token by Cluster API's design, and are not for customers
		}
		b, err := json.Marshal(o.Object)
		if err != nil {
			t.Fatal(err)
		}
		out[r.Resource+" "+o.GetNamespace()+"/"+o.GetName()] = string(b)
	})
	for _, args := range [][]string{{"status"}, {"status", "-o", "json"}} {
		b, _ := p.Tree.Command("polder", append(args, "--data-dir", p.Data)...).CombinedOutput() // its exit code says how the plane is
		out["polder "+strings.Join(args, " ")] = string(b)
	}
	for _, args := range [][]string{{"stack", "status", "-A"}, {"get", "-A"}, {"stacks", "-A"}, {"providers"}} {
		b, _ := p.Tree.Command("polder", append([]string{"--kubeconfig", filepath.Join(p.Data, "admin.kubeconfig")}, args...)...).CombinedOutput() // as above
		if strings.Contains(string(b), "unknown") {
			t.Errorf("polder %v: %s", args, b)
		}
		out["polder "+strings.Join(args, " ")] = string(b)
	}
	for name, text := range logFiles(t, filepath.Join(p.Data, "local")) {
		out[name] = text
	}
	return out
}

// logFiles are the logs of local clusters: of their hosts, boots and programs.
func logFiles(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.Contains(d.Name(), ".log") {
			return err
		}
		b, err := os.ReadFile(path)
		out[strings.TrimPrefix(path, dir)] = string(b)
		return err
	})
	if err != nil || len(out) < 3 {
		t.Errorf("%d logs of local clusters, %v", len(out), err)
	}
	return out
}
