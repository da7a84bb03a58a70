package lint

import (
	"fmt"
	"maps"
	"net/netip"
	"path"
	"slices"
	"strings"

	"github.com/polder-kaas/polder/stack/allowlist"
	"github.com/polder-kaas/polder/stack/class"
	"github.com/polder-kaas/polder/stack/render"
)

// machineFlagRule is the name of the rule.
const machineFlagRule = "local-machine-flag"

// lintAddress stands for the address of a machine, which a stack cannot know.
var lintAddress = netip.MustParseAddr("127.0.0.2")

// sections are the parts of ClusterConfiguration that configure a component.
var sections = map[string]string{
	"apiServer": allowlist.APIServer, "controllerManager": allowlist.ControllerManager, "scheduler": allowlist.Scheduler,
}

// kubeadmOwnFiles are kubeconfigs that kubeadm makes.
var kubeadmOwnFiles = []string{
	"/etc/kubernetes/admin.conf", "/etc/kubernetes/super-admin.conf", "/etc/kubernetes/kubelet.conf",
	"/etc/kubernetes/controller-manager.conf", "/etc/kubernetes/scheduler.conf", "/etc/kubernetes/bootstrap-kubelet.conf",
}

// checkMachineFlags finds what a machine of the local provider would refuse to run.
func (l *classLinter) checkMachineFlags() {
	if l.source.Provider != "local" {
		return
	}
	for _, o := range l.class.Objects {
		if spec := kubeadmSpec(o); spec != nil {
			m := &machineLinter{classLinter: l, object: o, files: l.machineFiles(o, spec)}
			m.checkSpec(spec)
			m.checkPatches()
		}
	}
}

// kubeadmSpec returns the KubeadmConfigSpec of a template, or nil if it has none.
func kubeadmSpec(o render.Object) map[string]any {
	spec := nested(o.Value, "spec", "template", "spec")
	switch o.Kind() {
	case "KubeadmControlPlaneTemplate":
		return nested(spec, "kubeadmConfigSpec")
	case "KubeadmConfigTemplate":
		return spec
	}
	return nil
}

func nested(v map[string]any, fields ...string) map[string]any {
	for _, f := range fields {
		v, _ = v[f].(map[string]any)
	}
	return v
}

// machineLinter checks one template of machines.
type machineLinter struct {
	*classLinter
	object render.Object
	files  machineFiles
}

func (l *machineLinter) refuse(word, what string) {
	l.addErrorAt(l.locate(word), machineFlagRule, what, "see What a local machine takes in the documentation of stacks")
}

func (l *machineLinter) refuseAll(word string, refused []allowlist.Refusal) {
	for _, r := range refused {
		l.refuse(word, r.Error())
	}
}

// checkPath checks a field that is a path of the machine.
func (l *machineLinter) checkPath(field string, value any) {
	p, ok := value.(string)
	if !ok || p == "" {
		return
	}
	if err := allowlist.CheckMachinePath(p); err != nil {
		l.refuse(lastPart(field), fmt.Sprintf("%s is refused: %s", field, err))
	}
}

func lastPart(field string) string { return field[strings.LastIndexByte(field, '.')+1:] }

func (l *machineLinter) checkSpec(spec map[string]any) {
	c := nested(spec, "clusterConfiguration")
	for _, name := range slices.Sorted(maps.Keys(sections)) {
		l.checkSection(sections[name], nested(c, name))
	}
	local := nested(c, "etcd", "local")
	l.checkSection(allowlist.Etcd, local)
	l.checkPath("etcd.local.dataDir", local["dataDir"])
	l.checkPath("certificatesDir", c["certificatesDir"])
	if len(nested(c, "etcd", "external")) > 0 {
		l.refuse("external", "etcd.external is refused: a local cluster has its own etcd")
	}
	if at, _ := c["controlPlaneEndpoint"].(string); at != "" {
		l.refuse("controlPlaneEndpoint", "controlPlaneEndpoint is refused: the endpoint of a local cluster is chosen for it")
	}
	for _, name := range []string{"initConfiguration", "joinConfiguration"} {
		l.checkPath(name+".patches.directory", nested(spec, name, "patches")["directory"])
	}
	join := nested(spec, "joinConfiguration")
	l.checkPath("joinConfiguration.caCertPath", join["caCertPath"])
	if len(nested(join, "discovery")) > 0 {
		l.refuse("discovery", "joinConfiguration.discovery is refused: a local machine finds its cluster by Cluster API's own")
	}
	for _, p := range slices.Sorted(maps.Keys(l.files.content)) {
		l.checkFile(p)
	}
}

