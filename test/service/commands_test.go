package service

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/utils/ptr"

	"github.com/polder-kaas/polder/api/v1alpha1"
	"github.com/polder-kaas/polder/internal/cli"
	"github.com/polder-kaas/polder/internal/program/exit"
	"github.com/polder-kaas/polder/test/testenv"
)

// Ways to a plane: its Kubernetes API, its REST API with --server, and with a context of a kubeconfig for that.
const (
	byKubernetes = "kubernetes"
	byServer     = "server"
	byContext    = "context"
)

// commander runs commands of polder as members of tenants.
type commander struct {
	testenv.Tree
	kubernetes, rest string
	ca               []byte
	prepared         map[string][]string // flags, by way, tenant and role
}

func newCommander(t *testing.T, p *testenv.Plane) *commander {
	t.Helper()
	c := &commander{Tree: testenv.NewTree(t, false), kubernetes: p.Status(t).Address, rest: p.Status(t).REST, ca: p.RESTConfig(t).CAData, prepared: map[string][]string{}}
	c.write(t, "ca.crt", string(c.ca))
	return c
}

func (c *commander) write(t *testing.T, name, text string) string {
	t.Helper()
	file := filepath.Join(c.Root, name)
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil { // polder runs as another user
		t.Fatal(err)
	}
	return file
}

// flags are those with which a member of a tenant comes in a way.
func (c *commander) flags(t *testing.T, way, tenant, role string) []string {
	t.Helper()
	key := way + "-" + tenant + "-" + role
	if f := c.prepared[key]; f != nil {
		return f
	}
	token := issuerOfShared.token(t, time.Hour, tenant+"-"+role, tenant+"-"+role+"s")
	k := clientcmdapi.NewConfig()
	k.Clusters["x"] = &clientcmdapi.Cluster{Server: c.rest, CertificateAuthorityData: c.ca}
	k.Contexts["x"] = &clientcmdapi.Context{Cluster: "x", AuthInfo: "x", Namespace: tenant}
	k.AuthInfos["x"] = &clientcmdapi.AuthInfo{Token: token}
	k.CurrentContext = "x"
	switch way {
	case byKubernetes:
		k.Clusters["x"].Server = c.kubernetes
	case byServer: // the file has who vouches for the server, and the namespace
		delete(k.AuthInfos, "x")
		k.Contexts["x"].AuthInfo = ""
	}
	b, err := clientcmd.Write(*k)
	if err != nil {
		t.Fatal(err)
	}
	f := []string{"--kubeconfig", c.write(t, key+".kubeconfig", string(b))}
	if way == byServer {
		f = append(f, "--server", c.rest, "--token-file", c.write(t, key+".token", token+"\n"))
	}
	c.prepared[key] = f
	return f
}

// said is what a command has said, and its exit code.
type said struct {
	Stdout, Stderr string
	Code           int
}

func (c *commander) run(t *testing.T, way, tenant, role string, args ...string) said {
	t.Helper()
	return c.exec(t, slices.Concat(c.flags(t, way, tenant, role), args)...)
}

func (c *commander) exec(t *testing.T, args ...string) said {
	t.Helper()
	var out, errs bytes.Buffer
	cmd := c.Command("polder", args...)
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	return said{out.String(), errs.String(), exitCode(err)}
}

// What differs between two runs, or between two ways: where a command went, as a hint says it; how to lift a
// protection; how far something was on its way, and when; the version of an object; and keys.
var differing = []struct {
	pattern     *regexp.Regexp
	replacement string
}{
	{regexp.MustCompile(` --(kubeconfig|server|token-file|certificate-authority) \S+`), ""},
	{regexp.MustCompile(`; if you mean it, lift the protection with.*`), "; PROTECTED"},
	{regexp.MustCompile(`(?m)^ *[0-9.]+s  .*\n`), ""}, // on the way
	{regexp.MustCompile(`\b([0-9]+[dhms])+\b`), "AGE"},
	{regexp.MustCompile(`[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.]+(Z|[-+][0-9:]+)`), "TIME"},
	{regexp.MustCompile(`(uid|resourceVersion|UID)("?: )\S+`), "$1$2X"},
	{regexp.MustCompile(`(certificate-data|key-data|token): \S+`), "$1: X"},
	{regexp.MustCompile(`eyJ[-\w.]+`), "TOKEN"},
	{regexp.MustCompile(` +`), " "},
	{regexp.MustCompile(`-{2,}`), "--"},
}

