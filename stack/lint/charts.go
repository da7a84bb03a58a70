package lint

import (
	"fmt"
	"path"
	"regexp"
	"strings"

	"github.com/Masterminds/semver/v3"

	"github.com/polder-kaas/polder/stack/dependency"
	"github.com/polder-kaas/polder/stack/document"
)

// chart is what is checked of Chart.yaml.
type chart struct {
	APIVersion  string `json:"apiVersion"`
	Name        string `json:"name"`
	Version     string `json:"version"`
	AppVersion  string `json:"appVersion"`
	KubeVersion string `json:"kubeVersion"`
	Type        string `json:"type"`
}

const (
	classDir = "cluster-class"
	addonDir = "cluster-addon"
)

// checkCharts checks Chart.yaml of every chart.
func (l *linter) checkCharts() {
	for _, dir := range l.source.ChartDirs() {
		file := chartYAML(dir)
		if l.isMissingStages(dir) {
			l.addError(addonConfigFile, 0, "stages", "the file is missing, and there are charts of add-ons below "+addonDir,
				"add it, with a stage for each")
			continue
		}
		if _, ok := l.files[file]; !ok {
			l.addError(file, 0, "chart-missing", "the chart is missing", "polder stack init shows how a stack looks")
			continue
		}
		d, ok := l.readDocument("chart", file)
		if !ok {
			continue
		}
		var c chart
		if err := d.Decode(&c); err != nil {
			l.addDocumentError("chart", err)
			continue
		}
		l.checkChart(dir, d, c)
	}
	if l.source.HasStages() {
		l.checkMixedConventions()
	}
}

// isMissingStages says whether there are charts of stages, but no file that lists the stages.
func (l *linter) isMissingStages(dir string) bool {
	if dir != addonDir || l.source.HasStages() {
		return false
	}
	for name := range l.files.Sub(addonDir) {
		if path.Base(name) == "Chart.yaml" && strings.Count(name, "/") == 1 {
			return true
		}
	}
	return false
}

// checkMixedConventions finds files of the other convention, which nobody reads.
func (l *linter) checkMixedConventions() {
	for _, file := range []string{"cluster-addon-values.yaml", chartYAML(addonDir)} {
		if _, ok := l.files[file]; ok {
			l.addWarning(file, 0, "convention", "with clusteraddon.yaml this file has no effect",
				"move what it says into the charts below cluster-addon, each with its overwrite.yaml, or remove clusteraddon.yaml")
		}
	}
}

var chartNamePattern = regexp.MustCompile(`^[A-Za-z0-9._-]+$`)

func (l *linter) checkChart(dir string, d document.Document, c chart) {
	at := func(key, rule, what, fix string) { l.addError(d.File(), d.Line(key), rule, what, fix) }
	if want := l.requiredChartName(dir); want != "" && c.Name != want &&
		c.Name != l.source.ChartNameWithoutKubernetes(want) {
		at("name", "chart-name", fmt.Sprintf("the chart is named %q, and its archive is looked for as %s", c.Name, want),
			l.suggestChartName(want))
	} else if !chartNamePattern.MatchString(c.Name) {
		at("name", "chart-name", fmt.Sprintf("%q is no name of a chart", c.Name), "use letters, digits and dashes")
	}
	if c.APIVersion != "v1" && c.APIVersion != "v2" {
		at("apiVersion", "chart", fmt.Sprintf("apiVersion %q is not known", c.APIVersion), "write apiVersion: v2")
	}
	if _, err := semver.NewVersion(c.Version); err != nil && !strings.Contains(c.Version, "<< .") {
		at("version", "chart", fmt.Sprintf("version %q is none", c.Version),
			"write for example version: 0.1.0; a build sets that of the class")
	}
	if c.Type != "" && c.Type != "application" {
		at("type", "chart", fmt.Sprintf("a chart of type %q renders to nothing", c.Type), "write type: application")
	}
	l.checkKubeVersion(d, c)
}