// checkFile checks where a file is and, if it is a static pod, what it runs.
func (l *machineLinter) checkFile(p string) {
	if slices.Contains(kubeadmOwnFiles, path.Clean(p)) {
		l.refuse(p, fmt.Sprintf("the file %s is refused: kubeadm makes it itself", p))
	}
	if path.Dir(path.Clean(p)) == "/etc/kubernetes/manifests" && l.files.content[p] != nil {
		l.checkStaticPod(p, l.files.content[p])
	}
}

// checkSection checks what configures one component.
func (l *machineLinter) checkSection(component string, section map[string]any) {
	m := l.machine()
	volumes, _ := section["extraVolumes"].([]any)
	for _, v := range volumes {
		v, _ := v.(map[string]any)
		host, _ := v["hostPath"].(string)
		inside, _ := v["mountPath"].(string)
		l.checkPath("extraVolumes.hostPath", host)
		m.Mounts = append(m.Mounts, allowlist.Mount{Container: path.Clean("/" + inside), Machine: path.Clean("/" + host)})
	}
	allowlist.SortMounts(m.Mounts)
	for _, a := range arguments(section["extraArgs"]) {
		_, refused := m.ResolveFlag(component, a.name, a.value)
		l.refuseAll(a.name, refused)
	}
	for _, e := range arguments(section["extraEnvs"]) {
		l.refuseAll(e.name, allowlist.CheckVariable(component, e.name, e.value))
	}
}

// machine is one as far as a stack can know it.
func (l *machineLinter) machine() allowlist.Machine {
	return allowlist.Machine{Address: lintAddress, Cluster: netip.PrefixFrom(lintAddress, 32), Files: l.files}
}

// argument is a name with its value.
type argument struct{ name, value string }

// arguments reads both forms that versions of Cluster API's types have: a list of names and values, and a map.
func arguments(v any) (out []argument) {
	switch v := v.(type) {
	case []any:
		for _, item := range v {
			m, _ := item.(map[string]any)
			name, _ := m["name"].(string)
			out = append(out, argument{name, textOf(m["value"])})
		}
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			out = append(out, argument{name, textOf(v[name])})
		}
	}
	return out
}

func textOf(v any) string {
	if v == nil {
		return ""
	}
	return fmt.Sprint(v)
}

// checkPatches checks flags and volumes that patches add. What a template makes of a customer's variable is not known,
// so of those only the names are judged.
func (l *machineLinter) checkPatches() {
	for _, p := range l.class.Patches {
		for _, d := range p.Definitions {
			if d.Selector.Kind != l.object.Kind() {
				continue
			}
			for _, j := range d.JSONPatches {
				l.checkMachinePatch(p, j)
			}
		}
	}
}

func (l *machineLinter) checkMachinePatch(p class.Patch, j class.JSONPatch) {
	component := patchedComponent(j.Path)
	value, literal := l.patchValue(j)
	if component == "" || value == nil {
		return
	}
	if m, ok := value.(map[string]any); ok && m["name"] != nil {
		value = []any{m} // one that is added to the list
	}
	for _, a := range arguments(value) {
		_, refused := l.machine().ResolveFlag(component, a.name, a.value)
		if !literal && allowlist.HasFlag(component, a.name) {
			continue
		}
		for _, r := range refused {
			l.addErrorAt(l.locateAfter(l.locatePatch(p.Name), j.Path), machineFlagRule,
				fmt.Sprintf("patch %q: %s", p.Name, r.Error()), "see What a local machine takes in the documentation of stacks")
		}
	}
}

// patchedComponent returns the component whose arguments a path of a patch is about.
func patchedComponent(p string) string {
	for name, component := range sections {
		if strings.Contains(p, "/clusterConfiguration/"+name+"/extraArgs") {
			return component
		}
	}
	if strings.Contains(p, "/clusterConfiguration/etcd/local/extraArgs") {
		return allowlist.Etcd
	}
	return ""
}
