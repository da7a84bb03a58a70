package lint

import (
	"fmt"
	"path"
	"strings"

	"github.com/polder-kaas/polder/stack"
	"github.com/polder-kaas/polder/stack/dependency"
)

const addonConfigFile = "clusteraddon.yaml"

// checkStages checks clusteraddon.yaml, and that every chart of an add-on is used by it.
func (l *linter) checkStages() {
	b, ok := l.files[addonConfigFile]
	if !ok {
		return
	}
	found, err := stack.CheckStages(b, func(name string) bool { return l.files[chartYAML(addonDir+"/"+name)] != nil })
	if err != nil {
		l.addDocumentError("stages", err)
		return
	}
	l.findings = append(l.findings, found...)
	config, _ := stack.ParseAddonConfig(b) // it was parsed above
	used := map[string]bool{}
	for _, stages := range config.AddonStages {
		for _, s := range stages {
			used[s.Name] = true
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
