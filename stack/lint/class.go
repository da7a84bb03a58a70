package lint

import (
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"

	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1beta1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/polder-kaas/polder/stack"
	"github.com/polder-kaas/polder/stack/class"
	"github.com/polder-kaas/polder/stack/document"
	"github.com/polder-kaas/polder/stack/render"
	"github.com/polder-kaas/polder/stack/schema"
)

// classLint looks at one class.
type classLint struct {
	*linter
	class *stack.Class
	file  string
}

func (l *linter) class(c *stack.Class) {
	cl := &classLint{linter: l, class: c, file: path.Join(classDir, c.Path)}
	cl.fields()
	cl.refs()
	cl.variables()
	cl.patches()
	cl.kinds()
}

// fields must be those of Cluster API's types, in the class and in the templates of kubeadm.
func (l *classLint) fields() {
	for _, o := range l.class.Objects {
		var like any
		switch o.APIVersion() + "/" + o.Kind() {
		case clusterv1.GroupVersion.String() + "/ClusterClass":
			like = new(clusterv1.ClusterClass)
		case clusterv1beta1.GroupVersion.String() + "/ClusterClass":
			like = new(clusterv1beta1.ClusterClass)
		case controlplanev1.GroupVersion.String() + "/KubeadmControlPlaneTemplate":
			like = new(controlplanev1.KubeadmControlPlaneTemplate)
		case bootstrapv1.GroupVersion.String() + "/KubeadmConfigTemplate":
			like = new(bootstrapv1.KubeadmConfigTemplate)
		default:
			continue
		}
		b, err := json.Marshal(o.Value)
		if err != nil {
			continue // it was read from YAML
		}
		if field := document.UnknownField(b, like); field != "" {
			at := l.at(field + ":")
			l.wrong(at, "field", fmt.Sprintf("%s has no field %s, so it would be ignored or refused", o.Kind(), field), "correct it")
		}
	}
}

// at is where the templates of the class have a word: in that of the class itself, or in one that it
// includes.
func (l *classLint) at(word string) spot {
	if n := l.line(l.file, word); n > 0 {
		return spot{l.file, n}
	}
	for _, file := range l.files.Names() {
		if strings.HasPrefix(file, classDir+"/templates/") {
			if n := l.line(file, word); n > 0 {
				return spot{file, n}
			}
		}
	}
	return spot{l.file, 1}
}

// spot is a line of a file.
type spot struct {
	file string
	line int
}

func (l *classLint) wrong(at spot, rule, what, fix string) {
	l.error(at.file, at.line, rule, what, fix)
}

func (l *classLint) unwise(at spot, rule, what, fix string) {
	l.warn(at.file, at.line, rule, what, fix)
}

// refs must be among the objects, and the objects must be referred to.
func (l *classLint) refs() {
	for _, where := range []string{"infrastructure", "controlPlane"} {
		if !slices.ContainsFunc(l.class.Refs, func(r class.Ref) bool { return r.Where == where }) {
			l.wrong(l.at("spec"), "class-ref", fmt.Sprintf("the class refers to no template for its %s", where), "add spec."+where)
		}
	}
	used := map[string]bool{}
	for _, r := range l.class.Refs {
		used[r.Kind+"/"+r.Name] = true
		if !l.hasObject(r) {
			l.wrong(l.at(r.Kind), "class-ref", fmt.Sprintf("%s refers to %s %s, which the class chart does not render", r.Where, r.Kind, r.Name), "render it, or correct the name")
		}
	}
	for _, o := range l.class.Objects {
		if strings.HasSuffix(o.Kind(), "Template") && strings.Contains(o.Group(), class.Group) && !used[o.Kind()+"/"+o.Name()] {
			file := path.Join(classDir, o.Path)
			l.warn(file, l.line(file, o.Kind()), "class-unused", fmt.Sprintf("the class does not refer to %s", o), "refer to it, or remove it")
		}
	}
}

func (l *classLint) hasObject(r class.Ref) bool {
	for _, o := range l.class.Objects {
		if o.Kind() == r.Kind && o.Name() == r.Name && (r.APIVersion == "" || o.APIVersion() == r.APIVersion) {
			return true
		}
	}
	return false
}

// variables must have schemas Cluster API takes, and defaults that fit.
func (l *classLint) variables() {
	seen := map[string]bool{}
	for _, v := range l.class.Variables {
		line := l.at("name: " + v.Name)
		if v.Name == "" || v.Name == builtin || strings.Contains(v.Name, ".") {
			l.wrong(line, "variable", fmt.Sprintf("a variable has the name %q", v.Name), "choose another, without a dot; builtin is Cluster API's own")
			continue
		}
		if seen[v.Name] {
			l.wrong(line, "variable", fmt.Sprintf("there are two variables %s", v.Name), "remove one")
		}
		seen[v.Name] = true
		wrong, useless := schema.Check(v.Schema.OpenAPIV3Schema)
		for _, p := range wrong {
			l.wrong(line, "schema", fmt.Sprintf("variable %s: %s", v.Name, p), "see the types of ClusterClass variables in Cluster API")
		}
		for _, p := range useless {
			l.unwise(line, "schema", fmt.Sprintf("variable %s: %s", v.Name, p), "move it, or remove it")
		}
		if !l.mentioned(v.Name) {
			l.unwise(line, "variable-unused", fmt.Sprintf("nothing uses the variable %s", v.Name), "use it in a patch or in the values of an add-on, or remove it")
		}
	}
}

// mentioned says whether a patch or a template of values has the name of a variable.
func (l *classLint) mentioned(name string) bool {
	for _, p := range l.class.Patches {
		if strings.Contains(fmt.Sprintf("%+v", p), name) || p.External != nil {
			return true
		}
		for _, d := range p.Definitions {
			for _, j := range d.JSONPatches {
				if j.ValueFrom != nil && (strings.Contains(j.ValueFrom.Variable, name) || strings.Contains(j.ValueFrom.Template, name)) {
					return true
				}
			}
		}
	}
	for file, b := range l.files {
		if base := path.Base(file); (base == "overwrite.yaml" || base == "cluster-addon-values.yaml") && strings.Contains(string(b), name) {
			return true
		}
	}
	return false
}

// kinds of objects that belong into a workload cluster do not belong into a class.
func (l *classLint) kinds() {
	for _, o := range l.class.Objects {
		if !manages(o) {
			file := path.Join(classDir, o.Path)
			l.warn(file, l.line(file, o.Kind()), "class-kind", fmt.Sprintf("%s is made in the management plane, not in clusters, and the plane may refuse it", o), "put it into an add-on")
		}
	}
}

// manages says whether an object is of the kinds a class is made of.
func manages(o render.Object) bool {
	return strings.HasSuffix(o.Group(), class.Group) || strings.HasSuffix(o.Group(), ".k-orc.cloud")
}