func (c *commander) normalise(s said, tenant string) said {
	for _, text := range []*string{&s.Stdout, &s.Stderr} {
		*text = strings.NewReplacer(c.rest, "PLANE", c.kubernetes, "PLANE", c.Root, "ROOT", tenant, "TENANT").Replace(*text)
		for _, d := range differing {
			*text = d.pattern.ReplaceAllString(*text, d.replacement)
		}
	}
	return s
}

// commandCase is one command that is run in both ways. A change is made in two tenants that are alike.
type commandCase struct {
	role  string
	code  int
	words string // that it says
	args  []string
}

// TestCommandsOverREST runs every command of customers through the Kubernetes API and through the REST API. It says the
// same, and ends with the same code. A command that has no case here fails it.
func TestCommandsOverREST(t *testing.T) {
	t.Parallel()
	p := shared.Get(t)
	awaitStacks(t, p.Client(t))
	twins := map[string]string{byKubernetes: "cli-kube", byServer: "cli-rest"}
	for _, name := range []string{"cli-kube", "cli-rest", "cli-other"} {
		ms := members(name)
		for i := range ms {
			ms[i].Name = "oidc:" + ms[i].Name
		}
		newTenant(t, p, name, v1alpha1.TenantSpec{Members: ms, Quota: v1alpha1.TenantQuota{Machines: ptr.To[int32](8)}})
	}
	c := newCommander(t, p)
	ran := map[string]bool{}
	for _, x := range changes(t, c) {
		t.Run("change/"+x.role+" "+strings.Join(x.args, " "), func(t *testing.T) {
			ran[pathOf(t, x.args)] = true
			var got [2]said
			for i, way := range []string{byKubernetes, byServer} {
				args := slices.Clone(x.args)
				for j, a := range args {
					args[j] = strings.ReplaceAll(a, "TENANT", twins[way])
				}
				got[i] = c.normalise(c.run(t, way, twins[way], x.role, args...), twins[way])
				if got[i].Code != x.code || !strings.Contains(got[i].Stdout+got[i].Stderr, x.words) {
					t.Errorf("with %s: want %d and %q, got %+v", way, x.code, x.words, got[i])
				}
			}
			if diff := cmp.Diff(got[0], got[1]); diff != "" {
				t.Errorf("(-Kubernetes +REST): %s", diff)
			}
		})
	}
	for _, x := range readers(t, c) {
		t.Run("read/"+x.role+" "+strings.Join(x.args, " "), func(t *testing.T) {
			ran[pathOf(t, x.args)] = true
			testenv.Eventually(t, 10*time.Second, func() error { // the plane may write a status between two of them
				want := c.normalise(c.run(t, byKubernetes, "cli-rest", x.role, x.args...), "cli-rest")
				if want.Code != x.code || !strings.Contains(want.Stdout+want.Stderr, x.words) {
					return fmt.Errorf("want %d and %q, got %+v", x.code, x.words, want)
				}
				for _, way := range []string{byServer, byContext} {
					if diff := cmp.Diff(want, c.normalise(c.run(t, way, "cli-rest", x.role, x.args...), "cli-rest")); diff != "" {
						return fmt.Errorf("(-Kubernetes +%s): %s", way, diff)
					}
				}
				return nil
			})
		})
	}
	t.Run("get --watch", func(t *testing.T) { compareWatches(t, c) })
	t.Run("kubeconfig", func(t *testing.T) {
		ran["kubeconfig"] = true
		compareKubeconfigs(t, c)
	})
	t.Run("a robot", func(t *testing.T) {
		ran["tenant robot"] = true
		for _, way := range []string{byKubernetes, byServer} {
			useRobot(t, c, way, twins[way])
		}
	})
	t.Run("not through the REST API", func(t *testing.T) { refuseOperators(t, c, ran) })
	t.Run("every command has a case", func(t *testing.T) { requireCases(t, c, ran) })
}

// pathOf is which command arguments mean, without the word polder.
func pathOf(t *testing.T, args []string) string {
	t.Helper()
	found, _, err := cli.Command().Find(args)
	if err != nil {
		t.Fatal(err)
	}
	_, path, _ := strings.Cut(found.CommandPath(), " ")
	return path
}

