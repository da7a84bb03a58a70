package lint

import (
	"context"
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

// classLinter checks one class.
type classLinter struct {
	*linter
	class *stack.Class
	file  string
}

func (l *linter) checkClass(ctx context.Context, c *stack.Class) {
	cl := &classLinter{linter: l, class: c, file: path.Join(classDir, c.Path)}
	cl.checkFields()
	cl.checkRefs()
	cl.checkVariables(ctx)
	cl.checkPatches()
	cl.checkQuoting(ctx)
	cl.checkMachineFlags()
	cl.checkKinds()
}

// checkFields checks that fields are those of Cluster API's types, in the class and in the templates of kubeadm.
func (l *classLinter) checkFields() {
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
			continue // this cannot be: it was read from YAML
		}
		if field := document.UnknownField(b, like); field != "" {
			at := l.locate(field + ":")
			l.addErrorAt(at, "field", fmt.Sprintf("%s has no field %s, so it would be ignored or refused", o.Kind(), field),
				"correct it")
		}
	}
}

// locate finds where the templates of the class have a word: in that of the class itself, or in one that it
// includes.
func (l *classLinter) locate(word string) filePosition {
	if n := l.findLine(l.file, word); n > 0 {
		return filePosition{l.file, n}
	}
	for _, file := range l.files.Names() {
		if strings.HasPrefix(file, classDir+"/templates/") {
			if n := l.findLine(file, word); n > 0 {
				return filePosition{file, n}
			}
		}
	}
	return filePosition{l.file, 1}
}

// filePosition is a line of a file.
type filePosition struct {
	file string
	line int
}

func (l *classLinter) addErrorAt(at filePosition, rule, what, fix string) {
	l.addError(at.file, at.line, rule, what, fix)
}

func (l *classLinter) addWarningAt(at filePosition, rule, what, fix string) {
	l.addWarning(at.file, at.line, rule, what, fix)
}

// checkRefs checks that what the class refers to is among the objects, and that the objects are referred to.
func (l *classLinter) checkRefs() {
	for _, where := range []string{"infrastructure", "controlPlane"} {
		if !slices.ContainsFunc(l.class.Refs, func(r class.Ref) bool { return r.Field == where }) {
			l.addErrorAt(l.locate("spec"), "class-ref", fmt.Sprintf("the class refers to no template for its %s", where),
				"add spec."+where)
		}
	}
	used := map[string]bool{}
	for _, r := range l.class.Refs {
		used[r.Kind+"/"+r.Name] = true
		if !l.hasObject(r) {
			l.addErrorAt(l.locate(r.Kind), "class-ref",
				fmt.Sprintf("%s refers to %s %s, which the class chart does not render", r.Field, r.Kind, r.Name),
				"render it, or correct the name")
		}
	}
	for _, o := range l.class.Objects {
		if strings.HasSuffix(o.Kind(), "Template") && strings.Contains(o.Group(), class.Group) &&
			!used[o.Kind()+"/"+o.Name()] {
			file := path.Join(classDir, o.Path)
			l.addWarning(file, l.findLine(file, o.Kind()), "class-unused", fmt.Sprintf("the class does not refer to %s", o),
				"refer to it, or remove it")
		}
	}
}

func (l *classLinter) hasObject(r class.Ref) bool {
	for _, o := range l.class.Objects {
		if o.Kind() == r.Kind && o.Name() == r.Name && (r.APIVersion == "" || o.APIVersion() == r.APIVersion) {
			return true
		}
	}
	return false
}

// checkVariables checks that variables have schemas that Cluster API accepts, and defaults that fit.
func (l *classLinter) checkVariables(ctx context.Context) {
	seen := map[string]bool{}
	for _, v := range l.class.Variables {
		at := l.locate("name: " + v.Name)
		if v.Name == "" || v.Name == builtin || strings.Contains(v.Name, ".") {
			l.addErrorAt(at, "variable", fmt.Sprintf("a variable has the name %q", v.Name),
				"choose another, without a dot; builtin is Cluster API's own")
			continue
		}
		if seen[v.Name] {
			l.addErrorAt(at, "variable", fmt.Sprintf("there are two variables %s", v.Name), "remove one")
		}
		seen[v.Name] = true
		problems, ineffective := schema.Check(ctx, v.Schema.OpenAPIV3Schema)
		for _, p := range problems {
			l.addErrorAt(at, "schema", fmt.Sprintf("variable %s: %s", v.Name, p),
				"see the types of ClusterClass variables in Cluster API")
		}
		for _, p := range ineffective {
			l.addWarningAt(at, "schema", fmt.Sprintf("variable %s: %s", v.Name, p), "move it, or remove it")
		}
		if !l.isVariableUsed(v.Name) {
			l.addWarningAt(at, "variable-unused", fmt.Sprintf("nothing uses the variable %s", v.Name),
				"use it in a patch or in the values of an add-on, or remove it")
		}
	}
}

// isVariableUsed says whether a patch or a template of values has the name of a variable.
func (l *classLinter) isVariableUsed(name string) bool {
	for _, p := range l.class.Patches {
		// What an external patch uses cannot be known. Printing does not follow pointers, so valueFrom comes below.
		if strings.Contains(fmt.Sprintf("%+v", p), name) || p.External != nil {
			return true
		}
		for _, d := range p.Definitions {
			for _, j := range d.JSONPatches {
				if j.ValueFrom != nil && (strings.Contains(j.ValueFrom.Variable, name) ||
					strings.Contains(j.ValueFrom.Template, name)) {
					return true
				}
			}
		}
	}
	for file, b := range l.files {
		if base := path.Base(file); (base == "overwrite.yaml" || base == "cluster-addon-values.yaml") &&
			strings.Contains(string(b), name) {
			return true
		}
	}
	return false
}

// checkKinds finds objects that belong into a workload cluster and not into a class.
func (l *classLinter) checkKinds() {
	for _, o := range l.class.Objects {
		if !isManagementKind(o) {
			file := path.Join(classDir, o.Path)
			l.addWarning(file, l.findLine(file, o.Kind()), "class-kind",
				fmt.Sprintf("%s is made in the management plane, not in clusters, and the plane may refuse it", o),
				"put it into an add-on")
		}
	}
}

// isManagementKind says whether an object is of the kinds a class is made of. The group k-orc.cloud is that of the
// controller for resources of OpenStack.
func isManagementKind(o render.Object) bool {
	return strings.HasSuffix(o.Group(), class.Group) || strings.HasSuffix(o.Group(), ".k-orc.cloud")
}
