package cluster

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/polder-kaas/polder/api/v1alpha1"
	"github.com/polder-kaas/polder/internal/files/certificate"
	"github.com/polder-kaas/polder/internal/program/exit"
)

const requestPath = "/apis/polder.dev/v1alpha1/namespaces/default/kubeconfigrequests"

// signCSR is a certificate for the key of a request.
func signCSR(t *testing.T, request string) string {
	t.Helper()
	block, _ := pem.Decode([]byte(request))
	r, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil || r.CheckSignature() != nil {
		t.Fatalf("bad request: %v", err)
	}
	ca, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, r.PublicKey, ca)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
}

// signRequests answers requests as the plane does, with a condition.
func (f *fakePlane) signRequests(status metav1.ConditionStatus, reason, message string) {
	f.after = func(method, at string, o map[string]any) {
		if method != "POST" || at != requestPath {
			return
		}
		condition := map[string]any{"type": "Ready", "status": string(status), "reason": reason, "message": message}
		o["status"] = map[string]any{
			"conditions": []any{condition}, "certificate": signCSR(f.T, o["spec"].(map[string]any)["certificateRequest"].(string)),
			"certificateAuthority": "CA", "endpoint": "https://demo.example", "expirationTime": "2030-01-01T00:00:00Z",
		}
	}
}

func TestKubeconfigPrints(t *testing.T) {
	f := newFakePlane(t)
	f.signRequests(metav1.ConditionTrue, v1alpha1.ReasonIssued, "")
	out, errs, code := f.runWithInput("", "kubeconfig", "demo", "--role", "viewer", "--for", "1h")
	k, err := clientcmd.Load([]byte(out))
	if err != nil || code != exit.OK || errs != "" {
		t.Fatalf("it ends with %d, %v: %s%s", code, err, out, errs)
	}
	if k.CurrentContext != "demo-viewer" || k.Clusters["polder-default-demo"].Server != "https://demo.example" ||
		string(k.Clusters["polder-default-demo"].CertificateAuthorityData) != "CA" ||
		!strings.Contains(string(k.AuthInfos["polder-default-demo-viewer"].ClientKeyData), certificate.KeyPEMType) {
		t.Errorf("it prints %s", out)
	}
	spec := f.bodies["POST"]["spec"].(map[string]any)
	if spec["role"] != "viewer" || spec["expirationSeconds"] != 3600.0 || spec["clusterName"] != "demo" ||
		strings.Contains(spec["certificateRequest"].(string), "PRIVATE") {
		t.Errorf("it asks for %v", spec)
	}
	if last := f.requests[len(f.requests)-1]; last != "DELETE "+requestPath+"/demo-abc" || len(f.objects) != 0 {
		t.Errorf("it ends with %s, and leaves %v", last, sortedKeys(f.objects))
	}
}

