package apiconformance

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/pem"
	"flag"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/polder-kaas/polder/conformance"
	"github.com/polder-kaas/polder/internal/cli/output"
	"github.com/polder-kaas/polder/internal/program/exit"
	"github.com/polder-kaas/polder/test/foreign"
)

var update = flag.Bool("update", false, "write golden files anew")

// setting is a server, and a directory with files for the command.
type setting struct {
	*testing.T
	url, dir string
}

func newSetting(t *testing.T, d foreign.Deviation) setting {
	t.Helper()
	document, err := os.ReadFile("../../../docs/reference/openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	s, err := foreign.New(document, d)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewTLSServer(s)
	t.Cleanup(server.Close)
	x := setting{t, server.URL + "/v1", t.TempDir()}
	x.write("ca.pem", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})))
	for name, token := range map[string]string{
		"editor": foreign.EditorToken, "admin": foreign.AdminToken, "viewer": foreign.ViewerToken, "other": foreign.OtherToken,
	} {
		x.write(name, token+"\n")
	}
	return x
}

func (x setting) file(name string) string { return filepath.Join(x.dir, name) }

func (x setting) write(name, text string) {
	x.Helper()
	if err := os.WriteFile(x.file(name), []byte(text), 0o600); err != nil {
		x.Fatal(err)
	}
}

// run runs the command, and returns what it said: of its output, the address is URL and names are NAME.
func (x setting) run(ctx context.Context, args ...string) (out, errs string, code int) {
	x.Helper()
	var b bytes.Buffer
	c := NewCommand()
	c.SilenceErrors, c.SilenceUsage = true, true
	c.SetArgs(args)
	c.SetOut(&b)
	c.SetErr(&b)
	err := c.ExecuteContext(ctx)
	clean := strings.NewReplacer(strings.TrimSuffix(x.url, "/v1"), "URL", x.dir, "DIR").Replace(b.String())
	return regexp.MustCompile(`api-conf-[0-9a-f]{8}`).ReplaceAllString(clean, "NAME"),
		strings.ReplaceAll(output.Message(err), x.dir, "DIR"), exit.Code(err)
}

// all are the arguments for a whole run.
func (x setting) all(more ...string) []string {
	return append([]string{x.url, "--tenant", foreign.Tenant, "--certificate-authority", x.file("ca.pem"), "--token-file", x.file("editor"),
		"--admin-token-file", x.file("admin"), "--viewer-token-file", x.file("viewer"), "--other-token-file", x.file("other"),
		"--wait-ready", "1m"}, more...)
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", file, diff)
	}
}

// What is printed of a server that keeps its promises, of one that breaks one, and of one for which tokens are missing.
func TestOutput(t *testing.T) {
	t.Parallel()
	for name, x := range map[string]struct {
		deviation foreign.Deviation
		args      func(setting) []string
		code      int
	}{
		"passed.txt": {foreign.None, func(x setting) []string { return x.all() }, exit.OK},
		"failed.txt": {foreign.LabelsStay, func(x setting) []string { return x.all() }, exit.Failure},
		"left.txt":   {foreign.NothingDeleted, func(x setting) []string { return x.all("--timeout", "8s") }, exit.Failure},
		"few.txt": {foreign.None, func(x setting) []string {
			return []string{x.url, "--tenant", foreign.Tenant, "--certificate-authority", x.file("ca.pem"), "--token-file", x.file("editor")}
		}, exit.OK},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSetting(t, x.deviation)
			out, errs, code := s.run(t.Context(), x.args(s)...)
			if errs != "" || code != x.code {
				t.Errorf("%d, want %d: %s", code, x.code, errs)
			}
			golden(t, name, out)
		})
	}
}

