package service

import (
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/polder-kaas/polder/api/v1alpha1"
	"github.com/polder-kaas/polder/test/testenv"
)

// TestRESTSecrets uses the API on a plane that logs all it can, and then looks for tokens, keys and idempotency keys in
// the log, in metrics and in every file of the plane: its store, its record, what it keeps of clusters.
func TestRESTSecrets(t *testing.T) {
	t.Parallel()
	p := testenv.NewPlane(t, testenv.NewTree(t, false))
	p.OfferShipped = true
	config := filepath.Join(filepath.Dir(p.Data), "login.yaml")
	if err := os.WriteFile(config, []byte(issuerOfShared.configuration()), 0o644); err != nil {
		t.Fatal(err)
	}
	p.Start(t, "--log-level", "trace", "--rest-listen", "127.0.0.1:0", "--authentication-config", config)
	p.AwaitReady(t)
	awaitStacks(t, p.Client(t))
	restTenant(t, p, "discreet")
	secrets := map[string]string{} // with what each is
	// Signatures, since who somebody is and when is no secret.
	addToken := func(token, of string) { secrets[token[strings.LastIndex(token, ".")+1:]] = of }

	admin, editor := restAs(t, p, "ann", "discreet-admins"), restAs(t, p, "discreet-editor")
	addToken(admin.token, "the token of an admin")
	addToken(editor.token, "the token of an editor")
	admin.want(t, 200, "", "PUT", "/tenants/discreet/robots/ci", `{"role":"editor"}`, "Content-Type", jsonType)
	var robot struct{ Token string }
	admin.want(t, 201, "", "POST", "/tenants/discreet/robots/ci/tokens", `{}`, "Content-Type", jsonType).into(t, &robot)
	addToken(robot.Token, "the token of a robot")
	restWith(t, p, robot.Token).want(t, 200, "robot-ci", "GET", "/me", "")

	const wrong, inQuery, once = "canary-wrong-3f1c9a", "canary-query-77d0e2", "canary-once-b86a41"
	secrets[wrong], secrets[inQuery], secrets[once] = "a token that is wrong", "a token in a query", "an idempotency key"
	restWith(t, p, wrong).want(t, 401, "", "GET", "/me", "")
	editor.want(t, 422, "", "GET", "/tenants/discreet/clusters?access_token="+inQuery, "")
	const clusters = "/tenants/discreet/clusters"
	running := strings.Replace(clusterFile("one"), "  paused: true\n", "", 1)
	editor.want(t, 201, "", "POST", clusters, running, "Content-Type", yamlType, "Idempotency-Key", once)
	testenv.Eventually(t, wait, func() error {
		var o object
		editor.want(t, 200, "", "GET", clusters+"/one", "").into(t, &o)
		if o.Status.Phase != v1alpha1.PhaseReady {
			return fmt.Errorf("%s: %s", o.Status.Phase, o.Status.Message)
		}
		return nil
	})
	var k struct{ Kubeconfig string }
	editor.want(t, 201, "", "POST", clusters+"/one/kubeconfig", `{"role":"admin"}`, "Content-Type", jsonType).into(t, &k)
	for of, text := range keysOf(t, k.Kubeconfig) {
		secrets[text] = of
	}
	places, details, recorded := 0, false, false
	forEachPlace(t, p, func(place, text string) {
		places++
		for secret, of := range secrets {
			if at := strings.Index(text, secret); at >= 0 {
				t.Errorf("%s has %s: %q", place, of, text[max(0, at-200):min(len(text), at+len(secret))])
			}
		}
		details = details || strings.Contains(text, `"level":"DEBUG`)
		recorded = recorded || strings.HasPrefix(place, "audit") && strings.Contains(text, "discreet-editor")
	})
	if !details || !recorded || places < 50 {
		t.Errorf("%d places: the log has no details (%t), or the record does not know who asked (%t); the test does not test what it should", places, details, recorded)
	}
	t.Logf("%d secrets were looked for in %d places", len(secrets), places)
}

// keysOf are forms in which the private key of a kubeconfig could be seen.
func keysOf(t *testing.T, file string) map[string]string {
	t.Helper()
	cfg, err := clientcmd.RESTConfigFromKubeConfig([]byte(file))
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(cfg.KeyData), "\n")
	encoded := base64.StdEncoding.EncodeToString(cfg.KeyData)
	if len(lines) < 3 || len(encoded) < 200 {
		t.Fatalf("the kubeconfig has no key: %s", file)
	}
	return map[string]string{"a key that the API has made": lines[2], "that key, as a kubeconfig has it": encoded[80:160]}
}

// forEachPlace calls do with everything where a secret must not be. Files are not kept: together they are large.
func forEachPlace(t *testing.T, p *testenv.Plane, do func(place, text string)) {
	t.Helper()
	do("the log", p.Log())
	for _, path := range []string{"/metrics", "/metrics/controllers", "/metrics/etcd", "/readyz?verbose"} {
		do(path, p.GetPath(t, path))
	}
	err := filepath.WalkDir(p.Data, func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // the plane goes on meanwhile
		}
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		b, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		name, _ := filepath.Rel(p.Data, path)
		do(name, string(b))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
