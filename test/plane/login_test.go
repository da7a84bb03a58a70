package plane

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"

	"github.com/polder-kaas/polder/internal/program/exit"
	"github.com/polder-kaas/polder/test/testenv"
)

// authenticationFile is the file of an operator who believes issuers, each with a prefix of its own.
func authenticationFile(issuers map[string]*testenv.Issuer) string {
	b := &strings.Builder{}
	b.WriteString("apiVersion: apiserver.config.k8s.io/v1\nkind: AuthenticationConfiguration\njwt:\n")
	for prefix, i := range issuers {
		fmt.Fprintf(b, "- issuer: {url: %q, audiences: [polder], certificateAuthority: %q}\n"+
			"  claimMappings: {username: {claim: sub, prefix: %q}, groups: {claim: groups, prefix: %q}}\n", i.URL, i.CA, prefix, prefix)
	}
	return b.String()
}

// An operator says whose tokens are believed, changes it while the plane runs, and makes mistakes: what was right stays
// in force, and what is wrong is said.
func TestAuthenticationConfig(t *testing.T) {
	t.Parallel()
	first, second := testenv.NewIssuer(t), testenv.NewIssuer(t)
	p := testenv.NewPlane(t, testenv.NewTree(t, false))
	file := filepath.Join(filepath.Dir(p.Data), "login.yaml")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	believes := func(i *testenv.Issuer, claims map[string]any, want string) error {
		who, err := testenv.WhoAmI(t, p.RESTConfig(t), i.Token(t, "polder", claims))
		if err == nil && who != want {
			err = fmt.Errorf("taken for %q, not %q", who, want)
		}
		return err
	}
	alice := map[string]any{"sub": "alice"}
	good := authenticationFile(map[string]*testenv.Issuer{"a:": first})

	p.Start(t, "--authentication-config", file)
	if code := p.AwaitExit(t, wait); code != exit.DaemonUsage || !strings.Contains(p.Log(), "--authentication-config "+file+": no such file or directory") {
		t.Fatalf("a file that is not there: code %d, %s", code, p.Log())
	}
	write(good)
	p.Start(t, "--authentication-config", file)
	p.AwaitReady(t)
	testenv.Eventually(t, wait, func() error { return believes(first, alice, "a:alice") })
	if err := believes(second, alice, ""); !apierrors.IsUnauthorized(err) {
		t.Errorf("an issuer whom nobody believes: %v", err)
	}

	t.Run("names of the plane are nobody's", func(t *testing.T) {
		// Without prefix the issuer can write every name.
		write(strings.ReplaceAll(good, `"a:"`, `""`))
		testenv.Eventually(t, wait, func() error { return believes(first, alice, "alice") })
		for _, claims := range []map[string]any{
			{"sub": "system:admin"}, {"sub": "polder:operator"}, {"sub": "bob", "groups": []string{"polder:admins"}}, {"sub": "bob", "groups": []string{"x", "system:masters"}},
		} {
			if err := believes(first, claims, ""); !apierrors.IsUnauthorized(err) {
				t.Errorf("%v: %v", claims, err)
			}
		}
		write(good)
		testenv.Eventually(t, wait, func() error { return believes(first, alice, "a:alice") })
	})

	t.Run("a mistake leaves the old one in force", func(t *testing.T) {
		write(strings.Replace(good, "audiences: [polder]", "audiences: []", 1))
		const sentence = "login.yaml cannot be used, and the one before stays in force: jwt[0].issuer.audiences: Required value"
		testenv.Eventually(t, wait, func() error {
			out, err := polder(t, p.Tree, "status", "--data-dir", p.Data)
			if err != nil || !strings.Contains(out, "PROBLEM: ") || !strings.Contains(out, sentence) {
				return fmt.Errorf("polder status does not say it: %w: %s", err, out)
			}
			return nil
		})
		if text := p.GetPath(t, "/readyz?verbose"); !strings.Contains(text, "[!]polder-authentication: ") || !strings.Contains(text, sentence) {
			t.Errorf("operators read: %s", text)
		}
		if text := getWithToken(t, p.RESTConfig(t), "/readyz?verbose", first.Token(t, "polder", alice)); text != "ok" {
			t.Errorf("a customer reads: %s", text)
		}
		if err := believes(first, alice, "a:alice"); err != nil {
			t.Error(err)
		}
		if code := p.Signal(t, syscall.SIGTERM, wait); code != exit.OK {
			t.Fatalf("stopped with code %d", code)
		}
		p.Start(t, "--authentication-config", file)
		p.AwaitReady(t)
		testenv.Eventually(t, wait, func() error { return believes(first, alice, "a:alice") })
		if s := p.Status(t); s.Login == nil || !strings.Contains(s.Login.Problem, sentence) {
			t.Errorf("after a restart with the mistake: %+v", s.Login)
		}
	})

	t.Run("a second issuer", func(t *testing.T) {
		write(authenticationFile(map[string]*testenv.Issuer{"a:": first, "b:": second}))
		testenv.Eventually(t, wait, func() error { return believes(second, alice, "b:alice") })
		testenv.Eventually(t, wait, func() error {
			if s := p.Status(t); s.Login == nil || s.Login.Problem != "" || s.Login.Pending || len(s.Login.Issuers) != 2 {
				return fmt.Errorf("%+v", s.Login)
			}
			return nil
		})
	})
}

// getWithToken reads a path with a token.
func getWithToken(t *testing.T, cfg *rest.Config, path, token string) string {
	t.Helper()
	anonymous := rest.AnonymousClientConfig(cfg)
	anonymous.BearerToken = token
	c, err := rest.HTTPClientFor(anonymous)
	if err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, cfg.Host+path, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	res, err := c.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