func TestKubeconfigRefused(t *testing.T) {
	f := newFakePlane(t)
	f.signRequests(metav1.ConditionFalse, v1alpha1.ReasonClusterMissing, "there is no cluster demo")
	f.expectOutput(exit.Failure, "", "the plane grants no access: there is no cluster demo", "kubeconfig", "demo")
	if len(f.objects) != 0 {
		t.Errorf("it leaves %v", sortedKeys(f.objects))
	}
	f.signRequests(metav1.ConditionFalse, v1alpha1.ReasonClusterNotReady, "its API does not answer yet")
	f.expectOutput(exit.Timeout, "",
		`the plane has not signed a certificate for cluster "demo" within 50ms: its API does not answer yet; see how the cluster is with: polder describe demo`,
		"kubeconfig", "demo", "--timeout", "50ms")
	if len(f.objects) != 0 {
		t.Errorf("it leaves %v", sortedKeys(f.objects))
	}
	f.after = func(method, _ string, o map[string]any) {
		if method == "POST" {
			_, request, _ := certificate.NewKeyAndRequest("polder")
			o["status"] = map[string]any{
				"conditions": []any{map[string]any{"type": "Ready", "status": "True"}}, "certificate": signCSR(t, request), "endpoint": "https://x",
			}
		}
	}
	if _, errs, code := f.runWithInput("", "kubeconfig", "demo"); code != exit.Failure ||
		!strings.HasPrefix(errs, "the plane signed something else than what it was asked for (") {
		t.Errorf("with the certificate of another key it ends with %d: %s", code, errs)
	}
	f.after = func(method, _ string, o map[string]any) {
		if method == "POST" {
			o["status"] = map[string]any{"conditions": []any{map[string]any{"type": "Ready", "status": "True"}}}
		}
	}
	f.expectOutput(exit.Failure, "", "the plane says that access is granted, but gives no certificate or address; its polderd may be older than this polder",
		"kubeconfig", "demo")
	f.after = func(method, _ string, o map[string]any) {
		if method == "POST" {
			o["status"] = map[string]any{
				"conditions": []any{
					map[string]any{"type": "Ready", "status": "False", "reason": "BelongsToAnother", "message": "it is not yours"},
					map[string]any{"type": "Stalled", "status": "True"},
				},
			}
		}
	}
	f.expectOutput(exit.Failure, "", "the plane grants no access: it is not yours", "kubeconfig", "demo", "--timeout", "5m")
	for flags, want := range map[string]string{
		"--role root":             `there is no role "root"; choose admin or viewer`,
		"--for 9m":                "--for 9m0s is not possible; choose from 10m to 8h",
		"--for 8h1s":              "--for 8h0m1s is not possible; choose from 10m to 8h",
		"--merge --output-file x": "--output-file and --merge contradict each other; give one of them",
		"--admin --for 1h":        "--admin is what Cluster API made: it takes neither --role nor --for",
		"--timeout 0":             `--timeout "0" is no time that fits here; write, for example, 90s or 20m; see: polder kubeconfig --help`,
	} {
		f.expectOutput(exit.Usage, "", want, append([]string{"kubeconfig", "demo"}, strings.Fields(flags)...)...)
	}
}

func TestKubeconfigAdmin(t *testing.T) {
	f := newFakePlane(t, aWorkload(v1alpha1.PhaseCreating, ""))
	f.expectOutput(exit.Failure, "", "there is no Secret demo-kubeconfig in namespace default: the cluster has no control plane yet; see: polder describe demo",
		"kubeconfig", "demo", "--admin")
	f.expectOutput(exit.Usage, "", `there is no cluster "other" in namespace default; see which there are with: polder get`, "kubeconfig", "other", "--admin")
	f.refuse["POST "+requestPath] = refusal(403, metav1.StatusReasonForbidden, "", "denied the request: there is no such cluster")
	f.expectOutput(exit.Usage, "", `there is no cluster "other" in namespace default; see which there are with: polder get`, "kubeconfig", "other")
	f.expectOutput(exit.Failure, "", `asking for access to cluster "demo": the plane refuses it: there is no such cluster`, "kubeconfig", "demo")
	f.refuse["GET "+clusterPath+"/other"] = refusal(404, metav1.StatusReasonNotFound, "", "the server could not find the requested resource")
	// that it is missing nobody knows
	f.expectOutput(exit.Failure, "", `asking for access to cluster "other": the plane refuses it: there is no such cluster`, "kubeconfig", "other")
	secret := func(text string) string {
		return "{apiVersion: v1, kind: Secret, metadata: {name: demo-kubeconfig}, data: {value: " + base64.StdEncoding.EncodeToString([]byte(text)) + "}}"
	}
	f.add(secret("hello"))
	f.expectOutput(exit.Failure, "", "the value of Secret demo-kubeconfig in namespace default is no kubeconfig", "kubeconfig", "demo", "--admin")
	f.add(secret(`{apiVersion: v1, kind: Config, current-context: c, contexts: [{name: c, context: {cluster: x, user: u}}], clusters: [{name: x, cluster: {server: "https://d"}}], users: [{name: u, user: {token: t}}]}`))
	out, _, code := f.runWithInput("", "kubeconfig", "demo", "--admin")
	if k, err := clientcmd.Load([]byte(out)); err != nil || code != exit.OK || k.Clusters["polder-default-demo"].Server != "https://d" ||
		k.AuthInfos["polder-default-demo"].Token != "t" || k.CurrentContext != "demo" {
		t.Errorf("it ends with %d, %v: %s", code, err, out)
	}
	f.refuse["GET /api/v1/namespaces/default/secrets/demo-kubeconfig"] = refusal(403, metav1.StatusReasonForbidden, "demo-kubeconfig", "no")
	f.expectOutput(exit.Failure, "",
		"you may not read Secret demo-kubeconfig in namespace default, which is for operators; leave out --admin to get access of your own for some hours",
		"kubeconfig", "demo", "--admin")
}

