package stack

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/polder-kaas/polder/stack/condition"
	"github.com/polder-kaas/polder/stack/document"
	"github.com/polder-kaas/polder/stack/finding"
)

const (
	addonConfigAPIVersion = "clusteraddonconfig.x-k8s.io/v1alpha1"
	// maxStages is of each runtime hook. It bounds how many expressions of a foreign release are compiled.
	maxStages = 64
)

// actions are what can be done with the add-on of a stage.
var actions = []string{ActionApply, ActionDelete}

// stageChecker gathers what is wrong with the stages of one clusteraddon.yaml.
type stageChecker struct {
	doc      document.Document
	hasChart func(name string) bool
	findings finding.List
}

// CheckStages says what is wrong with the stages of clusteraddon.yaml: runtime hooks and actions that are not known,
// stages without a chart, conditions that do not compile or cost too much. The error means that it cannot be read.
func CheckStages(b []byte, hasChart func(name string) bool) (finding.List, error) {
	d, err := document.ParseOne(addonConfigFile, b)
	if err != nil {
		return nil, err
	}
	var c AddonConfig
	if err := d.Decode(&c); err != nil {
		return nil, err
	}
	l := &stageChecker{doc: d, hasChart: hasChart}
	if field := d.UnknownField(new(AddonConfig)); field != "" {
		before, _, _ := bytes.Cut(b, []byte(field+":"))
		l.addError(1+bytes.Count(before, []byte("\n")), "stages",
			fmt.Sprintf("the field %s is not known and would be ignored", field),
			"correct it; names of fields are of capitals and small letters")
	}
	if c.APIVersion != addonConfigAPIVersion {
		l.addError(d.Line("apiVersion"), "stages", fmt.Sprintf("apiVersion is %q", c.APIVersion),
			"write "+addonConfigAPIVersion)
	}
	if len(c.AddonStages) == 0 {
		l.addError(d.Line("addonStages"), "stages", "there are no addonStages, so clusters get no add-ons",
			"list them below "+AfterControlPlaneInitialized)
	}
	for _, runtimeHook := range slices.Sorted(maps.Keys(c.AddonStages)) {
		l.checkRuntimeHook(runtimeHook, c.AddonStages[runtimeHook])
	}
	return l.findings, nil
}

// CheckStages checks the stages of a release. What the tools that came before do not look at either is a warning:
// what they have published must go on working.
func (r *Release) CheckStages() finding.List {
	b, ok := r.Files[addonConfigFile]
	if !ok {
		return nil // one chart for all add-ons, or a draft, whose source was checked
	}
	found, err := CheckStages(b, func(name string) bool { return r.Addons.Charts[name] != nil })
	if err != nil {
		return finding.List{{File: addonConfigFile, Severity: finding.Error, Rule: "stages", What: err.Error()}}
	}
	for i, f := range found {
		if f.Rule == "stages" || f.Rule == "stage-twice" {
			found[i].Severity = finding.Warning
		}
	}
	return found
}

func (l *stageChecker) addError(line int, rule, what, fix string) {
	l.findings = append(l.findings, finding.Finding{
		File: addonConfigFile, Line: line, Severity: finding.Error, Rule: rule, What: what, Fix: fix,
	})
}

func (l *stageChecker) addWarning(line int, rule, what, fix string) {
	l.findings = append(l.findings, finding.Finding{
		File: addonConfigFile, Line: line, Severity: finding.Warning, Rule: rule, What: what, Fix: fix,
	})
}

func (l *stageChecker) checkRuntimeHook(runtimeHook string, stages []Stage) {
	line := l.doc.Line("addonStages", runtimeHook)
	if runtimeHook == afterClusterUpgrade {
		l.addWarning(line, "stage-hook", "nobody runs the stages of "+afterClusterUpgrade+"; those of "+BeforeClusterUpgrade+
			" are run in an upgrade", "remove them")
		return
	}
	if !slices.Contains(runtimeHooks, runtimeHook) {
		l.addError(line, "stage-hook", fmt.Sprintf("hook %.60q is not known, so its stages are never run", runtimeHook),
			"use "+strings.Join(runtimeHooks, " or "))
	}
	if len(stages) > maxStages {
		l.addError(line, "stage-count", fmt.Sprintf("%.60s has %d stages; at most %d are taken", runtimeHook, len(stages),
			maxStages), "put several charts into one, as its dependencies")
		return
	}
	seen := map[string]bool{}
	for i, s := range stages {
		at := stagePosition{d: l.doc, runtimeHook: runtimeHook, stage: i}
		l.checkStage(at, s)
		if seen[s.Name] {
			l.addError(at.line(), "stage-twice", fmt.Sprintf("stage %q is in %s twice", s.Name, runtimeHook), "remove one")
		}
		seen[s.Name] = true
	}
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

func (l *stageChecker) checkStage(at stagePosition, s Stage) {
	if s.Name == "" {
		l.addError(at.line(), "stage-chart", "a stage has no name", "name the directory of its chart below "+addonDir)
	} else if !l.hasChart(s.Name) {
		l.addError(at.line("name"), "stage-chart", fmt.Sprintf("stage %q of %s has no chart", s.Name, at.runtimeHook),
			fmt.Sprintf("add %s/%s/%s, or remove the stage", addonDir, s.Name, chartFile))
	}
	if !slices.Contains(actions, s.Action) {
		l.addError(at.line("action"), "stage-action", fmt.Sprintf("action %q of stage %q is not known", s.Action, s.Name),
			"use "+strings.Join(actions, " or "))
	}
	if s.WaitForPreCondition != nil {
		l.checkCondition(at, "waitForPreCondition", *s.WaitForPreCondition)
	}
	if s.WaitForPostCondition != nil {
		l.checkCondition(at, "waitForPostCondition", *s.WaitForPostCondition)
	}
}

func (l *stageChecker) checkCondition(at stagePosition, field string, c Condition) {
	keys := l.checkConditionObjects(at, field, c)
	if !slices.Contains(runtimeHooks, at.runtimeHook) {
		return // it is refused anyway, and there may be any number of them
	}
	if _, err := condition.Compile(c.Conditions, keys); err != nil {
		l.addError(at.line(field, "conditions"), "condition", fmt.Sprintf("the expression of %s: %v", field, err),
			"see https://cel.dev; variables are the keys of objects")
	}
}

// checkConditionObjects returns the keys that an expression can use.
func (l *stageChecker) checkConditionObjects(at stagePosition, field string, c Condition) (keys []string) {
	for i, o := range c.Objects {
		line := at.line(field, "objects", fmt.Sprint(i))
		for _, f := range [][2]string{{"key", o.Key}, {"apiVersion", o.APIVersion}, {"kind", o.Kind}, {"name", o.Name}} {
			if f[1] == "" {
				l.addError(line, "condition-object", fmt.Sprintf("an object of %s has no %s", field, f[0]), "add it")
			}
		}
		switch {
		case o.Key == "":
			continue
		case slices.Contains(keys, o.Key):
			l.addError(line, "condition-object", fmt.Sprintf("two objects of %s have the key %q", field, o.Key),
				"give each a key of its own")
			continue
		case !strings.Contains(c.Conditions, o.Key):
			l.addWarning(line, "condition-object",
				fmt.Sprintf("the expression does not use the object %q, but waits until it exists", o.Key), "use it, or remove it")
		}
		keys = append(keys, o.Key)
	}
	return keys
}
