package stackauthor

import (
	"bytes"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	ociregistry "github.com/google/go-containerregistry/pkg/registry"
	"github.com/spf13/cobra"

	"github.com/polder-kaas/polder/internal/cli/connect"
	"github.com/polder-kaas/polder/internal/program/exit"
	"github.com/polder-kaas/polder/stack/render"
)

func TestMain(m *testing.M) {
	if code, child := render.Main(); child {
		os.Exit(code)
	}
	os.Exit(m.Run())
}

func newRoot() *cobra.Command {
	root, g := connect.NewRoot(connect.PolderName)
	root.AddCommand(NewCommand(g))
	return root
}

// execute runs a command and gives what it printed and how it ended.
func execute(t *testing.T, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	var out, complaints bytes.Buffer
	c := newRoot()
	c.SetArgs(args)
	c.SetIn(strings.NewReader(""))
	c.SetOut(&out)
	c.SetErr(&complaints)
	err = c.ExecuteContext(t.Context())
	return out.String(), complaints.String(), err
}

// must runs a command that must succeed.
func must(t *testing.T, args ...string) string {
	t.Helper()
	out, complaints, err := execute(t, args...)
	if err != nil {
		t.Fatalf("polder %s: %v\n%s%s", strings.Join(args, " "), err, out, complaints)
	}
	return out
}

// home keeps a test from the user's own files.
func home(t *testing.T) string {
	dir := t.TempDir()
	t.Setenv("HOME", dir)
	t.Setenv("XDG_CACHE_HOME", filepath.Join(dir, "cache"))
	return dir
}