func TestKubeconfigFile(t *testing.T) {
	f := newFakePlane(t)
	f.signRequests(metav1.ConditionTrue, v1alpha1.ReasonIssued, "")
	file := filepath.Join(t.TempDir(), "k")
	until := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC).Local().Format(time.RFC3339)
	for range 2 { // the second time, it replaces its own
		f.expectOutput(exit.OK, "Wrote "+file+", valid until "+until+". Use it with: kubectl --kubeconfig "+file+" get nodes\n", "", "kubeconfig", "demo",
			"--output-file", file)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	for content, want := range map[string]string{
		"my notes":     file + " is no kubeconfig, so it is not overwritten; name another file",
		"notes: mine":  file + " is no kubeconfig, so it is not overwritten; name another file",
		"kind: Secret": file + " is no kubeconfig, so it is not overwritten; name another file",
		"{apiVersion: v1, kind: Config, contexts: [{name: demo, context: {}}, {name: mine, context: {}}]}": file +
			" has other contexts (mine), which would be lost; name another file, or use --merge",
	} {
		f.WriteFile(file, content)
		f.expectOutput(exit.Usage, "", want, "kubeconfig", "demo", "--output-file", file)
		if b, _ := os.ReadFile(file); string(b) != content {
			t.Errorf("%s was overwritten", content)
		}
	}
}

const ownKubeconfig = `apiVersion: v1
kind: Config
current-context: mine
contexts:
- {name: mine, context: {cluster: mine, user: mine, namespace: ns}}
clusters:
- {name: mine, cluster: {server: "https://mine"}}
users:
- {name: mine, user: {token: t, exec: {apiVersion: client.authentication.k8s.io/v1, command: login, interactiveMode: Never}}}
`

func TestKubeconfigMerge(t *testing.T) {
	f := newFakePlane(t)
	f.signRequests(metav1.ConditionTrue, v1alpha1.ReasonIssued, "")
	dir := t.TempDir()
	file, link := filepath.Join(dir, "real"), filepath.Join(dir, "link")
	f.WriteFile(file, ownKubeconfig)
	if err := os.Symlink(file, link); err != nil {
		t.Fatal(err)
	}
	t.Setenv("KUBECONFIG", link)
	for range 2 {
		out, errs, code := f.runWithInput("", "kubeconfig", "demo", "--merge")
		if code != exit.OK || !strings.HasPrefix(out, "Merged context demo into "+link+", valid until ") ||
			!strings.HasSuffix(out, ". Use it with: kubectl --context demo get nodes\n") {
			t.Fatalf("it ends with %d: %s%s", code, out, errs)
		}
	}
	k, err := clientcmd.LoadFromFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if mine := k.AuthInfos["mine"]; k.CurrentContext != "mine" || k.Contexts["mine"].Namespace != "ns" || mine.Token != "t" || mine.Exec.Command != "login" ||
		k.Clusters["mine"].Server != "https://mine" {
		t.Errorf("what was there is changed: %+v", k)
	}
	if k.Contexts["demo"].Cluster != "polder-default-demo" || k.Clusters["polder-default-demo"].Server != "https://demo.example" || len(k.Contexts) != 2 {
		t.Errorf("what is new is wrong: %+v", k)
	}
	if entries, _ := os.ReadDir(dir); len(entries) != 2 {
		t.Errorf("left behind: %v", entries)
	}
	if info, _ := os.Lstat(link); info.Mode()&os.ModeSymlink == 0 {
		t.Error("the link is a file now")
	}
	f.WriteFile(link+".lock", "") // where kubectl has it
	f.expectOutput(exit.Failure, "", "another program changes "+link+"; try again, or remove "+link+".lock if there is none", "kubeconfig", "demo", "--merge")
	_ = os.Remove(link + ".lock")
	f.WriteFile(file, "my: notes")
	f.expectOutput(exit.Usage, "", file+" is no kubeconfig, so nothing is merged into it; set $KUBECONFIG to another file, or use --output-file", "kubeconfig",
		"demo", "--merge")
}

