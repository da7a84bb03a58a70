package service

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/polder-kaas/polder/internal/program/exit"
	"github.com/polder-kaas/polder/test/testenv"
)

// tokenLife is shorter than what polder wants a token to have left, so that every command renews it.
const tokenLife = 30 * time.Second

// A person logs in with a real issuer, in the browser and with a code, works with polder and kubectl, and logs out.
func TestLogin(t *testing.T) {
	i := startIssuer(t, tokenLife, people{"alice": {"groups": []string{"acme"}}, "bob": {}})
	p := startPlane(t, i)
	server := p.Status(t).Address
	flags := func(who person) []string {
		return []string{server, "--issuer", i.url, "--client-id", "polder", "--scope", "groups", "--issuer-ca", who.issuerCA, "--ca", who.ca, "--name", "plane"}
	}
	alice := newPerson(t, p, i)
	inBrowser := func(name string) func(string) bool {
		return func(line string) bool {
			address, ok := strings.CutPrefix(line, "Log in at ")
			if ok {
				if page := i.logIn(t, address, name, nil); !strings.Contains(page, "You can close this page") {
					t.Errorf("the browser shows: %s", page)
				}
			}
			return ok
		}
	}

	t.Run("in the browser", func(t *testing.T) {
		out, err := alice.logIn(t, inBrowser("alice"), append(flags(alice), "--no-browser")...)
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		sayWord(t, out, "Logged in to "+server+" as oidc:alice. Context plane in "+alice.Home+"/.kube/config is the current one.")
		who, err := alice.whoAmI(t)
		if err != nil || who.Username != "oidc:alice" || who.Plane != server || !slices.Contains(who.Groups, "oidc:acme") {
			t.Errorf("%+v, %v", who, err)
		}
		out, err = alice.run("polder", "kubectl", "auth", "whoami", "--kubeconfig", filepath.Join(alice.Home, ".kube", "config"))
		if err != nil || !strings.Contains(out, "oidc:alice") {
			t.Errorf("kubectl: %v: %s", err, out)
		}
		out, err = alice.run("polder", "get")
		if exitCode(err) == 0 || !strings.Contains(out, "oidc:alice") { // she has no rights yet
			t.Errorf("polder get: %v: %s", err, out)
		}
	})

	t.Run("nobody else reads it", func(t *testing.T) {
		dir := filepath.Join(alice.Home, ".config", "polder", "login")
		for path, want := range map[string]os.FileMode{dir: 0o700, filepath.Join(dir, "plane.json"): 0o600, filepath.Join(alice.Home, ".kube", "config"): 0o600} {
			if info, err := os.Stat(path); err != nil || info.Mode().Perm() != want {
				t.Errorf("%s: %v, %v", path, info, err)
			}
		}
		b, err := os.ReadFile(filepath.Join(alice.Home, ".kube", "config"))
		if err != nil || strings.Contains(string(b), "eyJ") {
			t.Errorf("there is a token in the kubeconfig, or none can be read: %v", err)
		}
	})

	t.Run("no other server gets the token", func(t *testing.T) {
		b, err := os.ReadFile(filepath.Join(alice.Home, ".kube", "config"))
		if err != nil {
			t.Fatal(err)
		}
		changed := filepath.Join(alice.Root, "changed")
		if err := os.WriteFile(changed, []byte(strings.ReplaceAll(string(b), server, i.url)), 0o644); err != nil {
			t.Fatal(err)
		}
		out, err := alice.run("polder", "whoami", "--kubeconfig", changed)
		if exitCode(err) != exit.Failure || !strings.Contains(out, "this login is to "+server+"; its token is not sent to another server") {
			t.Errorf("%v: %s", err, out)
		}
		out, err = alice.run("polder", "login", "https://other.example.org", "--name", "plane", "--issuer", i.url, "--client-id", "polder")
		if exitCode(err) != exit.Usage || !strings.Contains(out, "login plane is to another plane, "+server) {
			t.Errorf("%v: %s", err, out)
		}
	})

	// Each renewal ends the refresh token before; an issuer that sees one twice ends the login.
	t.Run("many commands at once renew it once each", func(t *testing.T) {
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				if who, err := alice.whoAmI(t); err != nil || who.Username != "oidc:alice" {
					t.Errorf("%+v, %v", who, err)
				}
			})
		}
		wg.Wait()
	})

	t.Run("with a code, on another device", func(t *testing.T) {
		bob := newPerson(t, p, i)
		out, err := bob.logIn(t, func(line string) bool {
			text, ok := strings.CutPrefix(line, "Open ")
			address, code, _ := strings.Cut(text, " on any device, and type this code there: ")
			if ok {
				if page := i.logIn(t, address, "bob", map[string]string{"user_code": code}); !strings.Contains(page, "Your sign-in was successful") {
					t.Errorf("the browser shows: %s", page)
				}
			}
			return ok
		}, append(flags(bob), "--device")...)
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		if who, err := bob.whoAmI(t); err != nil || who.Username != "oidc:bob" {
			t.Errorf("%+v, %v", who, err)
		}
		if who, err := alice.whoAmI(t); err != nil || who.Username != "oidc:alice" {
			t.Errorf("the other person is %+v, %v", who, err)
		}
	})

	t.Run("again, without saying how", func(t *testing.T) {
		other := filepath.Join(alice.Home, "other")
		out, err := alice.logIn(t, inBrowser("alice"), server, "--name", "plane", "--no-browser", "--ca", alice.ca, "--kubeconfig", other)
		if err != nil || !strings.Contains(out, "as oidc:alice. Context plane in "+other+" is the current one.") {
			t.Errorf("into another kubeconfig: %v: %s", err, out)
		}
		admin := filepath.Join(alice.Home, "admin.kubeconfig") // what polder up tells people to name
		out, err = alice.with("KUBECONFIG="+admin).logIn(t, inBrowser("alice"), server, "--name", "plane", "--no-browser", "--ca", alice.ca)
		config := filepath.Join(alice.Home, ".kube", "config")
		if err != nil || !strings.Contains(out, "Context plane is in "+config+"; use it with --kubeconfig "+config+" --context plane.") {
			t.Errorf("with a kubeconfig that polderd writes: %v: %s", err, out)
		}
		out, err = alice.logIn(t, inBrowser("alice"), server, "--name", "plane", "--no-browser")
		if err != nil || !strings.Contains(out, "as oidc:alice") {
			t.Errorf("%v: %s", err, out)
		}
	})

	t.Run("out", func(t *testing.T) {
		file := filepath.Join(alice.Home, ".config", "polder", "login", "plane.json")
		copied, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		out, err := alice.run("polder", "logout")
		if err != nil || out != "Logged out of plane.\n" {
			t.Errorf("%v: %s", err, out)
		}
		if _, err := os.Stat(file); !os.IsNotExist(err) {
			t.Errorf("the token is still there: %v", err)
		}
		out, err = alice.run("polder", "whoami")
		if exitCode(err) != exit.Failure {
			t.Errorf("%v: %s", err, out)
		}
		// Somebody has a copy.
		if err := os.WriteFile(file, copied, 0o600); err != nil {
			t.Fatal(err)
		}
		testenv.Chown(t, file)
		out, err = alice.run("polder", "credential", "plane")
		if exitCode(err) != exit.Failure || !strings.Contains(out, "your login to "+server+" has ended; log in again with: polder login "+server+" --name plane") {
			t.Errorf("with a copy of what was given back: %v: %s", err, out)
		}
	})
}

