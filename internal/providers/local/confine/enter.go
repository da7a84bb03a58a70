package confine

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/polder-kaas/polder/internal/providers/local/cgroup"
	"github.com/polder-kaas/polder/internal/providers/local/hostapi"
)

// Program is what a process of a local cluster is; each is confined in its own way.
type Program int

// The programs.
const (
	Host      Program = iota // keeps a cluster, starts the others
	Boot                     // prepares a machine
	Component                // a static pod
)

// namespacesVariable is set by who starts a host in namespaces of its own.
const namespacesVariable = "POLDER_NAMESPACES"

// PrepareHost makes the command that starts the host in dir one that starts it confined, as far as the kernel can.
// release is to be called when the host was started.
func PrepareHost(c *exec.Cmd, dir hostapi.Dir, offered hostapi.Confinement) (release func(), err error) {
	c.Env = append(c.Env, Environment()...)
	if isOff() || !offered.Namespaces {
		return func() {}, nil
	}
	endpoint, err := openEndpoint(dir)
	if err != nil {
		return nil, err
	}
	c.ExtraFiles = []*os.File{endpoint} // becomes endpointDescriptor
	c.Env = append(c.Env, namespacesVariable+"=1")
	setNamespaces(c.SysProcAttr)
	return func() { _ = endpoint.Close() }, nil // the host has its own
}

// inNamespaces says that this process was started in namespaces of its own.
func inNamespaces() bool { return os.Getenv(namespacesVariable) != "" } //nolint:forbidigo // so it is handed over

// Enter confines this process, for good. dir holds all that is the program's own: the cluster's directory for a host,
// the machine's for its boot, the root of the machine's files for a component. It returns what holds from then on.
//
// A host replaces itself by itself in the midst of it: Landlock gives each thread a domain of its own, and a thread may
// not signal what another one has started. After the replacement there is one domain.
func Enter(p Program, dir string) (hostapi.Confinement, error) {
	if isOff() {
		return hostapi.Confinement{Missing: "it is switched off"}, nil
	}
	c := hostapi.Confinement{Landlock: landlockVersion(), Seccomp: true, Namespaces: p == Host && inNamespaces(),
		Cgroup: p == Host && cgroup.IsBounded()}
	if p == Host && os.Getenv(replacedVariable) != "" { //nolint:forbidigo // so it is handed over
		return c, filterCalls(roleHost)
	}
	if err := enter(p, dir, c.Namespaces); err != nil {
		return hostapi.Confinement{}, fmt.Errorf("confining this process: %w", err)
	}
	return c, nil
}

// replacedVariable is set by a host for the process that takes its place.
const replacedVariable = "POLDER_REPLACED"

func enter(p Program, dir string, namespaces bool) error {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	if namespaces {
		if err := enterNamespaces(dir); err != nil {
			return err
		}
	}
	if err := setLimits(namespaces); err != nil {
		return err
	}
	if p == Host {
		if err := restrictFiles(dir, append([]string{procDir}, readable...), selfProgram, true); err != nil {
			return err
		}
		return unix.Exec(selfProgram, os.Args, append(os.Environ(), replacedVariable+"=1"))
	}
	if err := restrictFiles(dir, append([]string{procDir + "/self"}, readable...), "", false); err != nil {
		return err
	}
	return filterCalls(roleComponent)
}

// selfProgram is the program of this process, also if its file was replaced since.
const selfProgram = procDir + "/self/exe"

// ProbeProgram is polderd's name when it tries what the kernel offers.
const ProbeProgram = "polder-confine-probe"

// Probe confines this process as a host is confined, with an empty directory of its own, checks that it is, and prints
// the measures.
func Probe(dir string) error {
	m, err := Enter(Host, dir)
	if err != nil {
		return err
	}
	if _, err := os.ReadDir("/"); m.Landlock > 0 && err == nil {
		return errors.New("files can be read that should not be")
	}
	return json.NewEncoder(os.Stdout).Encode(m)
}