// leaves are all commands that do something.
func leaves(c *cobra.Command) (out []string) {
	for _, sub := range c.Commands() {
		out = append(out, leaves(sub)...)
	}
	if c.Runnable() {
		_, path, _ := strings.Cut(c.CommandPath(), " ")
		out = append(out, path)
	}
	return out
}

// requireCases fails for each command that is neither compared nor one that asks no plane, or that of a directory.
func requireCases(t *testing.T, c *commander, ran map[string]bool) {
	t.Helper()
	asksNobody := []string{"", "version", "reference", "completion", "help", "credential", "kubectl"}
	// These are for one of both alone, or are tried where there is an issuer to log in with: TestLogin, TestRESTConformance.
	elsewhere := []string{"login", "logout", "api-conformance"}
	for _, path := range leaves(cli.Command()) {
		switch {
		case ran[path], slices.Contains(asksNobody, path), slices.Contains(elsewhere, path), strings.HasPrefix(path, "completion "):
			continue
		}
		// What is left works on a directory, and says so before it does anything.
		// Some want to know of what first.
		args, got := append([]string{"--server", c.rest}, strings.Fields(path)...), said{}
		if !slices.ContainsFunc([]int{0, 1, 2}, func(n int) bool {
			got = c.exec(t, slices.Concat(args, slices.Repeat([]string{"x"}, n))...)
			return got.Code == exit.Usage && strings.Contains(got.Stderr, "--server is for the commands on clusters")
		}) {
			t.Errorf("polder %s has no case here: %+v", path, got)
		}
	}
}

// refuseOperators runs what the REST API cannot do, or does in another way.
func refuseOperators(t *testing.T, c *commander, ran map[string]bool) {
	t.Helper()
	for _, x := range []commandCase{
		{"admin", exit.Usage, "needs the plane's Kubernetes API", []string{"tenant", "create", "cli-more"}},
		{"admin", exit.Usage, "needs the plane's Kubernetes API", []string{"tenant", "delete", "cli-rest", "--yes"}},
		{"admin", exit.Usage, "one tenant at a time; name one with -n", []string{"get", "-A"}},
		{"admin", exit.OK, "cli-rest", []string{"tenant", "list"}}, // those that one belongs to
	} {
		ran[pathOf(t, x.args)] = true
		got := c.run(t, byServer, "cli-rest", x.role, x.args...)
		if text := got.Stdout + got.Stderr; got.Code != x.code || !strings.Contains(text, x.words) || strings.Contains(text, "cli-other") {
			t.Errorf("%s: %+v", x.args, got)
		}
	}
	token := c.flags(t, byServer, "cli-rest", "editor")
	for name, x := range map[string]struct {
		words string
		args  []string
	}{
		"no token":       {"there is no login to", []string{"--server", c.rest, "--kubeconfig", c.flags(t, byKubernetes, "cli-rest", "editor")[1], "get"}},
		"in the clear":   {"is no URL of a REST API", []string{"--server", strings.Replace(c.rest, "https:", "http:", 1), "--token-file", token[5], "get"}},
		"no server":      {"are for the REST API that --server names", []string{"--token-file", token[5], "get"}},
		"no token in it": {"is no file with a token alone", []string{"--server", c.rest, "--token-file", filepath.Join(c.Root, "ca.crt"), "get"}},
		"not vouched":    {"certificate signed by unknown authority", []string{"--server", c.rest, "--token-file", token[5], "get"}},
	} {
		got := c.exec(t, x.args...)
		if got.Code == exit.OK || !strings.Contains(got.Stderr, x.words) {
			t.Errorf("%s: %+v", name, got)
		}
	}
	ca := filepath.Join(c.Root, "ca.crt")
	if got := c.exec(t, "--server", c.rest, "--token-file", token[5], "--certificate-authority", ca, "get", "-n", "cli-rest"); got.Code != exit.OK {
		t.Errorf("with --certificate-authority: %+v", got)
	}
}

