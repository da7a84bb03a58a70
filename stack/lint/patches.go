package lint

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"text/template"
	"text/template/parse"

	"github.com/Masterminds/sprig/v3"

	"github.com/polder-kaas/polder/stack/class"
)

// builtin is the variable that Cluster API itself provides.
const builtin = "builtin"

// checkPatches checks that patches name variables that are declared, templates that exist, and paths that can be.
func (l *classLinter) checkPatches() {
	seen := map[string]bool{}
	for _, p := range l.class.Patches {
		at := l.locatePatch(p.Name)
		if seen[p.Name] {
			l.addErrorAt(at, "patch", fmt.Sprintf("there are two patches %q", p.Name), "name one differently")
		}
		seen[p.Name] = true
		if p.EnabledIf != "" {
			l.checkTemplate(at, fmt.Sprintf("enabledIf of patch %q", p.Name), p.EnabledIf)
		}
		if len(p.Definitions) == 0 && p.External == nil {
			l.addErrorAt(at, "patch", fmt.Sprintf("patch %q changes nothing", p.Name), "add definitions")
		}
		for _, d := range p.Definitions {
			l.checkSelector(at, p, d)
			for _, j := range d.JSONPatches {
				l.checkJSONPatch(at, p, j)
			}
		}
	}
}

func (l *classLinter) checkSelector(at filePosition, p class.Patch, d class.Definition) {
	s := d.Selector
	ok := slices.ContainsFunc(l.class.Refs,
		func(r class.Ref) bool { return r.Kind == s.Kind && r.APIVersion == s.APIVersion })
	if !ok {
		l.addErrorAt(l.locateAfter(at, s.Kind), "patch-selector",
			fmt.Sprintf("patch %q selects %s of %s, and the class refers to none", p.Name, s.Kind, s.APIVersion),
			"correct the kind or its version")
	}
	l.checkMatchResources(l.locateAfter(at, s.Kind), p, s.MatchResources)
	if s.MatchResources == nil {
		l.addErrorAt(l.locateAfter(at, s.Kind), "patch-selector",
			fmt.Sprintf("patch %q selects nothing: matchResources is missing", p.Name),
			"say controlPlane: true, infrastructureCluster: true or name machineDeploymentClass")
	}
}

// checkMatchResources checks that the selector can select something at all.
func (l *classLinter) checkMatchResources(at filePosition, p class.Patch, m *class.MatchResources) {
	if m == nil {
		return
	}
	if !m.ControlPlane && !m.InfrastructureCluster &&
		(m.MachineDeploymentClass == nil || len(m.MachineDeploymentClass.Names) == 0) &&
		(m.MachinePoolClass == nil || len(m.MachinePoolClass.Names) == 0) {
		l.addErrorAt(at, "patch-selector", fmt.Sprintf("patch %q selects nothing", p.Name),
			"say controlPlane: true, infrastructureCluster: true or name machineDeploymentClass")
	}
	if m.MachineDeploymentClass == nil {
		return
	}
	for _, name := range m.MachineDeploymentClass.Names {
		if !strings.Contains(name, "*") && !slices.Contains(l.class.MachineDeploymentClasses, name) {
			l.addErrorAt(l.locateAfter(at, name), "patch-selector",
				fmt.Sprintf("patch %q is for the workers %s, and the class has none of that name", p.Name, name),
				"use one of "+strings.Join(l.class.MachineDeploymentClasses, ", "))
		}
	}
}

// locatePatch finds where a patch begins. Its variable often has the same name, but is not followed by definitions.
func (l *classLinter) locatePatch(name string) filePosition {
	for _, file := range l.files.Names() {
		if !strings.HasPrefix(file, classDir+"/templates/") {
			continue
		}
		lines := strings.Split(string(l.files[file]), "\n")
		for i, line := range lines {
			if !strings.Contains(line, "name: "+name) {
				continue
			}
			for _, next := range lines[i+1 : min(i+5, len(lines))] {
				if strings.Contains(next, "definitions:") || strings.Contains(next, "enabledIf:") ||
					strings.Contains(next, "external:") {
					return filePosition{file, i + 1}
				}
			}
		}
	}
	return l.locate("name: " + name)
}

// locateAfter finds the first line with a word at or after a position, which it returns if there is none.
func (l *classLinter) locateAfter(at filePosition, word string) filePosition {
	lines := strings.Split(string(l.files[at.file]), "\n")
	for i := max(at.line-1, 0); i < len(lines) && word != ""; i++ {
		if strings.Contains(lines[i], word) {
			return filePosition{at.file, i + 1}
		}
	}
	return at
}

var arrayIndex = regexp.MustCompile(`/([0-9]+|-)(/|$)`)

