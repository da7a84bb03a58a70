// Package rewrite turns the container of a static pod into a process on a computer it shares
// with other machines' processes. What kubeadm and the stack wrote stays as it is, but for what
// would collide: addresses that mean "this machine" become the machine's own, and paths are
// looked up through the pod's mounts below the machine's own root.
//
// Whoever wrote the pod is not trusted: a flag, a variable or a file that could reach more than the cluster's own
// is refused (stack/allowlist). The check reads the machine's files, so it must come right before the start.
//
// Every change is recorded, so that people can see what really runs and why.
package rewrite

import (
	"fmt"
	"net/netip"
	"path"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/polder-kaas/polder/internal/providers/local/hostapi"
	"github.com/polder-kaas/polder/stack/allowlist"
)

// Machine is where a process will run.
type Machine struct {
	Root            string       // of the machine's files
	Address         netip.Addr   // a loopback address of its own
	Cluster         netip.Prefix // the addresses of all machines of the cluster
	EmulatedVersion string       // Kubernetes minor to emulate, such as 1.35; empty: the built-in one
	AllowEverything bool         // no lists: for tests, which see what else stops a hostile pod
}

// Result is a process, and how it differs from the container.
type Result struct {
	Args     []string // whole argv
	Env      []string
	Dirs     []string // to be made before the start, on the machine: hostPath volumes of type DirectoryOrCreate
	Rewrites []hostapi.Rewrite
}

// RefusedError says which parts of a static pod may not be run here.
type RefusedError struct{ Refusals []allowlist.Refusal }

// maxRefusals is how many are told at once.
const maxRefusals = 5

