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
	addonConfigFile       = "clusteraddon.yaml"
	addonConfigAPIVersion = "clusteraddonconfig.x-k8s.io/v1alpha1"
)

var (
	knownRuntimeHooks = []string{stack.AfterControlPlaneInitialized, stack.BeforeClusterUpgrade}
	knownActions      = []string{stack.ActionApply, stack.ActionDelete}
)

// checkStages checks clusteraddon.yaml: which add-ons are applied or deleted when.
func (l *linter) checkStages() {
	d, ok := l.readDocument("stages", addonConfigFile)
	if !ok {
		return
	}
	var c stack.AddonConfig
	if err := d.Decode(&c); err != nil {
		l.addDocumentError("stages", err)
		return
	}
	if field := d.UnknownField(new(stack.AddonConfig)); field != "" {
		l.addError(addonConfigFile, l.findLine(addonConfigFile, field+":"), "stages",
			fmt.Sprintf("the field %s is not known and would be ignored", field),
			"correct it; names of fields are of capitals and small letters")
	}
	if c.APIVersion != addonConfigAPIVersion {
		l.addError(addonConfigFile, d.Line("apiVersion"), "stages", fmt.Sprintf("apiVersion is %q", c.APIVersion),
			"write "+addonConfigAPIVersion)
	}
	if len(c.AddonStages) == 0 {
		l.addError(addonConfigFile, d.Line("addonStages"), "stages", "there are no addonStages, so clusters get no add-ons",
			"list them below "+stack.AfterControlPlaneInitialized)
	}
	used := map[string]bool{}
	for runtimeHook, stages := range c.AddonStages {
		if !slices.Contains(knownRuntimeHooks, runtimeHook) {
			l.addError(addonConfigFile, d.Line("addonStages", runtimeHook), "stage-hook",
				fmt.Sprintf("hook %q is not known, so its stages are never run", runtimeHook),
				"use "+strings.Join(knownRuntimeHooks, " or "))
		}
		seen := map[string]bool{}
		for i, s := range stages {
			at := stagePosition{d: d, runtimeHook: runtimeHook, stage: i}
			used[s.Name] = true
			l.checkStage(at, s)
			if seen[s.Name] {
				l.addError(addonConfigFile, at.line(), "stage-twice", fmt.Sprintf("stage %q is in %s twice", s.Name, runtimeHook),
					"remove one")
			}
			seen[s.Name] = true
		}
	}
	for _, dir := range l.source.ChartDirs()[1:] {
		if name := strings.TrimPrefix(dir, addonDir+"/"); !used[name] && !l.isDependency(dir) {
			l.addWarning(chartYAML(dir), 0, "chart-unused", fmt.Sprintf("no stage uses the chart %s", name),
				"add a stage to "+addonConfigFile+", or remove the chart")
		}
	}
}

// isDependency says whether another chart has this one as a dependency.
func (l *linter) isDependency(dir string) bool {
	for _, other := range l.source.ChartDirs() {
		needs, _ := dependency.ListRequirements(l.files, other) // checkCharts reports errors
		for _, n := range needs {
			if p, ok := strings.CutPrefix(n.Repository, "file://"); ok && path.Join(other, p) == dir {
				return true
			}
		}
	}
	return false
}

// stagePosition is one stage in clusteraddon.yaml.
type stagePosition struct {
	d           document.Document
	runtimeHook string
	stage       int
}

func (p stagePosition) line(keys ...string) int {
	return p.d.Line(append([]string{"addonStages", p.runtimeHook, fmt.Sprint(p.stage)}, keys...)...)
}

func (l *linter) checkStage(at stagePosition, s stack.Stage) {
	if s.Name == "" {
		l.addError(addonConfigFile, at.line(), "stage-chart", "a stage has no name",
			"name the directory of its chart below "+addonDir)
	} else if _, ok := l.files[chartYAML(addonDir+"/"+s.Name)]; !ok {
		l.addError(addonConfigFile, at.line("name"), "stage-chart", fmt.Sprintf("stage %q has no chart", s.Name),
			fmt.Sprintf("add %s, or remove the stage", chartYAML(addonDir+"/"+s.Name)))
	}
	if !slices.Contains(knownActions, s.Action) {
		l.addError(addonConfigFile, at.line("action"), "stage-action",
			fmt.Sprintf("action %q of stage %q is not known", s.Action, s.Name), "use "+strings.Join(knownActions, " or "))
	}
	for field, c := range map[string]*stack.Condition{"waitForPreCondition": s.WaitForPreCondition,
		"waitForPostCondition": s.WaitForPostCondition} {
		if c != nil {
			l.checkCondition(at, field, *c)
		}
	}
}

func (l *linter) checkCondition(at stagePosition, field string, c stack.Condition) {
	var keys []string
	for i, o := range c.Objects {
		line := at.line(field, "objects", fmt.Sprint(i))
		for name, v := range map[string]string{"key": o.Key, "apiVersion": o.APIVersion, "kind": o.Kind, "name": o.Name} {
			if v == "" {
				l.addError(addonConfigFile, line, "condition-object", fmt.Sprintf("an object of %s has no %s", field, name),
					"add it")
			}
		}
		switch {
		case o.Key == "":
			continue
		case slices.Contains(keys, o.Key):
			l.addError(addonConfigFile, line, "condition-object", fmt.Sprintf("two objects of %s have the key %q", field, o.Key),
				"give each a key of its own")
			continue
		case !strings.Contains(c.Conditions, o.Key):
			l.addWarning(addonConfigFile, line, "condition-object",
				fmt.Sprintf("the expression does not use the object %q, but waits until it exists", o.Key), "use it, or remove it")
		}
		keys = append(keys, o.Key)
	}
	if _, err := condition.Compile(c.Conditions, keys); err != nil {
		l.addError(addonConfigFile, at.line(field, "conditions"), "condition",
			fmt.Sprintf("the expression of %s: %v", field, err), "see https://cel.dev; variables are the keys of objects")
	}
}