// suggestChartName says what to name a chart. A source for several minors has one name only, without a minor.
func (l *linter) suggestChartName(want string) string {
	if len(l.source.Versions) > 1 {
		return fmt.Sprintf("name it %s, since the stack is for several minors of Kubernetes",
			l.source.ChartNameWithoutKubernetes(want))
	}
	return fmt.Sprintf("name it %s, or %s", want, l.source.ChartNameWithoutKubernetes(want))
}

// requiredChartName gives the name that a chart must have; it is empty if the chart may have any name.
func (l *linter) requiredChartName(dir string) string {
	switch {
	case l.configInvalid:
		return ""
	case dir == classDir:
		return l.source.ClassChart()
	case dir == addonDir:
		return l.source.AddonChart()
	}
	return ""
}

func (l *linter) checkKubeVersion(d document.Document, c chart) {
	k := l.source.Kubernetes
	if c.KubeVersion != "" && k.HasPatch() {
		v, _ := semver.NewVersion(k.String()) // an exact version always parses
		if r, err := semver.NewConstraint(c.KubeVersion); err != nil {
			l.addError(d.File(), d.Line("kubeVersion"), "kubernetes-disagree",
				fmt.Sprintf("kubeVersion %q is no range of versions", c.KubeVersion), "write for example >=1.35.0-0")
		} else if v != nil && !r.Check(v) {
			l.addError(d.File(), d.Line("kubeVersion"), "kubernetes-disagree",
				fmt.Sprintf("the chart is for Kubernetes %s, and %s says %s", c.KubeVersion, l.source.ConfigFile, k),
				"make both fit")
		}
	}
	if a, err := semver.NewVersion(c.AppVersion); err == nil && strings.HasSuffix(path.Dir(d.File()), classDir) &&
		k.Minor > 0 &&
		a.Major() == uint64(k.Major) && a.Minor() != uint64(k.Minor) { //nolint:gosec // versions are not negative
		l.addWarning(d.File(), d.Line("appVersion"), "kubernetes-disagree",
			fmt.Sprintf("appVersion is %s, and %s says Kubernetes %s", c.AppVersion, l.source.ConfigFile, k),
			"make both say the same, or remove appVersion")
	}
}

// checkDependencies reports dependencies that are missing. It returns the directories of the charts that cannot be
// rendered, because a dependency is not at hand.
func (l *linter) checkDependencies() map[string]bool {
	incomplete := map[string]bool{}
	lock, err := dependency.ParseLock(l.files)
	if err != nil {
		l.addDocumentError("lock", err)
	}
	for _, dir := range l.source.ChartDirs() {
		needs, err := dependency.ListRequirements(l.files, dir)
		if err != nil {
			continue // checkCharts reports it
		}
		for _, n := range needs {
			if dependency.IsVendored(l.files, dir, n) {
				continue
			}
			if len(l.opts.VendoredCharts[dir]) == 0 {
				incomplete[dir] = true
			}
			switch locked, ok := lock.Find(dir, n); {
			case n.Repository == "":
				l.addError(chartYAML(dir), n.Line, "dependency",
					fmt.Sprintf("the chart needs %s %s, which is not in %s/charts and has no repository", n.Name, n.Version, dir),
					"add the chart there, or its repository here")
			case !ok:
				l.addError(chartYAML(dir), n.Line, "dependency",
					fmt.Sprintf("the chart needs %s %s of %s, which is neither in %s/charts nor locked", n.Name, n.Version,
						n.Repository, dir), "run polder stack lock")
			case incomplete[dir]:
				l.addWarning(chartYAML(dir), n.Line, "dependency",
					fmt.Sprintf("%s %s is locked and not at hand, so this chart was not rendered", n.Name, locked.Version),
					"run polder stack lock, which fetches it")
			}
		}
	}
	return incomplete
}