// Programs read the same as JSON and YAML.
func TestStructuredOutput(t *testing.T) {
	t.Parallel()
	x := newSetting(t, foreign.NoProperty)
	for format, read := range map[string]func([]byte, any) error{
		"json": json.Unmarshal, "yaml": func(b []byte, v any) error { return yaml.Unmarshal(b, v) },
	} {
		out, errs, code := x.run(t.Context(), x.all("-o", format)...)
		var r conformance.Report
		if err := read([]byte(out), &r); err != nil || errs != "" || code != exit.Failure {
			t.Fatalf("%v %s %d %s", err, errs, code, out)
		}
		if r.Count(conformance.Failed) != 1 || r.Count(conformance.Passed) < 40 || r.Tenant != foreign.Tenant || r.Results[0].Name != "document/complete" ||
			!strings.Contains(r.Results[0].Message, "nextStep") || r.Results[0].Shows == "" {
			t.Errorf("%+v", r)
		}
	}
}

// Bad input is one sentence, and nothing is asked.
func TestBadInput(t *testing.T) {
	t.Parallel()
	x := newSetting(t, foreign.None)
	x.write("empty", "")
	x.write("two", "a b\n")
	x.write("no-stack.yaml", "spec: {provider: a}\n")
	x.write("large", strings.Repeat("x", maxFile+1))
	tenant, token := []string{"--tenant", "acme"}, []string{"--token-file", x.file("editor")}
	with := func(parts ...[]string) []string {
		out := []string{x.url}
		for _, p := range parts {
			out = append(out, p...)
		}
		return out
	}
	for want, args := range map[string][]string{
		"api-conformance takes the URL of an API, but got 0 arguments; see: api-conformance --help": {},
		"name a tenant in which clusters can be made, with --tenant":                                with(token),
		"name a file with a token of an editor of the tenant, with --token-file":                    with(tenant),
		"--token-file: there is no file DIR/none":                                                   with(tenant, []string{"--token-file", x.file("none")}),
		"--token-file: DIR/empty is to have one token and nothing else":                             with(tenant, []string{"--token-file", x.file("empty")}),
		"--admin-token-file: DIR/two is to have one token and nothing else":                         with(tenant, token, []string{"--admin-token-file", x.file("two")}),
		"--viewer-token-file: DIR/large is larger than 1 MiB":                                       with(tenant, token, []string{"--viewer-token-file", x.file("large")}),
		"--file: DIR/empty is empty":                                                                with(tenant, token, []string{"--file", x.file("empty")}),
		"the file of the cluster has no spec.stack.name, which says what it is made of":             with(tenant, token, []string{"--file", x.file("no-stack.yaml")}),
		"--certificate-authority: DIR/editor has no certificate in PEM form":                        with(tenant, token, []string{"--certificate-authority", x.file("editor")}),
		"the URL https://x does not end with /v1, which all paths of the API begin with":            append([]string{"https://x"}, with(tenant, token)[1:]...),
		"a time to wait is less than nothing":                                                       with(tenant, token, []string{"--timeout", "-1s"}),
	} {
		if out, errs, code := x.run(t.Context(), args...); errs != want || code != exit.Usage || out != "" {
			t.Errorf("want %q, got %d %q %s", want, code, errs, out)
		}
	}
	_, errs, code := x.run(t.Context(), with(tenant, token)...)
	if code != exit.Failure || !strings.Contains(errs, "certificate") {
		t.Errorf("without its authority: %d %s", code, errs)
	}
}

// What was found before an interruption is printed.
func TestInterrupted(t *testing.T) {
	t.Parallel()
	x := newSetting(t, foreign.None)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	o := options{config: conformance.Config{URL: x.url}}
	if err := o.run(ctx, &bytes.Buffer{}); exit.Code(err) != exit.Failure {
		t.Errorf("a run without a tenant: %v", err)
	}
	cancel()
	if _, errs, code := x.run(ctx, x.all()...); code != exit.Interrupted || !strings.Contains(errs, "was interrupted") {
		t.Errorf("%d %s", code, errs)
	}
}