func (l *classLinter) checkJSONPatch(at filePosition, p class.Patch, j class.JSONPatch) {
	at = l.locateAfter(at, j.Path)
	bad := func(what, fix string) {
		l.addErrorAt(at, "patch", fmt.Sprintf("patch %q at %s: %s", p.Name, j.Path, what), fix)
	}
	if !slices.Contains([]string{"add", "replace", "remove"}, j.Op) {
		bad(fmt.Sprintf("op %q is not known", j.Op), "use add, replace or remove")
	}
	if j.Path != "/spec" && !strings.HasPrefix(j.Path, "/spec/") {
		bad("Cluster API patches below /spec only", "begin the path with /spec/")
	}
	if m := arrayIndex.FindStringSubmatch(j.Path); m != nil && (j.Op != "add" || m[1] != "0" && m[1] != "-") {
		bad("in a list only the beginning (0) and the end (-) can be added to", "replace the whole list, or add at 0 or -")
	}
	has := 0
	if j.Value != nil {
		has++
	}
	if j.ValueFrom != nil && j.ValueFrom.Variable != "" {
		has++
		l.checkPatchVariable(at, p, j.ValueFrom.Variable)
	}
	if j.ValueFrom != nil && j.ValueFrom.Template != "" {
		has++
		l.checkTemplate(at, fmt.Sprintf("the template of patch %q at %s", p.Name, j.Path), j.ValueFrom.Template)
	}
	if want := 1; j.Op == "remove" && has > 0 || j.Op != "remove" && has != want {
		bad(fmt.Sprintf("%s has %d of value, valueFrom.variable and valueFrom.template", j.Op, has),
			"give exactly one, and none with remove")
	}
}

func (l *classLinter) isDeclared(name string) bool {
	return name == builtin || slices.ContainsFunc(l.class.Variables, func(v class.Variable) bool { return v.Name == name })
}

func (l *classLinter) checkPatchVariable(at filePosition, p class.Patch, name string) {
	root, _, _ := strings.Cut(name, ".")
	root, _, _ = strings.Cut(root, "[")
	if !l.isDeclared(root) {
		l.addUndeclared(at, fmt.Sprintf("patch %q", p.Name), root)
	}
}

func (l *classLinter) addUndeclared(at filePosition, who, name string) {
	l.addErrorAt(l.locateAfter(at, name), "patch-variable",
		fmt.Sprintf("%s uses the variable %s, which is not declared", who, name),
		"declare it in spec.variables, or correct the name")
}

// checkTemplate checks a template of Cluster API, which knows fewer functions than Helm.
func (l *classLinter) checkTemplate(at filePosition, who, text string) {
	t, err := template.New("").Funcs(sprig.HermeticTxtFuncMap()).Parse(text)
	if err != nil {
		l.addErrorAt(at, "patch-template",
			fmt.Sprintf("%s does not parse: %s", who, strings.TrimPrefix(err.Error(), "template: :")),
			"it is a Go template; in a Helm chart write its braces as {{ `{{ .x }}` }}")
		return
	}
	if t.Tree == nil {
		return
	}
	for _, name := range rootFields(t.Root) {
		if !l.isDeclared(name) {
			l.addUndeclared(at, who, name)
		}
	}
}

// rootFields gives the first parts of all fields of the data, such as a in .a.b and in $.a.
func rootFields(n parse.Node) []string {
	w := &fieldWalker{seen: map[string]bool{}}
	w.walkNode(n, true)
	return w.names
}

type fieldWalker struct {
	names []string
	seen  map[string]bool
}

func (w *fieldWalker) add(name string) {
	if !w.seen[name] {
		w.seen[name] = true
		w.names = append(w.names, name)
	}
}

// walkNode walks a tree and adds the fields; top says whether the dot is the data, which it is not inside range
// and with.
func (w *fieldWalker) walkNode(n parse.Node, top bool) {
	switch n := n.(type) {
	case *parse.ListNode:
		if n != nil {
			for _, c := range n.Nodes {
				w.walkNode(c, top)
			}
		}
	case *parse.ActionNode:
		w.walkNode(n.Pipe, top)
	case *parse.PipeNode:
		if n != nil {
			for _, c := range n.Cmds {
				for _, a := range c.Args {
					w.walkNode(a, top)
				}
			}
		}
	case *parse.FieldNode:
		if top {
			w.add(n.Ident[0])
		}
	case *parse.VariableNode:
		if n.Ident[0] == "$" && len(n.Ident) > 1 {
			w.add(n.Ident[1])
		}
	case *parse.ChainNode:
		w.walkNode(n.Node, top)
	case *parse.IfNode:
		w.walkBranch(n.BranchNode, top, top)
	case *parse.RangeNode:
		w.walkBranch(n.BranchNode, top, false)
	case *parse.WithNode:
		w.walkBranch(n.BranchNode, top, false)
	}
}

func (w *fieldWalker) walkBranch(b parse.BranchNode, top, inside bool) {
	w.walkNode(b.Pipe, top)
	w.walkNode(b.List, inside)
	w.walkNode(b.ElseList, top)
}