// What several files say together counts, as it does for kubectl.
func TestKubeconfigMergeSeveral(t *testing.T) {
	f := newFakePlane(t)
	f.signRequests(metav1.ConditionTrue, v1alpha1.ReasonIssued, "")
	dir := t.TempDir()
	first, second := filepath.Join(dir, "first"), filepath.Join(dir, "second")
	f.WriteFile(first, "")
	f.WriteFile(second, strings.ReplaceAll(ownKubeconfig, "{name: mine, context:", "{name: demo, context:"))
	t.Setenv("KUBECONFIG", first+string(filepath.ListSeparator)+second)
	f.expectOutput(exit.Failure, "",
		`your kubeconfig has a context "demo" for another cluster; rename that with: kubectl config rename-context demo NEW, or replace it with --force`,
		"kubeconfig", "demo", "--merge")
	if out, errs, code := f.runWithInput("", "kubeconfig", "demo", "--merge", "--force"); code != exit.OK ||
		!strings.HasPrefix(out, "Merged context demo into "+second) {
		t.Errorf("--force ends with %d: %s%s", code, out, errs)
	}
	f.WriteFile(second, ownKubeconfig)
	if out, errs, code := f.runWithInput("", "kubeconfig", "demo", "--merge"); code != exit.OK || !strings.HasPrefix(out, "Merged context demo into "+first) {
		t.Errorf("it ends with %d: %s%s", code, out, errs)
	}
	if k, err := clientcmd.LoadFromFile(first); err != nil || k.CurrentContext != "" || k.Contexts["demo"] == nil {
		t.Errorf("it takes over what is current: %v, %+v", err, k)
	}
}

// A link stays one, also where it leads to nothing yet.
func TestKubeconfigLinks(t *testing.T) {
	f := newFakePlane(t)
	f.signRequests(metav1.ConditionTrue, v1alpha1.ReasonIssued, "")
	dir := t.TempDir()
	for name, args := range map[string][]string{"merged": {"--merge"}, "written": {"--output-file", filepath.Join(dir, "written")}} {
		link := filepath.Join(dir, name)
		if err := os.Symlink("target-"+name, link); err != nil {
			t.Fatal(err)
		}
		t.Setenv("KUBECONFIG", link)
		if out, errs, code := f.runWithInput("", append([]string{"kubeconfig", "demo"}, args...)...); code != exit.OK {
			t.Fatalf("%s: it ends with %d: %s%s", name, code, out, errs)
		}
		if k, err := clientcmd.LoadFromFile(filepath.Join(dir, "target-"+name)); err != nil || k.Contexts["demo"] == nil {
			t.Errorf("%s: what it leads to: %v", name, err)
		}
		if info, _ := os.Lstat(link); info.Mode()&os.ModeSymlink == 0 {
			t.Errorf("%s: the link is a file now", name)
		}
	}
}