// compareWatches follows clusters in both ways while one comes, changes and goes.
func compareWatches(t *testing.T, c *commander) {
	t.Helper()
	file := c.write(t, "watched.yaml", clusterFile("watched"))
	lines := map[string]func() []string{}
	for _, way := range []string{byKubernetes, byServer} {
		var out testenv.Buffer
		ctx, cancel := context.WithTimeout(t.Context(), wait)
		defer cancel()
		cmd := c.Command("polder", append(c.flags(t, way, "cli-rest", "editor"), "get", "--watch")...)
		cmd.Stdout, cmd.Stderr = &out, &out
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		stop := context.AfterFunc(ctx, func() { _ = cmd.Process.Kill() })
		defer stop()
		defer func() {
			_ = cmd.Process.Signal(syscall.SIGINT)
			var ended *exec.ExitError
			if err := cmd.Wait(); !errors.As(err, &ended) || ended.ExitCode() != exit.Interrupted {
				t.Errorf("with %s: %v", way, err)
			}
		}()
		lines[way] = func() (seen []string) {
			for line := range strings.Lines(out.String()) {
				if f := strings.Fields(line); len(f) > 1 && f[0] == "watched" && (len(seen) == 0 || seen[len(seen)-1] != f[1]) {
					seen = append(seen, f[1])
				}
			}
			return seen
		}
		testenv.Eventually(t, wait, func() error { // it has listed what is there
			if !strings.Contains(out.String(), "NAME") {
				return errors.New(out.String())
			}
			return nil
		})
	}
	for _, args := range [][]string{{"apply", "-f", file}, {"wait", "watched", "--for", "phase=Paused"}, {"delete", "watched", "--yes", "--wait"}} {
		if got := c.run(t, byServer, "cli-rest", "editor", args...); got.Code != exit.OK {
			t.Fatalf("%s: %+v", args, got)
		}
	}
	testenv.Eventually(t, wait, func() error {
		for way, seen := range lines {
			if all := seen(); len(all) < 3 || !slices.Contains(all, "False") || all[len(all)-1] != "is" { // "watched is gone"
				return fmt.Errorf("with %s: %q", way, all)
			}
		}
		return nil
	})
}

// compareKubeconfigs gets access to a cluster that is ready, in both ways, and uses it.
func compareKubeconfigs(t *testing.T, c *commander) {
	t.Helper()
	var got []said
	for _, way := range []string{byKubernetes, byServer} {
		one := c.run(t, way, "cli-rest", "editor", "kubeconfig", "ready", "--for", "10m")
		file := c.write(t, way+"-ready.kubeconfig", one.Stdout)
		if nodes := c.exec(t, "kubectl", "--kubeconfig", file, "get", "--raw", "/version"); nodes.Code != exit.OK || !strings.Contains(nodes.Stdout, "gitVersion") {
			t.Errorf("with %s: %+v", way, nodes)
		}
		got = append(got, c.normalise(one, "cli-rest"))
	}
	if diff := cmp.Diff(got[0], got[1]); diff != "" || got[0].Code != exit.OK {
		t.Errorf("(-Kubernetes +REST): %s", diff)
	}
}

// useRobot gets a kubeconfig for a program, which works with polder as it is, and gives the token alone.
func useRobot(t *testing.T, c *commander, way, tenant string) {
	t.Helper()
	got := c.run(t, way, tenant, "admin", "tenant", "robot", tenant, "ci", "--role", "editor", "--for", "10m")
	if got.Code != exit.OK || !strings.Contains(got.Stderr, "The token is valid until") {
		t.Fatalf("with %s: %+v", way, got)
	}
	file := c.write(t, way+"-robot.kubeconfig", got.Stdout)
	testenv.Eventually(t, wait, func() error { // its rights come a moment later
		if who := c.exec(t, "--kubeconfig", file, "get"); who.Code != exit.OK {
			return fmt.Errorf("with %s: %+v", way, who)
		}
		return nil
	})
	who := c.exec(t, "--kubeconfig", file, "whoami")
	sayWord(t, who.Stdout, "system:serviceaccount:"+tenant+":robot-ci", map[string]string{byKubernetes: c.kubernetes, byServer: c.rest}[way])
	alone := c.run(t, way, tenant, "admin", "tenant", "robot", tenant, "ci", "--token-only")
	tokenFile := c.write(t, way+"-robot.token", alone.Stdout)
	ca := filepath.Join(c.Root, "ca.crt")
	if got := c.exec(t, "--server", c.rest, "--certificate-authority", ca, "--token-file", tokenFile, "get", "-n", tenant); got.Code != exit.OK {
		t.Errorf("with its token: %+v", got)
	}
}
