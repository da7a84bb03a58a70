// Package allowlist says what the control plane of a local machine may be told: which flags of etcd, kube-apiserver,
// kube-controller-manager and kube-scheduler, with which values, and what the files they name may hold.
//
// Such a machine is processes of the user who runs the plane, so a flag that opens a socket, runs a program or reads
// a file elsewhere would reach what is not the cluster's own. Nothing is allowed but what is listed, each flag with a
// type of value: a path is one below the machine's root, a URL of a store is one of the cluster's own members, and a
// file that can name further files or servers is read and checked.
//
// A local machine checks with it before it starts a process, and lint checks the templates of a stack with it, so what
// lint accepts is what machines take. The package knows no flags but those of the versions of Kubernetes that local
// machines run.
package allowlist

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"

	"github.com/polder-kaas/polder/stack/text"
)

// Names of the components.
const (
	Etcd              = "etcd"
	APIServer         = "kube-apiserver"
	ControllerManager = "kube-controller-manager"
	Scheduler         = "kube-scheduler"
)

// Machine is where a component would run.
type Machine struct {
	Address netip.Addr   // its own
	Cluster netip.Prefix // the addresses of all machines of its cluster
	Root    string       // of its files on the computer; it comes before every path that is resolved
	Mounts  []Mount      // of the component's container; the one that hides others comes first
	Files   Files
}

// Files are those of a machine. Paths are absolute and clean, and relative to the machine's root. What leads out of
// the root through a link is an error.
type Files interface {
	// Stat returns an error that is fs.ErrNotExist if there is no such file.
	Stat(path string) error
	ReadFile(path string) ([]byte, error)
}

// ErrUnknownContent is what Files return for a file that will be there, but of whose content nothing is known yet. A
// machine knows all of its files; lint does not.
var ErrUnknownContent = errors.New("the content of the file is not known")

// Flag is one flag of a component.
type Flag struct {
	Name  string   // without dashes
	Given string   // the value as it was written
	Value string   // what the process on the machine must be given for it
	Paths []string // files of the machine that the value names, without the machine's root
}

// Refusal says why a flag, a variable or a file is not taken.
type Refusal struct {
	Component string
	Subject   string // what is refused, such as --kubeconfig
	Why       string
}

// Error is one sentence.
func (r Refusal) Error() string {
	return fmt.Sprintf("%s of %s is refused: %s", r.Subject, r.Component, r.Why)
}

// IsComponent says whether there is a list for the component.
func IsComponent(name string) bool { return components[name] != nil }

// HasFlag says whether a flag is on the list of a component, with whatever values.
func HasFlag(component, name string) bool {
	_, ok := components[component][normalizeName(component, name)]
	return ok
}

// Resolve reads arguments as the component would, and returns each flag with the value that it has on the machine.
// There may be refusals; then the component must not be started.
func (m Machine) Resolve(component string, args []string) ([]Flag, []Refusal) {
	rules := components[component]
	if rules == nil {
		return nil, []Refusal{{component, "the program", "it is not one of a control plane"}}
	}
	flags, refused := parse(component, rules, args)
	var out []Flag
	for _, f := range flags {
		c := &checker{machine: m}
		value, err := rules[f.Name].check(c, f.Given)
		if err != nil {
			refused = append(refused, Refusal{component, "--" + f.Name, err.Error()})
			continue
		}
		f.Value, f.Paths = value, c.paths
		out = append(out, f)
	}
	return out, refused
}

// ResolveFlag checks one flag by its name and value, as kubeadm's configuration has them.
func (m Machine) ResolveFlag(component, name, value string) (Flag, []Refusal) {
	flags, refused := m.Resolve(component, []string{"--" + name + "=" + value})
	if len(flags) == 0 {
		return Flag{Name: name, Given: value}, refused
	}
	return flags[0], refused
}

// quoteShort returns s as it can stand in a message.
func quoteShort(s string) string { return fmt.Sprintf("%q", text.Truncate(s, 120)) }

// normalizeName returns the name of a flag as Kubernetes' programs know it: they take an underscore for a dash.
func normalizeName(component, name string) string {
	if component == Etcd {
		return name
	}
	return strings.ReplaceAll(name, "_", "-")
}
