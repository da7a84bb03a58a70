// Package service tests a plane as a service for many: people who log in with an issuer of tokens.
package service

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/polder-kaas/polder/test/testenv"
)

const wait = 2 * time.Minute

// startPlane starts a plane that believes an issuer.
func startPlane(t *testing.T, i *issuer) *testenv.Plane {
	t.Helper()
	p := testenv.NewPlane(t, testenv.NewTree(t, false))
	file := filepath.Join(filepath.Dir(p.Data), "login.yaml")
	text := fmt.Sprintf("apiVersion: apiserver.config.k8s.io/v1\nkind: AuthenticationConfiguration\njwt:\n"+
		"- issuer: {url: %q, audiences: [polder], certificateAuthority: %q}\n"+
		"  claimMappings: {username: {claim: sub, prefix: 'oidc:'}, groups: {claim: groups, prefix: 'oidc:'}}\n", i.url, i.ca)
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	p.Start(t, "--authentication-config", file)
	p.AwaitReady(t)
	return p
}

// person is somebody with a home of their own on a computer that has no plane.
type person struct {
	testenv.Tree
	ca       string   // file with the plane's certificate authority
	issuerCA string   // file with the issuer's
	env      []string // beside that of all programs
}

func (p person) with(env ...string) person {
	p.env = env
	return p
}

func newPerson(t *testing.T, p *testenv.Plane, i *issuer) person {
	t.Helper()
	who := person{Tree: testenv.NewTree(t, false)}
	who.ca, who.issuerCA = filepath.Join(who.Root, "plane.crt"), filepath.Join(who.Root, "issuer.crt")
	for file, text := range map[string][]byte{who.ca: p.RESTConfig(t).CAData, who.issuerCA: []byte(i.ca)} {
		if err := os.WriteFile(file, text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return who
}

// run runs a command of the person, and returns what it said.
func (p person) run(program string, args ...string) (string, error) {
	var out bytes.Buffer
	c := p.Command(program, args...)
	c.Stdout, c.Stderr = &out, &out
	err := c.Run()
	return out.String(), err
}

// logIn runs polder login and does in a browser what it asks for: seen gets each line of it until it returns true.
func (p person) logIn(t *testing.T, seen func(line string) bool, args ...string) (string, error) {
	t.Helper()
	c := p.Command("polder", append([]string{"login"}, args...)...)
	c.Env = append(c.Env, p.env...)
	var out, said bytes.Buffer
	c.Stdout = &out
	errs, err := c.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(errs)
	for lines.Scan() {
		if seen(lines.Text()) {
			break
		}
		fmt.Fprintln(&said, lines.Text())
	}
	for lines.Scan() {
		fmt.Fprintln(&said, lines.Text())
	}
	err = c.Wait()
	return out.String() + said.String(), err
}

// identity is what polder whoami -o json says.
type identity struct {
	Plane, Username string
	Groups          []string
}

func (p person) whoAmI(t *testing.T, args ...string) (who identity, err error) {
	t.Helper()
	out, err := p.run("polder", append([]string{"whoami", "-o", "json"}, args...)...)
	if err != nil {
		return who, fmt.Errorf("%w: %s", err, out)
	}
	return who, json.Unmarshal([]byte(out), &who)
}

func exitCode(err error) int {
	var e *exec.ExitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &e):
		return e.ExitCode()
	}
	return -1
}

// sayWord fails a test if a text lacks a word.
func sayWord(t *testing.T, text string, words ...string) {
	t.Helper()
	for _, w := range words {
		if !strings.Contains(text, w) {
			t.Errorf("it does not say %q: %s", w, text)
		}
	}
}
