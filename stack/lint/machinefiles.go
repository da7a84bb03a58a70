package lint

import (
	"encoding/base64"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"text/template"
	"text/template/parse"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/polder-kaas/polder/stack/allowlist"
	"github.com/polder-kaas/polder/stack/class"
	"github.com/polder-kaas/polder/stack/render"
)

// machineFiles are the files that a template writes on its machines.
type machineFiles struct {
	content    map[string][]byte // by path; nil: not known
	incomplete bool              // a patch adds files of which nothing is known
}

var _ allowlist.Files = machineFiles{}

// ownKubeconfig is like those that kubeadm makes.
var ownKubeconfig = fmt.Appendf(nil, "kind: Config\nclusters: [{name: a, cluster: {server: 'https://%s:6443', certificate-authority-data: YQ==}}]\n",
	lintAddress)

// Stat finds nothing wrong: links cannot be written by a stack.
func (f machineFiles) Stat(string) error { return nil }

// ReadFile returns the content that a machine will have, as far as it is known.
func (f machineFiles) ReadFile(p string) ([]byte, error) {
	if b, ok := f.content[p]; ok {
		if b == nil {
			return nil, allowlist.ErrUnknownContent
		}
		return b, nil
	}
	for _, own := range kubeadmOwnFiles {
		if p == own {
			return ownKubeconfig, nil
		}
	}
	if f.incomplete {
		return nil, allowlist.ErrUnknownContent
	}
	return nil, fs.ErrNotExist
}

// machineFiles gathers the files of a template and of the patches for it.
func (l *classLinter) machineFiles(o render.Object, spec map[string]any) machineFiles {
	f := machineFiles{content: map[string][]byte{}}
	f.add(spec["files"], true)
	for _, p := range l.class.Patches {
		f.incomplete = f.incomplete || p.External != nil
		for _, d := range p.Definitions {
			for _, j := range d.JSONPatches {
				if d.Selector.Kind != o.Kind() || !strings.Contains(j.Path+"/", "/files/") {
					continue
				}
				value, literal := l.patchValue(j)
				f.incomplete = f.incomplete || value == nil
				f.add(value, literal)
			}
		}
	}
	return f
}

// add adds a file or a list of files. Of one that is made of variables only the path is known.
func (f machineFiles) add(v any, literal bool) {
	if m, ok := v.(map[string]any); ok {
		v = []any{m}
	}
	list, _ := v.([]any)
	for _, item := range list {
		m, _ := item.(map[string]any)
		p, _ := m["path"].(string)
		if p = path.Clean("/" + p); literal {
			f.content[p] = fileContent(m)
		} else if _, ok := f.content[p]; !ok {
			f.content[p] = nil
		}
	}
}

// fileContent is nil if it cannot be known.
func fileContent(m map[string]any) []byte {
	text, ok := m["content"].(string)
	encoding, _ := m["encoding"].(string)
	switch {
	case !ok || m["append"] == true:
		return nil
	case encoding == "":
		return []byte(text)
	case encoding == "base64":
		if b, err := base64.StdEncoding.DecodeString(strings.TrimSpace(text)); err == nil {
			return b
		}
	}
	return nil
}

// patchValue returns what a patch puts there: as it is written, or for sample values of the variables. It is nil if it
// cannot be known.
func (l *classLinter) patchValue(j class.JSONPatch) (value any, literal bool) {
	if j.Value != nil || j.ValueFrom == nil || j.ValueFrom.Template == "" {
		return j.Value, true
	}
	t, err := template.New("").Funcs(boundedFuncs()).Parse(j.ValueFrom.Template)
	if err != nil || t.Tree == nil {
		return nil, false
	}
	sample := map[string]any{builtin: sampleBuiltin}
	for _, v := range l.class.Variables {
		sample[v.Name] = sampleValue(v.Schema.OpenAPIV3Schema, 0)
	}
	b, err := executeBounded(t, sample)
	if err != nil || yaml.Unmarshal(b, &value) != nil {
		return nil, false
	}
	return value, isConstant(t)
}

// isConstant says whether a template always makes the same.
func isConstant(t *template.Template) bool {
	for _, n := range t.Root.Nodes {
		if n.Type() != parse.NodeText {
			return false
		}
	}
	return true
}

// checkStaticPod checks a manifest that is run beside those of kubeadm. Programs that cannot be run are only not
// honoured.
func (l *machineLinter) checkStaticPod(file string, b []byte) {
	var pod corev1.Pod
	if err := yaml.Unmarshal(b, &pod); err != nil || len(pod.Spec.Containers) != 1 {
		return
	}
	c := pod.Spec.Containers[0]
	argv := append(append([]string{}, c.Command...), c.Args...)
	if len(argv) == 0 || !allowlist.IsComponent(path.Base(argv[0])) {
		return
	}
	m := l.machine()
	host := map[string]string{}
	for _, v := range pod.Spec.Volumes {
		if v.HostPath != nil {
			l.checkPath("hostPath", v.HostPath.Path)
			host[v.Name] = path.Clean("/" + v.HostPath.Path)
		}
	}
	for _, v := range c.VolumeMounts {
		if h, ok := host[v.Name]; ok {
			m.Mounts = append(m.Mounts,
				allowlist.Mount{Container: path.Clean("/" + v.MountPath), Machine: path.Join(h, v.SubPath)})
		}
	}
	allowlist.SortMounts(m.Mounts)
	_, refused := m.Resolve(path.Base(argv[0]), argv[1:])
	l.refuseAll(file, refused)
}