// What can go wrong with a login is one sentence, and nothing is written.
func TestLoginRefusals(t *testing.T) {
	i := startIssuer(t, tokenLife, people{"alice": {}})
	p := startPlane(t, i)
	server := p.Status(t).Address
	alice := newPerson(t, p, i)
	known := []string{server, "--issuer-ca", alice.issuerCA}
	for name, c := range map[string]struct {
		args []string
		code int
		want string
	}{
		"no URL":                    {[]string{"plane"}, exit.Usage, `"plane" is no URL of a plane; examples are https://plane.example.org:7443 and`},
		"plain HTTP":                {[]string{"http://127.0.0.1:1"}, exit.Usage, "is no URL of a plane"},
		"no issuer":                 {[]string{server}, exit.Usage, "you have not logged in to " + server + " yet: name who vouches for you with --issuer and --client-id"},
		"no client":                 {[]string{server, "--issuer", i.url}, exit.Usage, "--client-id"},
		"an issuer nobody vouches":  {[]string{server, "--issuer", i.url, "--client-id", "polder"}, exit.Failure, "certificate"},
		"an issuer that is away":    {[]string{server, "--issuer", "https://127.0.0.1:1", "--client-id", "polder"}, exit.Failure, "connection refused"},
		"a path of the issuer":      {append(known, "--issuer", i.url+"/", "--client-id", "polder"), exit.Usage, "is the configuration of issuer"},
		"a client nobody knows":     {append(known, "--issuer", i.url, "--client-id", "other", "--device"), exit.Failure, "refuses: invalid_client"},
		"a name that is no file's":  {[]string{server, "--issuer", i.url, "--client-id", "polder", "--name", "../x"}, exit.Usage, "cannot be the name of a login"},
		"a file that is not there":  {[]string{server, "--issuer", i.url, "--client-id", "polder", "--issuer-ca", "/nothing"}, exit.Usage, "--issuer-ca: open /nothing"},
		"a file with another thing": {[]string{server, "--issuer", i.url, "--client-id", "polder", "--issuer-ca", "/etc/passwd"}, exit.Usage, "--issuer-ca holds no certificate"},
	} {
		t.Run(name, func(t *testing.T) {
			out, err := alice.run("polder", append([]string{"login", "--no-browser"}, c.args...)...)
			if exitCode(err) != c.code || !strings.Contains(out, c.want) || strings.Count(out, "\n") != 1 {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
	out, err := alice.logIn(t, func(line string) bool {
		address, ok := strings.CutPrefix(line, "Log in at ")
		if ok {
			i.logIn(t, address, "alice", nil)
		}
		return ok
	}, server, "--issuer", i.url, "--client-id", "polder", "--issuer-ca", alice.issuerCA, "--no-browser")
	if exitCode(err) != exit.Failure || !strings.Contains(out, "nobody whom this computer trusts vouches for "+server+"; name who does with --ca") {
		t.Errorf("a plane nobody vouches for: %v: %s", err, out)
	}
	for _, path := range []string{".kube", ".config"} {
		if _, err := os.Stat(filepath.Join(alice.Home, path)); !os.IsNotExist(err) {
			t.Errorf("%s was written: %v", path, err)
		}
	}
	for _, c := range []struct {
		args []string
		want string
	}{{[]string{"logout"}, "you are not logged in anywhere"}, {[]string{"credential", "x"}, "you have logged out of x"}} {
		if out, err := alice.run("polder", c.args...); err == nil || !strings.Contains(out, c.want) {
			t.Errorf("%v: %v: %s", c.args, err, out)
		}
	}
}