// Error is one sentence for each.
func (e *RefusedError) Error() string {
	var all []string
	for _, r := range e.Refusals[:min(len(e.Refusals), maxRefusals)] {
		all = append(all, r.Error())
	}
	if more := len(e.Refusals) - maxRefusals; more > 0 {
		all = append(all, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(all, "; ")
}

// Pod rewrites the only container of pod. An error that is a RefusedError means that it is one of the control plane,
// but asks for what is not allowed.
func Pod(pod *corev1.Pod, m Machine) (Result, error) {
	program, args, err := command(pod)
	if err != nil {
		return Result{}, err
	}
	c := pod.Spec.Containers[0]
	w := &rewriter{machine: m, program: program}
	w.result.Args = []string{program}
	if err := w.readVolumes(pod, c); err != nil {
		return Result{}, err
	}
	if m.AllowEverything {
		w.rewriteUnchecked(args, c.Env)
	} else if err := w.rewriteChecked(args, c.Env); err != nil {
		return Result{}, err
	}
	w.addRequiredFlags()
	return w.result, nil
}

// command returns the program of the pod, and its arguments.
func command(pod *corev1.Pod) (program string, args []string, err error) {
	if n := len(pod.Spec.Containers); n != 1 {
		return "", nil, fmt.Errorf("static pod %s has %d containers; only one can be run here", pod.Name, n)
	}
	if len(pod.Spec.InitContainers) > 0 {
		return "", nil, fmt.Errorf("static pod %s has init containers, which cannot be run here", pod.Name)
	}
	c := pod.Spec.Containers[0]
	argv := append(append([]string{}, c.Command...), c.Args...)
	if len(argv) == 0 || !allowlist.IsComponent(path.Base(argv[0])) {
		return "", nil, fmt.Errorf(
			"static pod %s runs %q; only etcd, kube-apiserver, kube-controller-manager and kube-scheduler can be run here",
			pod.Name, strings.Join(argv, " "),
		)
	}
	return path.Base(argv[0]), argv[1:], nil
}

type rewriter struct {
	machine Machine
	mounts  []allowlist.Mount
	program string
	result  Result
}

// readVolumes finds the mounts of host paths, and the folders that are to be made.
func (w *rewriter) readVolumes(pod *corev1.Pod, c corev1.Container) error {
	refuse := func(what string, err error) error {
		return &RefusedError{[]allowlist.Refusal{{Component: w.program, Subject: what, Why: err.Error()}}}
	}
	host := map[string]string{}
	for _, v := range pod.Spec.Volumes {
		h := v.HostPath
		if h == nil {
			continue
		}
		if err := allowlist.CheckMachinePath(h.Path); err != nil && !w.machine.AllowEverything {
			return refuse("the volume "+v.Name, err)
		}
		host[v.Name] = path.Clean(h.Path)
		if h.Type != nil && *h.Type == corev1.HostPathDirectoryOrCreate && !allowlist.IsShared(host[v.Name]) {
			w.result.Dirs = append(w.result.Dirs, host[v.Name])
		}
	}
	for _, vm := range c.VolumeMounts {
		h, ok := host[vm.Name]
		if !ok {
			continue
		}
		if err := allowlist.CheckMachinePath("/" + vm.SubPath); err != nil && !w.machine.AllowEverything {
			return refuse("the mount "+vm.Name, err)
		}
		w.mounts = append(w.mounts, allowlist.Mount{
			Container: path.Clean("/" + vm.MountPath), Machine: path.Join(h, vm.SubPath),
		})
	}
	allowlist.SortMounts(w.mounts)
	return nil
}

// Reasons shown to people.
const (
	reasonAddress   = "the machine shares its network with others; this is its own address"
	reasonPath      = "the machine's files are below a directory of their own"
	reasonAdvertise = "Kubernetes refuses endpoints that are loopback addresses"
	reasonDuplicate = "both stand for the same address here"
	reasonRateLimit = "with its own limits the controller manager waits five seconds for its credentials when it starts"
	reasonEmulate   = "the built-in Kubernetes behaves as this minor version"
)

// rewriteChecked takes the flags and variables that are allowed, with their values on the machine.
func (w *rewriter) rewriteChecked(args []string, env []corev1.EnvVar) error {
	files, err := openFiles(w.machine.Root)
	if err != nil {
		return err
	}
	defer files.close()
	m := allowlist.Machine{
		Address: w.machine.Address, Cluster: w.machine.Cluster, Root: w.machine.Root, Mounts: w.mounts, Files: files,
	}
	flags, refused := m.Resolve(w.program, args)
	for _, e := range env {
		if e.ValueFrom == nil {
			refused = append(refused, allowlist.CheckVariable(w.program, e.Name, e.Value)...)
			w.result.Env = append(w.result.Env, e.Name+"="+e.Value)
		}
	}
	if len(refused) > 0 {
		return &RefusedError{refused}
	}
	for _, f := range flags {
		w.addFlag(f)
	}
	return nil
}

// addFlag adds a flag in the one form that every flag package reads alike.
func (w *rewriter) addFlag(f allowlist.Flag) {
	from, why := "--"+f.Name+"="+f.Given, reasonPath
	if len(f.Paths) == 0 {
		why = reasonAddress
	}
	switch f.Name {
	case "advertise-address":
		f.Value, why = AdvertiseAddress(w.machine.Address).String(), reasonAdvertise
	case "listen-client-urls", "listen-metrics-urls":
		if v := removeDuplicates(f.Value); v != f.Value {
			f.Value, why = v, reasonAddress+"; "+reasonDuplicate
		}
	}
	if f.Value == f.Given {
		w.result.Args = append(w.result.Args, from)
		return
	}
	w.addRewritten(from, "--"+f.Name+"="+f.Value, why)
}

func (w *rewriter) addRewritten(from, to, why string) {
	w.result.Args = append(w.result.Args, to)
	w.result.Rewrites = append(w.result.Rewrites, hostapi.Rewrite{From: from, To: to, Why: why})
}

// addRequiredFlags adds the flags the process needs because it is not alone on its computer.
func (w *rewriter) addRequiredFlags() {
	if w.program == "etcd" {
		return
	}
	if w.program == "kube-apiserver" && !w.hasFlag("--tls-cert-file") && !w.hasFlag("--cert-dir") {
		w.addRewritten("", "--cert-dir="+w.machine.Root+"/var/run/kubernetes", reasonPath)
	}
	if !w.hasFlag("--bind-address") {
		w.addRewritten("", "--bind-address="+w.machine.Address.String(), reasonAddress)
	}
	if w.program == "kube-controller-manager" && !w.hasFlag("--kube-api-qps") && !w.hasFlag("--kube-api-burst") {
		w.addRewritten("", "--kube-api-qps=200", reasonRateLimit)
		w.addRewritten("", "--kube-api-burst=400", reasonRateLimit)
	}
	if w.machine.EmulatedVersion != "" && !w.hasFlag("--emulated-version") {
		w.addRewritten("", "--emulated-version="+w.machine.EmulatedVersion, reasonEmulate)
	}
}

func (w *rewriter) hasFlag(flag string) bool {
	for _, a := range w.result.Args {
		if a == flag || strings.HasPrefix(a, flag+"=") {
			return true
		}
	}
	return false
}