func registryOn(t *testing.T) string {
	t.Helper()
	s := httptest.NewServer(ociregistry.New(ociregistry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(s.Close)
	return "oci://" + strings.TrimPrefix(s.URL, "http://") + "/kaas/stacks"
}

// The way of a stack author, from nothing to a release that others use.
func TestAuthor(t *testing.T) {
	dir, to := home(t), registryOn(t)
	src, rel := filepath.Join(dir, "my-stack"), filepath.Join(dir, "releases")
	must(t, "stack", "init", src, "--provider", "local", "--name", "mine")
	if out := must(t, "stack", "lint", src); out != "" {
		t.Error("a new stack is not clean:", out)
	}
	first := strings.TrimSpace(must(t, "stack", "build", src, "--output", rel))
	if !strings.Contains(first, "local-mine-1-37-v1@sha256:") {
		t.Error(first)
	}
	if out := must(t, "stack", "build", src, "--output", rel); !strings.Contains(out, "nothing has changed since local-mine-1-37-v1") {
		t.Error(out)
	}
	published := strings.TrimSpace(must(t, "stack", "publish", filepath.Join(rel, "local-mine-1-37-v1"), to))
	if _, digest, _ := strings.Cut(first, "@"); !strings.HasSuffix(published, digest) {
		t.Errorf("the digest of %s differs in %s", first, published)
	}

	// A change of the class alone is a release of its own, counted from what is published.
	class := filepath.Join(src, "cluster-class", "values.yaml")
	b, err := os.ReadFile(class)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(class, bytes.Replace(b, []byte("SCS-2V-4"), []byte("SCS-4V-8"), 1), 0o644); err != nil {
		t.Fatal(err)
	}
	fresh := filepath.Join(dir, "fresh")
	if out := must(t, "stack", "build", src, "--output", fresh, "--last", to); !strings.Contains(out, "local-mine-1-37-v2@") {
		t.Error(out)
	}
	if out := must(t, "stack", "build", src, "--output", fresh, "--last", to, "--mode", "beta"); !strings.Contains(out, "local-mine-1-37-v2-beta-1@") {
		t.Error(out)
	}
	must(t, "stack", "publish", filepath.Join(fresh, "local-mine-1-37-v2"), to)
	list := strings.Split(strings.TrimSpace(must(t, "stack", "list", to)), "\n")
	if len(list) != 3 || !strings.Contains(list[1], "local-mine-1-37-v1 ") || !strings.Contains(list[2], "v1.37.1") || !strings.Contains(list[2], "sha256:") {
		t.Error(strings.Join(list, "\n"))
	}
	if out, said, err := execute(t, "stack", "list", to, "--name", "other", "--provider", "local"); out != "" || err != nil || said != to+
		" has no release for --name other --provider local.\n" {
		t.Errorf("%q, %q, %v", out, said, err)
	}

	inside := filepath.Join(src, "out")
	if a, b := must(t, "stack", "build", src, "--output", inside, "--mode", "hash"), must(t, "stack", "build", src, "--output", inside, "--mode", "hash"); a != b {
		t.Errorf("releases in the source change it: %s, %s", a, b)
	}
	if err := os.RemoveAll(inside); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(src, "cluster-addon", "about", "values.yaml"), "stack: x\naddons: y\ncluster: z\n")
	if out := must(t, "stack", "build", src, "--output", fresh, "--last", to); !strings.Contains(out, "local-mine-1-37-v3@") {
		t.Error("the newest of two releases does not count:", out)
	}

	// Others get it, look at it, and use it.
	got := filepath.Join(dir, "pulled")
	must(t, "stack", "pull", published, got)
	same(t, filepath.Join(rel, "local-mine-1-37-v1"), filepath.Join(got, "local-mine-1-37-v1"))
	for _, from := range []string{filepath.Join(fresh, "local-mine-1-37-v3"), filepath.Join(got, "local-mine-1-37-v1"), to + ":local-mine-1-37-v2"} {
		if out := must(t, "stack", "render", from); !strings.Contains(out, "kind: ClusterClass") || !strings.Contains(out, "cluster: default/sample") {
			t.Errorf("%s: %s", from, out)
		}
	}
	if out := must(t, "stack", "params", to+":local-mine-1-37-v2"); !strings.Contains(out, "| flavor | string | `\"SCS-4V-8\"` |") {
		t.Error(out)
	}
	if out := must(t, "stack", "params", to+":local-mine-1-37-v2", "-o", "schema"); !strings.Contains(out, `"https://json-schema.org/draft/2020-12/schema"`) {
		t.Error(out)
	}
}

func same(t *testing.T, a, b string) {
	t.Helper()
	entries, err := os.ReadDir(a)
	if err != nil || len(entries) == 0 {
		t.Fatal(a, err)
	}
	for _, e := range entries {
		x, _ := os.ReadFile(filepath.Join(a, e.Name()))
		y, err := os.ReadFile(filepath.Join(b, e.Name()))
		if err != nil || !bytes.Equal(x, y) {
			t.Errorf("%s differs: %v", e.Name(), err)
		}
	}
}

// Values of a cluster, parts and hooks can be chosen.
func TestRenderChoice(t *testing.T) {
	dir := home(t)
	src := filepath.Join(dir, "s")
	must(t, "stack", "init", src)
	values := filepath.Join(dir, "cluster.yaml")
	// The class is of newer types than this cluster, and so is what templates see.
	text := "apiVersion: cluster.x-k8s.io/v1beta1\nkind: Cluster\nmetadata: {name: mine, namespace: team}\nspec: {topology: {class: a, version: v1.37.1}}\n"
	write(t, filepath.Join(src, "cluster-addon", "about", "overwrite.yaml"),
		"cluster: {{ .Cluster.metadata.namespace }}/{{ .Cluster.metadata.name }} of {{ .Cluster.spec.topology.classRef.name }}\n")
	if err := os.WriteFile(values, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	out := must(t, "stack", "render", src, "--values", values, "--only", "about", "--hook", "BeforeClusterUpgrade")
	if strings.Contains(out, "ClusterClass") || !strings.Contains(out, "# BeforeClusterUpgrade, stage about, apply: templates/about.yaml") ||
		!strings.Contains(out, "cluster: team/mine of a") {
		t.Error(out)
	}
	wrong := strings.Replace(text, "version: v1.37.1", "version: v1.37.1,\n variables: [{name: certSANs, value: [a, 5]},\n  {name: shoe, value: 1}]", 1)
	write(t, values, wrong)
	_, complaints, err := execute(t, "stack", "render", src, "--values", values)
	for _, want := range []string{
		values + ":5: error: variable certSANs[1]: write a text [variable]\n",
		values + ":6: error: variable shoe: the class has no such variable; it has certSANs, flavor [variable]\n",
	} {
		if err == nil || !strings.Contains(complaints, want) {
			t.Errorf("%v: %s, want %s", err, complaints, want)
		}
	}
	// Who wants the class alone does not care about add-ons.
	write(t, filepath.Join(src, "cluster-addon", "about", "templates", "x.yaml"), "{{ fail \"no luck\" }}")
	replaceIn(t, filepath.Join(src, "clusteraddon.yaml"), "action: apply", "action: install")
	if out := must(t, "stack", "render", src, "--only", "class"); strings.Contains(out, "ConfigMap") || !strings.Contains(out, "ClusterClass") {
		t.Error(out)
	}
}

// Bad input gets one sentence that says what to do, and nothing is written.
func TestBadInput(t *testing.T) {
	dir, to := home(t), registryOn(t)
	src, rel := filepath.Join(dir, "s"), filepath.Join(dir, "rel")
	must(t, "stack", "init", src)
	must(t, "stack", "build", src, "--output", rel)
	v1 := filepath.Join(rel, "local-s-1-37-v1")
	must(t, "stack", "publish", v1, to)
	other := filepath.Join(dir, "other")
	must(t, "stack", "init", other, "--name", "s", "--kubernetes", "v1.37.0")
	must(t, "stack", "build", other, "--output", filepath.Join(dir, "rel2"))
	broken := filepath.Join(dir, "broken")
	must(t, "stack", "init", broken)
	write(t, filepath.Join(broken, "cluster-addon", "about", "templates", "x.yaml"), "{{ fail \"no luck\" }}")
	link := filepath.Join(dir, "link")
	must(t, "stack", "init", link)
	if err := os.Symlink("/etc/passwd", filepath.Join(link, "cluster-class", "x")); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		args []string
		want string
		code int
	}{
		"no such directory":         {[]string{"lint", filepath.Join(dir, "nowhere")}, "there is no directory", exit.Usage},
		"no stack":                  {[]string{"build", dir}, "there is no stack.yaml, so this is no stack; polder stack init makes one", exit.Failure},
		"a directory that is taken": {[]string{"init", src}, "is not empty; remove it or choose another place", exit.Failure},
		"an unknown provider": {[]string{"init", filepath.Join(dir, "x"), "--provider", "moon"},
			`there is no scaffold for provider "moon"; choose one of docker, local, openstack`, exit.Usage},
		"a name that is none":        {[]string{"init", filepath.Join(dir, "x"), "--name", "A_B"}, `stack name "A_B" must be`, exit.Usage},
		"Kubernetes without a patch": {[]string{"init", filepath.Join(dir, "x"), "--kubernetes", "1.37"}, "must be exact, for example v1.37.0", exit.Usage},
		"another minor":              {[]string{"build", src, "--kubernetes", "1.30"}, "stack.yaml does not name Kubernetes 1.30; it has 1.37", exit.Failure},
		"an unknown mode":            {[]string{"build", src, "--mode", "a b"}, `mode "a b" is neither`, exit.Failure},
		"custom without a version":   {[]string{"build", src, "--mode", "custom"}, "give it with --version", exit.Usage},
		"a stack that fails":         {[]string{"build", broken, "--output", filepath.Join(dir, "never")}, "it is not sound, so nothing was written", exit.Failure},
		"no such earlier releases": {[]string{"build", src, "--last", filepath.Join(dir, "typo"), "--output", filepath.Join(dir, "never")},
			"there is no such directory", exit.Failure},
		"no mode":                   {[]string{"build", src, "--mode", ""}, `mode "" is neither`, exit.Failure},
		"an unknown command":        {[]string{"biuld"}, `polder stack has no command "biuld"; did you mean build?`, exit.Usage},
		"what others call publish":  {[]string{"push", v1, to}, `polder stack has no command "push"; did you mean publish?`, exit.Usage},
		"what others call render":   {[]string{"template", src}, `polder stack has no command "template"; did you mean render?`, exit.Usage},
		"what csctl calls build":    {[]string{"create", src}, `polder stack has no command "create"; did you mean build?`, exit.Usage},
		"a link":                    {[]string{"lint", link}, `entry "cluster-class/x" is a symbolic link`, exit.Failure},
		"an unknown hook":           {[]string{"render", src, "--hook", "Sometime"}, `hook "Sometime" is not known`, exit.Usage},
		"an unknown part":           {[]string{"render", src, "--only", "moon"}, `has no part "moon"`, exit.Usage},
		"values that are not there": {[]string{"render", src, "--values", filepath.Join(dir, "none.yaml")}, "no such file", exit.Usage},
		"no release to publish":     {[]string{"publish", src, to}, "metadata.yaml", exit.Failure},
		"a version that is taken":   {[]string{"publish", filepath.Join(dir, "rel2", "local-s-1-37-v1"), to}, "publish it as a new version", exit.Failure},
		"a registry without oci":    {[]string{"list", "registry.example.org/stacks"}, "write oci://registry.example.org/stacks", exit.Usage},
		"a release that is not":     {[]string{"pull", to + ":local-s-1-37-v9", filepath.Join(dir, "p")}, "it is not in oci://", exit.Failure},
		"a reference without a tag": {[]string{"pull", to, filepath.Join(dir, "p")}, "names no release", exit.Failure},
		"a digest that is another": {[]string{"pull", to + ":local-s-1-37-v1@sha256:" + strings.Repeat("0", 64), filepath.Join(dir, "p")}, "the tag has moved",
			exit.Failure},
		"a password without a user": {[]string{"list", to, "--password-stdin"}, "give both --username and --password-stdin", exit.Usage},
		"too few arguments":         {[]string{"publish", src}, "takes the directory of a release and where to put it, but got 1", exit.Usage},
		"an unknown form":           {[]string{"params", src, "-o", "poem"}, "choose page or schema", exit.Usage},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := execute(t, append([]string{"stack"}, tc.args...)...)
			if err == nil || !strings.Contains(err.Error(), tc.want) || exit.Code(err) != tc.code {
				t.Errorf("got %v with code %d, want %q with %d", err, exit.Code(err), tc.want, tc.code)
			}
		})
	}
	for _, name := range []string{"x", "never", "p"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err == nil {
			t.Errorf("%s was written", name)
		}
	}
	out, complaints, err := execute(t, "stack", "render", broken)
	if exit.Code(err) != exit.Failure || !strings.Contains(complaints, "cluster-addon/about/templates/x.yaml:1: error: no luck") ||
		!strings.Contains(out, "ClusterClass") {
		t.Errorf("%v\n%s", err, complaints)
	}
	out, _, err = execute(t, "stack", "lint", broken, "-o", "json")
	if exit.Code(err) != exit.Failure || !strings.Contains(out, `"rule": "render"`) {
		t.Errorf("%v\n%s", err, out)
	}
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// What else lies beside releases does not matter to a build; a broken release of the same line does.
func TestBuildBeside(t *testing.T) {
	dir := home(t)
	src, rel := filepath.Join(dir, "s"), filepath.Join(dir, "rel")
	must(t, "stack", "init", src)
	for _, name := range []string{"notes", "openstack-scs-v5", ".local-s-1-37-v1-123", "local-other-1-37-v7", "local-s-1-37-latest", "local-s-1-37-v0-a.b"} {
		if err := os.MkdirAll(filepath.Join(rel, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if out := must(t, "stack", "build", src, "--output", rel); !strings.Contains(out, "local-s-1-37-v1@") {
		t.Error(out)
	}
	if err := os.Mkdir(filepath.Join(rel, "local-s-1-37-v5"), 0o755); err != nil {
		t.Fatal(err)
	}
	if _, _, err := execute(t, "stack", "build", src, "--output", rel); err == nil ||
		!strings.Contains(err.Error(), "the next version cannot be told, because local-s-1-37-v5 is left out") {
		t.Error(err)
	}
}

// A chart of the stack that another needs is locked too, and lint says when it has changed since.
func TestLockPath(t *testing.T) {
	src := filepath.Join(home(t), "s")
	must(t, "stack", "init", src)
	lib := filepath.Join(src, "cluster-addon", "lib")
	if err := os.MkdirAll(filepath.Join(lib, "templates"), 0o755); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(lib, "Chart.yaml"), "apiVersion: v2\nname: lib\nversion: 1.0.0\n")
	write(t, filepath.Join(lib, "templates", "l.yaml"), "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: lib}\n")
	write(t, filepath.Join(src, "cluster-addon", "about", "Chart.yaml"),
		"apiVersion: v2\nname: about\nversion: 0.1.0\ndependencies:\n  - {name: lib, version: ^1.0.0, repository: 'file://../lib'}\n")
	if out, _, err := execute(t, "stack", "lint", src); err == nil ||
		!strings.Contains(out, "neither in cluster-addon/about/charts nor locked; run polder stack lock") {
		t.Error(err, out)
	}
	must(t, "stack", "lock", src)
	if out := must(t, "stack", "lint", src); out != "" {
		t.Error(out)
	}
	if out := must(t, "stack", "render", src, "--only", "about"); !strings.Contains(out, "name: lib") {
		t.Error(out)
	}
	write(t, filepath.Join(lib, "templates", "l.yaml"), "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: other}\n")
	if out, _, err := execute(t, "stack", "lint", src); err == nil || !strings.Contains(out, "Chart.yaml:5: error: dependency lib: ") {
		t.Error(err, out)
	}
	write(t, filepath.Join(src, "cluster-addon", "about", "Chart.yaml"), "apiVersion: v2\nname: about\nversion: 0.1.0\n")
	must(t, "stack", "lock", src)
	if _, err := os.Stat(filepath.Join(src, "stack.lock")); err == nil {
		t.Error("a lock that nobody needs is still there")
	}
}
