package params

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/polder-kaas/polder/stack"
	"github.com/polder-kaas/polder/stack/class"
	"github.com/polder-kaas/polder/stack/document"
)

// Page is a page for people, in Markdown: what the release contains and accepts.
func Page(r *stack.Release, c *stack.Class, stages []stack.RenderedStage) string {
	var b strings.Builder
	v := r.Metadata.Versions
	fmt.Fprintf(&b, "# %s\n\n", r.Name.Tag())
	fmt.Fprintf(&b, "Stack `%s` for provider `%s`, version %s, Kubernetes %s.\n", r.Name.Name, r.Name.Provider,
		r.Name.Version, v.Kubernetes)
	fmt.Fprintf(&b, "Clusters name the class `%s`", c.Name())
	if len(c.MachineDeploymentClasses) > 0 {
		fmt.Fprintf(&b, " and the classes of workers `%s`", strings.Join(c.MachineDeploymentClasses, "`, `"))
	}
	b.WriteString(".\n\n")
	writeParameters(&b, c)
	writeAddons(&b, r, stages)
	b.WriteString("## Objects of the class\n\n| kind | name |\n|---|---|\n")
	for _, o := range c.Objects {
		fmt.Fprintf(&b, "| %s | %s |\n", o.Kind(), o.Name())
	}
	return b.String()
}

func writeParameters(b *strings.Builder, c *stack.Class) {
	b.WriteString("## Parameters\n\n")
	if len(c.Variables) == 0 {
		b.WriteString("There are none.\n\n")
		return
	}
	b.WriteString("| name | type | default | allowed | replaces when changed | meaning |\n|---|---|---|---|---|---|\n")
	for _, p := range (lister{quote: "`"}).list(c.Class) {
		name, value := p.Name, ""
		if p.Required {
			name += " (required)"
		}
		if p.Default != "" {
			value = "`" + escapeCell(p.Default) + "`"
		}
		fmt.Fprintf(b, "| %s | %s | %s | %s | %s | %s |\n", name, p.Type, value, escapeCell(p.Allowed),
			DescribeMachines(p.Replaces), escapeCell(p.Description))
	}
	b.WriteString("\n")
}

// DescribeMachines names the machines that are replaced when a parameter changes.
func DescribeMachines(m class.Machines) string {
	switch {
	case m.Unknown:
		return "perhaps"
	case m.ControlPlane && m.Workers:
		return "all machines"
	case m.ControlPlane:
		return "control plane"
	case m.Workers:
		return "workers"
	}
	return "none"
}

func typeName(s map[string]any) string {
	t, _ := s["type"].(string)
	if items, ok := s["items"].(map[string]any); ok && t == "array" {
		return "list of " + typeName(items)
	}
	return t
}

// describeConstraints says in words what a value is checked against.
func (l lister) describeConstraints(s map[string]any) string {
	var out []string
	if e, ok := s["enum"].([]any); ok {
		var list []string
		for _, v := range e {
			list = append(list, l.quote+compactJSON(v)+l.quote)
		}
		out = append(out, strings.Join(list, ", "))
	}
	for _, k := range []struct{ key, text string }{
		{"minimum", "at least %s"}, {"maximum", "at most %s"}, {"pattern", "like " + l.quote + "%s" + l.quote},
		{"format", "%s"},
		{"minLength", "at least %s characters"}, {"maxLength", "at most %s characters"}, {"minItems", "at least %s"},
		{"maxItems", "at most %s"},
	} {
		if v, ok := s[k.key]; ok {
			text := compactJSON(v)
			if str, ok := v.(string); ok {
				text = str
			}
			out = append(out, fmt.Sprintf(k.text, text))
		}
	}
	return strings.Join(out, "; ")
}

func compactJSON(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return string(b)
}

// escapeCell keeps a text from ending a cell of a table.
func escapeCell(s string) string {
	return strings.NewReplacer("|", `\|`, "\n", " ").Replace(s)
}

func writeAddons(b *strings.Builder, r *stack.Release, stages []stack.RenderedStage) {
	b.WriteString("## Add-ons\n\n| stage | chart | version | dependencies | objects | waits |\n|---|---|---|---|---|---|\n")
	seen := map[string]bool{}
	for _, s := range stages {
		// A chart with stages on both runtime hooks needs one row only.
		if seen[s.Stage.Name] {
			continue
		}
		seen[s.Stage.Name] = true
		chart := parseChart(r.Addons.Charts[s.Stage.Name]["Chart.yaml"])
		var waits []string
		if s.Stage.WaitForPreCondition != nil {
			waits = append(waits, "before")
		}
		if s.Stage.WaitForPostCondition != nil {
			waits = append(waits, "after")
		}
		name := s.Stage.Name
		if name == "" {
			name = "cluster-addon"
		}
		fmt.Fprintf(b, "| %s | %s | %s | %s | %d | %s |\n", name, escapeCell(chart.Description), chart.Version,
			chart.dependencyList(), len(s.Objects), strings.Join(waits, ", "))
	}
	b.WriteString("\n")
}

type chart struct {
	Description, Version string
	Dependencies         []struct{ Name, Version string }
}

func parseChart(b []byte) (c chart) {
	if d, err := document.ParseOne("Chart.yaml", b); err == nil {
		_ = d.Decode(&c) // a chart that was rendered has a valid Chart.yaml
	}
	return c
}

func (c chart) dependencyList() string {
	var out []string
	for _, d := range c.Dependencies {
		out = append(out, d.Name+" "+d.Version)
	}
	return strings.Join(out, ", ")
}
