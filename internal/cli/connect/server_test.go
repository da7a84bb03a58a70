package connect

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/polder-kaas/polder/internal/cli/output"
)

// TestServerConfig: a token goes to the server that it is for, and to no other.
func TestServerConfig(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	config := write("config", `{"apiVersion":"v1","kind":"Config","current-context":"a","clusters":[
		{"name":"a","cluster":{"server":"https://a.example.org/v1"}},{"name":"b","cluster":{"server":"https://b.example.org/v1/"}},
		{"name":"k","cluster":{"server":"https://k.example.org:7443"}}],
		"users":[{"name":"a","user":{"token":"secret-a"}},{"name":"b","user":{"token":"secret-b"}},{"name":"k","user":{"token":"secret-k"}}],"contexts":[
		{"name":"a","context":{"cluster":"a","user":"a","namespace":"acme"}},{"name":"a2","context":{"cluster":"a","user":"a"}},
		{"name":"b","context":{"cluster":"b","user":"b"}},{"name":"b2","context":{"cluster":"b","user":"b"}},
		{"name":"k","context":{"cluster":"k","user":"k","namespace":"other"}}]}`)
	missing := filepath.Join(dir, "missing")
	token, ca := write("token", "secret-f\n"), write("ca", "PEM")
	for name, tt := range map[string]struct {
		args             []string
		token, namespace string
		rest             bool
		err              string
	}{
		"the current context is for it":    {[]string{"--server", "https://a.example.org/v1/"}, "secret-a", "acme", true, ""},
		"a context that is named":          {[]string{"--server", "https://a.example.org/v1", "--context", "a2"}, "secret-a", "default", true, ""},
		"one of several":                   {[]string{"--server", "https://b.example.org/v1"}, "", "", false, "there are several logins to https://b.example.org/v1; choose one with --context: b, b2"},
		"a context of another server":      {[]string{"--server", "https://b.example.org/v1", "--context", "a"}, "", "", false, `context "a" is for another server`},
		"a context that is not there":      {[]string{"--server", "https://b.example.org/v1", "--context", "x"}, "", "", false, `has no context "x"`},
		"no login to it":                   {[]string{"--server", "https://k.example.org:7443/v1"}, "", "", false, "there is no login to https://k.example.org:7443/v1 here; log in with: polder login"},
		"a token of its own":               {[]string{"--server", "https://c.example.org/v1", "--token-file", token}, "secret-f", "default", true, ""},
		"a token instead of the context's": {[]string{"--server", "https://a.example.org/v1", "--token-file", token}, "secret-f", "acme", true, ""},
		"an authority that is none":        {[]string{"--server", "https://a.example.org/v1", "--certificate-authority", ca}, "", "", false, "has no certificate"},
		"a context without the flag":       {[]string{"--context", "a"}, "secret-a", "acme", true, ""},
		"a Kubernetes API":                 {[]string{"--context", "k"}, "secret-k", "other", false, ""},
		"no file":                          {[]string{"--server", "https://a.example.org/v1", "--token-file", missing}, "", "", false, "--token-file: "},
		"no token in it":                   {[]string{"--server", "https://a.example.org/v1", "--token-file", config}, "", "", false, "is no file with a token alone"},
		"no authority":                     {[]string{"--server", "https://a.example.org/v1", "--certificate-authority", missing}, "", "", false, "--certificate-authority: "},
		"in the clear":                     {[]string{"--server", "http://a.example.org/v1"}, "", "", false, "is no URL of a REST API"},
		"a Kubernetes API by the flag":     {[]string{"--server", "https://k.example.org:7443"}, "", "", false, "is no URL of a REST API"},
		"a token for nothing":              {[]string{"--token-file", token}, "", "", false, "are for the REST API that --server names"},
	} {
		t.Run(name, func(t *testing.T) {
			c, g := NewRoot(PolderName)
			var a *Access
			c.AddCommand(&cobra.Command{Use: "get", RunE: func(c *cobra.Command, _ []string) (err error) {
				a, err = g.Connect(c)
				return err
			}})
			c.SetArgs(append([]string{"get", "--kubeconfig", config}, tt.args...))
			err := c.ExecuteContext(t.Context())
			if tt.err != "" {
				if text := output.Message(err); !strings.Contains(text, tt.err) || strings.Contains(text, "secret-") {
					t.Errorf("%v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if a.Config.BearerToken != tt.token || a.Namespace != tt.namespace || a.IsREST != tt.rest || (a.Config.WrapTransport != nil) != tt.rest {
				t.Errorf("%q %q %t", a.Config.BearerToken, a.Namespace, a.IsREST)
			}
			if hint := a.Hint("get"); !strings.Contains(hint, strings.Join(tt.args, " ")) && tt.rest && tt.args[0] == "--server" && len(tt.args) == 2 {
				t.Errorf("people are told to call %s", hint)
			}
		})
	}
}
