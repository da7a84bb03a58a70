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

// chart is what lint looks at of Chart.yaml.
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

// charts looks at every chart's own description.
func (l *linter) charts() {
	for _, dir := range l.source.Charts() {
		file := chartYAML(dir)
		if l.stagesMissing(dir) {
			l.error(configFile, 0, "stages", "the file is missing, and there are charts of add-ons below "+addonDir, "add it, with a stage for each")
			continue
		}
		if _, ok := l.files[file]; !ok {
			l.error(file, 0, "chart-missing", "the chart is missing", "polder stack init shows how a stack looks")
			continue
		}
		d, ok := l.yaml("chart", file)
		if !ok {
			continue
		}
		var c chart
		if err := d.Decode(&c); err != nil {
			l.document("chart", err)
			continue
		}
		l.chart(dir, d, c)
	}
	if l.source.Staged() {
		l.mixed()
	}
}

// stagesMissing says that there are charts of stages, and nothing that names them.
func (l *linter) stagesMissing(dir string) bool {
	if dir != addonDir || l.source.Staged() {
		return false
	}
	for name := range l.files.Sub(addonDir) {
		if path.Base(name) == "Chart.yaml" && strings.Count(name, "/") == 1 {
			return true
		}
	}
	return false
}

// mixed finds files of the other convention, which nobody reads.
func (l *linter) mixed() {
	for _, file := range []string{"cluster-addon-values.yaml", chartYAML(addonDir)} {
		if _, ok := l.files[file]; ok {
			l.warn(file, 0, "convention", "with clusteraddon.yaml this file has no effect", "move what it says into the charts below cluster-addon, each with its overwrite.yaml, or remove clusteraddon.yaml")
		}
	}
}

var chartName = regexp.MustCompile(`^[A-Za-z0-9._-]+$`)

func (l *linter) chart(dir string, d document.Document, c chart) {
	at := func(key, rule, what, fix string) { l.error(d.File(), d.Line(key), rule, what, fix) }
	if want := l.wantedName(dir); want != "" && c.Name != want && c.Name != l.source.WithoutKubernetes(want) {
		at("name", "chart-name", fmt.Sprintf("the chart is named %q, and its archive is looked for as %s", c.Name, want), l.nameAdvice(want))
	} else if !chartName.MatchString(c.Name) {
		at("name", "chart-name", fmt.Sprintf("%q is no name of a chart", c.Name), "use letters, digits and dashes")
	}
	if c.APIVersion != "v1" && c.APIVersion != "v2" {
		at("apiVersion", "chart", fmt.Sprintf("apiVersion %q is not known", c.APIVersion), "write apiVersion: v2")
	}
	if _, err := semver.NewVersion(c.Version); err != nil && !strings.Contains(c.Version, "<< .") {
		at("version", "chart", fmt.Sprintf("version %q is none", c.Version), "write for example version: 0.1.0; a build sets that of the class")
	}
	if c.Type != "" && c.Type != "application" {
		at("type", "chart", fmt.Sprintf("a chart of type %q renders to nothing", c.Type), "write type: application")
	}
	l.kubeVersion(d, c)
}

// nameAdvice knows that a source for several minors has one name only.
func (l *linter) nameAdvice(want string) string {
	if len(l.source.Versions) > 1 {
		return fmt.Sprintf("name it %s, since the stack is for several minors of Kubernetes", l.source.WithoutKubernetes(want))
	}
	return fmt.Sprintf("name it %s, or %s", want, l.source.WithoutKubernetes(want))
}

// wantedName is empty if a chart may have any name.
func (l *linter) wantedName(dir string) string {
	switch {
	case l.broken:
		return ""
	case dir == classDir:
		return l.source.ClassChart()
	case dir == addonDir:
		return l.source.AddonChart()
	}
	return ""
}

func (l *linter) kubeVersion(d document.Document, c chart) {
	k := l.source.Kubernetes
	if c.KubeVersion != "" && k.HasPatch() {
		v, _ := semver.NewVersion(k.String()) // it has the form
		if r, err := semver.NewConstraint(c.KubeVersion); err != nil {
			l.error(d.File(), d.Line("kubeVersion"), "kubernetes-disagree", fmt.Sprintf("kubeVersion %q is no range of versions", c.KubeVersion), "write for example >=1.35.0-0")
		} else if v != nil && !r.Check(v) {
			l.error(d.File(), d.Line("kubeVersion"), "kubernetes-disagree", fmt.Sprintf("the chart is for Kubernetes %s, and %s says %s", c.KubeVersion, l.source.ConfigFile, k), "make both fit")
		}
	}
	if a, err := semver.NewVersion(c.AppVersion); err == nil && strings.HasSuffix(path.Dir(d.File()), classDir) && k.Minor > 0 &&
		a.Major() == uint64(k.Major) && a.Minor() != uint64(k.Minor) { //nolint:gosec // versions are not negative
		l.warn(d.File(), d.Line("appVersion"), "kubernetes-disagree", fmt.Sprintf("appVersion is %s, and %s says Kubernetes %s", c.AppVersion, l.source.ConfigFile, k), "make both say the same, or remove appVersion")
	}
}

// dependencies finds charts whose dependencies are not at hand, which cannot be rendered.
func (l *linter) dependencies() map[string]bool {
	incomplete := map[string]bool{}
	lock, err := dependency.ParseLock(l.files)
	if err != nil {
		l.document("lock", err)
	}
	for _, dir := range l.source.Charts() {
		needs, err := dependency.Needs(l.files, dir)
		if err != nil {
			continue // said by charts
		}
		for _, n := range needs {
			if dependency.Vendored(l.files, dir, n) {
				continue
			}
			if len(l.opts.Vendored[dir]) == 0 {
				incomplete[dir] = true
			}
			switch locked, ok := lock.Find(dir, n); {
			case n.Repository == "":
				l.error(chartYAML(dir), n.Line, "dependency", fmt.Sprintf("the chart needs %s %s, which is not in %s/charts and has no repository", n.Name, n.Version, dir), "add the chart there, or its repository here")
			case !ok:
				l.error(chartYAML(dir), n.Line, "dependency", fmt.Sprintf("the chart needs %s %s of %s, which is neither in %s/charts nor locked", n.Name, n.Version, n.Repository, dir), "run polder stack lock")
			case incomplete[dir]:
				l.warn(chartYAML(dir), n.Line, "dependency", fmt.Sprintf("%s %s is locked and not at hand, so this chart was not rendered", n.Name, locked.Version), "run polder stack lock, which fetches it")
			}
		}
	}
	return incomplete
}
