package acceptance

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/polder-kaas/polder/test/testenv"
)

// workspace is a directory with a configuration, and who runs it.
type workspace struct {
	dir string
	env []string
}

// newWorkspace makes a directory in which somebody can run tofu init.
func newWorkspace(t *testing.T, p *testenv.Plane, who string) *workspace {
	t.Helper()
	w := &workspace{dir: t.TempDir()}
	for _, program := range []string{"tofu", "terraform-provider-polder"} {
		if _, err := os.Stat(filepath.Join(root, "bin", program)); err != nil {
			t.Fatalf("bin/%s is not built; run: make bin/%s", program, program)
		}
	}
	const version = "0.0.1"
	mirror := filepath.Join(w.dir, "mirror")
	provider := filepath.Join(mirror, "registry.opentofu.org/polder-kaas/polder", version, runtime.GOOS+"_"+runtime.GOARCH)
	err := errors.Join(
		os.MkdirAll(provider, 0o755),
		os.Symlink(filepath.Join(root, "bin/terraform-provider-polder"), filepath.Join(provider, "terraform-provider-polder_v"+version)),
	)
	if err != nil {
		t.Fatal(err)
	}
	w.write(t, "tofu.rc", fmt.Sprintf("provider_installation {\n  filesystem_mirror {\n    path = %q\n  }\n}\n", mirror))
	w.write(t, "plane.crt", string(p.RESTConfig(t).CAData))
	w.write(t, "token", token(t, who))
	w.write(t, "provider.tf", "terraform {\n  required_providers {\n    polder = { source = \"polder-kaas/polder\" }\n  }\n}\n\nprovider \"polder\" {\n  ca_certificate = file(\"plane.crt\")\n}\n")
	w.env = []string{
		"HOME=" + w.dir, "PATH=/usr/bin:/bin", "TF_CLI_CONFIG_FILE=" + filepath.Join(w.dir, "tofu.rc"), "TF_IN_AUTOMATION=1", "TF_CLI_ARGS=-no-color", "CHECKPOINT_DISABLE=1",
		"POLDER_ENDPOINT=" + p.Status(t).REST, "POLDER_TOKEN_FILE=" + filepath.Join(w.dir, "token"),
	}
	w.run(t, 0, "", "init")
	return w
}

func token(t *testing.T, who string) string {
	t.Helper()
	return issuer.Token(t, "polder", map[string]any{"sub": who, "groups": []string{}})
}

func (w *workspace) write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(w.dir, name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func (w *workspace) read(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(w.dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// command is tofu with arguments, which dies with the test, and in a group of its own with the providers that it starts.
func (w *workspace) command(args ...string) *exec.Cmd {
	c := exec.Command(filepath.Join(root, "bin/tofu"), args...)
	c.Dir, c.Env = w.dir, w.env
	c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	return c
}

// run runs tofu, which must end with a code and say some words.
func (w *workspace) run(t *testing.T, code int, words string, args ...string) string {
	t.Helper()
	if args[0] == "apply" || args[0] == "destroy" {
		args = append([]string{args[0], "-auto-approve"}, args[1:]...)
	}
	out, err := w.command(args...).CombinedOutput()
	got := 0
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		got = exit.ExitCode()
	case err != nil:
		t.Fatal(err)
	}
	if got != code || !strings.Contains(unwrap(string(out)), words) {
		t.Fatalf("tofu %s ended with %d, want %d and %q:\n%s", strings.Join(args, " "), got, code, words, out)
	}
	return string(out)
}

// unwrap makes one line of what tofu has broken into several.
func unwrap(s string) string {
	return strings.Join(strings.Fields(strings.ReplaceAll(s, "│", "")), " ")
}

// unchanged fails unless a plan says that there is nothing to do.
func (w *workspace) unchanged(t *testing.T) {
	t.Helper()
	w.run(t, 0, "No changes", "plan", "-detailed-exitcode")
}

// plan is what tofu is going to do.
type plan struct {
	Changes []struct {
		Address string `json:"address"`
		Change  struct {
			Actions []string `json:"actions"`
		} `json:"change"`
	} `json:"resource_changes"`
}

// actions are what a plan does to the one cluster.
func (w *workspace) actions(t *testing.T) string {
	t.Helper()
	w.run(t, 0, "", "plan", "-out=plan")
	var p plan
	if err := json.Unmarshal([]byte(w.show(t, "plan")), &p); err != nil {
		t.Fatal(err)
	}
	for _, c := range p.Changes {
		if c.Address == "polder_cluster.demo" {
			return strings.Join(c.Change.Actions, ",")
		}
	}
	return ""
}

// show is a plan, or the state, as JSON.
func (w *workspace) show(t *testing.T, args ...string) string {
	t.Helper()
	out, err := w.command(append([]string{"show", "-json"}, args...)...).Output()
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// uid is that of the cluster in the state; empty if there is none. One that is tainted would be made anew.
func (w *workspace) uid(t *testing.T) string {
	t.Helper()
	var s struct {
		Values struct {
			Module struct {
				Resources []struct {
					Address string         `json:"address"`
					Tainted bool           `json:"tainted"`
					Values  map[string]any `json:"values"`
				} `json:"resources"`
			} `json:"root_module"`
		} `json:"values"`
	}
	if err := json.Unmarshal([]byte(w.show(t)), &s); err != nil {
		t.Fatal(err)
	}
	for _, r := range s.Values.Module.Resources {
		if r.Address != "polder_cluster.demo" {
			continue
		}
		if r.Tainted {
			t.Error("the cluster is tainted")
		}
		uid, _ := r.Values["uid"].(string)
		return uid
	}
	return ""
}

// search fails for every file that tofu has written and that has one of some words in it, plans unpacked.
func (w *workspace) search(t *testing.T, words map[string]string, written ...string) {
	t.Helper()
	look := func(name string, b []byte) {
		for what, word := range words {
			if len(word) < 16 {
				t.Fatalf("%s, %q, could be found anywhere", what, word)
			}
			if bytes.Contains(b, []byte(word)) {
				t.Errorf("%s has %s", name, what)
			}
		}
	}
	files := 0
	err := filepath.WalkDir(w.dir, func(file string, d fs.DirEntry, err error) error {
		name, _ := filepath.Rel(w.dir, file)
		if name == ".terraform/providers" {
			return fs.SkipDir // programs, which know words such as PRIVATE KEY
		}
		if err != nil || !d.Type().IsRegular() || name == "token" || strings.HasPrefix(name, "kubeconfig") {
			return err
		}
		files++
		b, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		look(name, b)
		z, err := zip.NewReader(bytes.NewReader(b), int64(len(b)))
		if err != nil {
			return nil // no plan
		}
		for _, f := range z.File {
			r, err := f.Open()
			if err != nil {
				return err
			}
			b, err := io.ReadAll(r)
			if err != nil {
				return err
			}
			look(name+"/"+f.Name, b)
		}
		return nil
	})
	if err != nil || files < 4 {
		t.Errorf("%d files: %v", files, err)
	}
	for i, text := range written {
		look(fmt.Sprint("output ", i), []byte(text))
	}
}
