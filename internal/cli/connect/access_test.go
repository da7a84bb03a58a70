package connect

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/client-go/tools/clientcmd"
)

func TestConnectPrecedence(t *testing.T) {
	const env, home = "/env/config", "/home/config"
	for name, tt := range map[string]struct {
		args    []string
		plugin  bool
		env     bool
		started bool // the data directory has a kubeconfig
		want    string
		local   bool
	}{
		"nothing":                         {want: home},
		"a plane on this machine":         {started: true, want: "DIR/admin.kubeconfig", local: true},
		"its context":                     {args: []string{"--context", "polder"}, started: true, want: "DIR/admin.kubeconfig", local: true},
		"a context of another plane":      {args: []string{"--context", "elsewhere"}, started: true, want: home},
		"environment":                     {env: true, started: true, want: env},
		"the flag before all":             {args: []string{"--kubeconfig", "/f", "--data-dir", "/d"}, env: true, started: true, want: "/f"},
		"a directory that is named":       {args: []string{"--data-dir", "/d"}, env: true, want: "/d/admin.kubeconfig", local: true},
		"plugin":                          {plugin: true, started: true, want: home},
		"plugin with environment":         {plugin: true, env: true, started: true, want: env},
		"plugin with a directory by name": {plugin: true, args: []string{"--data-dir", "/d"}, want: "/d/admin.kubeconfig", local: true},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			t.Setenv("POLDER_DATA_DIR", dir)
			if tt.started {
				const text = `{"apiVersion":"v1","kind":"Config","contexts":[{"name":"polder","context":{"cluster":"x"}}]}`
				if err := os.WriteFile(filepath.Join(dir, "admin.kubeconfig"), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			usual := &clientcmd.ClientConfigLoadingRules{Precedence: []string{home}}
			if tt.env {
				t.Setenv("KUBECONFIG", env)
				usual = clientcmd.NewDefaultClientConfigLoadingRules()
			}
			g := &Globals{Program: PolderName}
			if tt.plugin {
				g.Program = PluginName
			}
			c, _ := NewRoot(PolderName)
			g.flags = c.PersistentFlags()
			if err := g.flags.Parse(tt.args); err != nil {
				t.Fatal(err)
			}
			g.DataDir, g.kubeconfigFile = g.flags.Lookup("data-dir").Value.String(), g.flags.Lookup("kubeconfig").Value.String()
			g.contextName = g.flags.Lookup("context").Value.String()
			rules, local := g.kubeconfigRules(usual)
			if got := strings.ReplaceAll(KubeconfigPaths(rules), dir, "DIR"); got != tt.want || local != tt.local {
				t.Errorf("%s (local: %t), want %s", got, local, tt.want)
			}
		})
	}
}

func TestKubectlHintOfAnotherPlane(t *testing.T) {
	root, g := NewRoot(PolderName)
	_ = root.PersistentFlags().Set("kubeconfig", "other")
	if got := (&Access{Globals: g}).KubectlHint(); got != "kubectl --kubeconfig other" {
		t.Errorf("for another plane people are told to call %s", got)
	}
}
