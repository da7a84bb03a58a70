package lint

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/polder-kaas/polder/stack"
	"github.com/polder-kaas/polder/stack/condition"
	"github.com/polder-kaas/polder/stack/dependency"
	"github.com/polder-kaas/polder/stack/document"
)

const (
	configFile       = "clusteraddon.yaml"
	configAPIVersion = "clusteraddonconfig.x-k8s.io/v1alpha1"
)

var (
	knownHooks   = []string{stack.AfterControlPlaneInitialized, stack.BeforeClusterUpgrade}
	knownActions = []string{stack.ActionApply, stack.ActionDelete}
)

// stages looks at which add-ons are run when.
func (l *linter) stages() {
	d, ok := l.yaml("stages", configFile)
	if !ok {
		return
	}
	var c stack.AddonConfig
	if err := d.Decode(&c); err != nil {
		l.document("stages", err)
		return
	}
	if field := d.Unknown(new(stack.AddonConfig)); field != "" {
		l.error(configFile, l.line(configFile, field+":"), "stages", fmt.Sprintf("the field %s is not known and would be ignored", field), "correct it; names of fields are of capitals and small letters")
	}
	if c.APIVersion != configAPIVersion {
		l.error(configFile, d.Line("apiVersion"), "stages", fmt.Sprintf("apiVersion is %q", c.APIVersion), "write "+configAPIVersion)
	}
	if len(c.AddonStages) == 0 {
		l.error(configFile, d.Line("addonStages"), "stages", "there are no addonStages, so clusters get no add-ons", "list them below "+stack.AfterControlPlaneInitialized)
	}
	used := map[string]bool{}
	for hook, stages := range c.AddonStages {
		if !slices.Contains(knownHooks, hook) {
			l.error(configFile, d.Line("addonStages", hook), "stage-hook", fmt.Sprintf("hook %q is not known, so its stages are never run", hook), "use "+strings.Join(knownHooks, " or "))
		}
		seen := map[string]bool{}
		for i, s := range stages {
			at := place{d: d, hook: hook, stage: i}
			used[s.Name] = true
			l.stage(at, s)
			if seen[s.Name] {
				l.error(configFile, at.line(), "stage-twice", fmt.Sprintf("stage %q is in %s twice", s.Name, hook), "remove one")
			}
			seen[s.Name] = true
		}
	}
	for _, dir := range l.source.Charts()[1:] {
		if name := strings.TrimPrefix(dir, addonDir+"/"); !used[name] && !l.neededBy(dir) {
			l.warn(chartYAML(dir), 0, "chart-unused", fmt.Sprintf("no stage uses the chart %s", name), "add a stage to "+configFile+", or remove the chart")
		}
	}
}

// neededBy says whether another chart has this one as a dependency.
func (l *linter) neededBy(dir string) bool {
	for _, other := range l.source.Charts() {
		needs, _ := dependency.Needs(l.files, other) // said by charts
		for _, n := range needs {
			if p, ok := strings.CutPrefix(n.Repository, "file://"); ok && path.Join(other, p) == dir {
				return true
			}
		}
	}
	return false
}

// place is one stage in clusteraddon.yaml.
type place struct {
	d     document.Document
	hook  string
	stage int
}

func (p place) line(keys ...string) int {
	return p.d.Line(append([]string{"addonStages", p.hook, fmt.Sprint(p.stage)}, keys...)...)
}

func (l *linter) stage(at place, s stack.Stage) {
	if s.Name == "" {
		l.error(configFile, at.line(), "stage-chart", "a stage has no name", "name the directory of its chart below "+addonDir)
	} else if _, ok := l.files[chartYAML(addonDir+"/"+s.Name)]; !ok {
		l.error(configFile, at.line("name"), "stage-chart", fmt.Sprintf("stage %q has no chart", s.Name), fmt.Sprintf("add %s, or remove the stage", chartYAML(addonDir+"/"+s.Name)))
	}
	if !slices.Contains(knownActions, s.Action) {
		l.error(configFile, at.line("action"), "stage-action", fmt.Sprintf("action %q of stage %q is not known", s.Action, s.Name), "use "+strings.Join(knownActions, " or "))
	}
	for field, c := range map[string]*stack.Condition{"waitForPreCondition": s.WaitForPreCondition, "waitForPostCondition": s.WaitForPostCondition} {
		if c != nil {
			l.condition(at, field, *c)
		}
	}
}

func (l *linter) condition(at place, field string, c stack.Condition) {
	var keys []string
	for i, o := range c.Objects {
		line := at.line(field, "objects", fmt.Sprint(i))
		for name, v := range map[string]string{"key": o.Key, "apiVersion": o.APIVersion, "kind": o.Kind, "name": o.Name} {
			if v == "" {
				l.error(configFile, line, "condition-object", fmt.Sprintf("an object of %s has no %s", field, name), "add it")
			}
		}
		switch {
		case o.Key == "":
			continue
		case slices.Contains(keys, o.Key):
			l.error(configFile, line, "condition-object", fmt.Sprintf("two objects of %s have the key %q", field, o.Key), "give each a key of its own")
			continue
		case !strings.Contains(c.Conditions, o.Key):
			l.warn(configFile, line, "condition-object", fmt.Sprintf("the expression does not use the object %q, but waits until it exists", o.Key), "use it, or remove it")
		}
		keys = append(keys, o.Key)
	}
	if _, err := condition.Compile(c.Conditions, keys); err != nil {
		l.error(configFile, at.line(field, "conditions"), "condition", fmt.Sprintf("the expression of %s: %v", field, err), "see https://cel.dev; variables are the keys of objects")
	}
}
