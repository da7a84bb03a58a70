// Package rewrite turns the container of a static pod into a process on a computer it shares
// with other machines' processes. What kubeadm and the stack wrote stays as it is, but for what
// would collide: addresses that mean "this machine" become the machine's own, and paths are
// looked up through the pod's mounts below the machine's own root.
//
// Every change is recorded, so that people can see what really runs and why.
package rewrite

import (
	"fmt"
	"net/netip"
	"path"
	"sort"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/polder-kaas/polder/internal/providers/local/hostapi"
)

// Machine is where a process will run.
type Machine struct {
	Root            string     // of the machine's files
	Address         netip.Addr // a loopback address of its own
	EmulatedVersion string     // Kubernetes minor to emulate, such as 1.35; empty: the built-in one
}

// Result is a process, and how it differs from the container.
type Result struct {
	Args     []string // whole argv
	Env      []string
	Dirs     []string // to be made before the start: hostPath volumes of type DirectoryOrCreate
	Rewrites []hostapi.Rewrite
}

// sharedDirs hold nothing of a machine's own; processes use those of the computer.
var sharedDirs = map[string]bool{
	"/etc/ssl/certs": true, "/etc/ca-certificates": true, "/usr/share/ca-certificates": true,
	"/usr/local/share/ca-certificates": true, "/etc/pki": true, "/etc/pki/ca-trust": true, "/etc/pki/tls/certs": true,
}

// addressFlags name addresses of the machine itself. In other flags, an issuer of tokens for
// example, 127.0.0.1 means what it says.
var addressFlags = map[string]bool{
	"--bind-address": true, "--etcd-servers": true, "--etcd-servers-overrides": true, "--master": true,
	"--listen-client-urls": true, "--listen-client-http-urls": true, "--listen-peer-urls": true,
	"--listen-metrics-urls":   true,
	"--advertise-client-urls": true, "--initial-advertise-peer-urls": true, "--initial-cluster": true,
}

// supportedPrograms are those that polderd can be.
var supportedPrograms = map[string]bool{
	"etcd": true, "kube-apiserver": true, "kube-controller-manager": true, "kube-scheduler": true,
}

// Pod rewrites the only container of pod.
func Pod(pod *corev1.Pod, m Machine) (Result, error) {
	if n := len(pod.Spec.Containers); n != 1 {
		return Result{}, fmt.Errorf("static pod %s has %d containers; only one can be run here", pod.Name, n)
	}
	if len(pod.Spec.InitContainers) > 0 {
		return Result{}, fmt.Errorf("static pod %s has init containers, which cannot be run here", pod.Name)
	}
	c := pod.Spec.Containers[0]
	argv := append(append([]string{}, c.Command...), c.Args...)
	if len(argv) == 0 || !supportedPrograms[path.Base(argv[0])] {
		return Result{}, fmt.Errorf(
			"static pod %s runs %q; only etcd, kube-apiserver, kube-controller-manager and kube-scheduler can be run here",
			pod.Name, strings.Join(argv, " "),
		)
	}
	w := &rewriter{machine: m, mounts: hostPathMounts(pod, c), program: path.Base(argv[0])}
	w.result.Args = []string{w.program}
	for _, a := range argv[1:] {
		w.rewriteArgument(a)
	}
	w.addRequiredFlags()
	w.rewriteEnvironment(c.Env)
	for _, v := range pod.Spec.Volumes {
		if h := v.HostPath; h != nil && h.Type != nil && *h.Type == corev1.HostPathDirectoryOrCreate && !sharedDirs[h.Path] {
			w.result.Dirs = append(w.result.Dirs, m.Root+path.Clean(h.Path))
		}
	}
	return w.result, nil
}

// mount is a folder of the container and where it is on the machine.
type mount struct{ containerPath, hostPath string }

// hostPathMounts returns the mounts of host paths, ordered so that the longest path, which hides the others, comes
// first.
func hostPathMounts(pod *corev1.Pod, c corev1.Container) []mount {
	host := map[string]string{}
	for _, v := range pod.Spec.Volumes {
		if v.HostPath != nil {
			host[v.Name] = path.Clean(v.HostPath.Path)
		}
	}
	var out []mount
	for _, vm := range c.VolumeMounts {
		if h, ok := host[vm.Name]; ok {
			out = append(out, mount{containerPath: path.Clean(vm.MountPath), hostPath: path.Join(h, vm.SubPath)})
		}
	}
	sort.SliceStable(out, func(i, j int) bool { return len(out[i].containerPath) > len(out[j].containerPath) })
	return out
}

type rewriter struct {
	machine Machine
	mounts  []mount
	program string
	result  Result
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

func (w *rewriter) rewriteArgument(a string) {
	name, value, found := strings.Cut(a, "=")
	if !found {
		w.result.Args = append(w.result.Args, a)
		return
	}
	if name == "--advertise-address" {
		w.addRewritten(a, name+"="+AdvertiseAddress(w.machine.Address).String(), reasonAdvertise)
		return
	}
	why := ""
	if v := w.rewritePaths(value); v != value {
		value, why = v, reasonPath
	}
	if v := w.rewriteAddresses(value); addressFlags[name] && v != value {
		value, why = v, reasonAddress
	}
	if name == "--listen-client-urls" || name == "--listen-metrics-urls" {
		if v := removeDuplicates(value); v != value {
			value, why = v, reasonAddress+"; "+reasonDuplicate
		}
	}
	if why == "" {
		w.result.Args = append(w.result.Args, a)
		return
	}
	w.addRewritten(a, name+"="+value, why)
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

func (w *rewriter) rewriteEnvironment(env []corev1.EnvVar) {
	for _, e := range env {
		if e.ValueFrom == nil {
			w.result.Env = append(w.result.Env, e.Name+"="+w.rewritePaths(e.Value))
		}
	}
}
