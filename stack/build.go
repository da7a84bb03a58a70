package stack

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path"
	"strings"

	"helm.sh/helm/v4/pkg/ignore"

	"github.com/polder-kaas/polder/stack/archive"
	"github.com/polder-kaas/polder/stack/document"
	"github.com/polder-kaas/polder/stack/version"
)

// VendoredCharts are the dependencies of charts: by the directory of the chart in the source, then by
// their path in it.
type VendoredCharts map[string]archive.Tree

// Build makes the release of a source. The same source, versions and dependencies give the same
// bytes, wherever and whenever.
func (s *Source) Build(v Versions, deps VendoredCharts) (*Release, error) {
	name := version.ReleaseName{ReleaseLine: s.ReleaseLine, Version: v.ClusterStack}
	if n := len(name.Tag()); n > version.MaxName {
		return nil, fmt.Errorf("the name %s of the release has %d characters; objects take at most %d", name, n,
			version.MaxName)
	}
	if class := name.Class(); class != strings.ToLower(class) {
		return nil, fmt.Errorf("%s cannot be the name of an object, because that has no capitals; choose another version",
			class)
	}
	for _, part := range []version.Version{v.ClusterStack, v.Components.ClusterAddon} {
		if !part.IsStable() && (!version.IsValidInChartVersion(part.ID) || !version.IsValidInChartVersion(part.Word)) {
			return nil, fmt.Errorf(
				"version %s is none that charts can have: a part of it is a number with a zero in front, or has an underscore; choose another", part,
			)
		}
	}
	// Both are built before an error is returned, so that authors see all that is wrong at once.
	class, classErr := s.buildClass(v, deps)
	addons, addonErr := s.buildAddons(v, deps)
	if err := errors.Join(classErr, addonErr); err != nil {
		return nil, err
	}
	r := &Release{
		Name: name, Metadata: Metadata{Versions: v}, Files: archive.Tree{}, classArchive: class, addonArchive: addons,
	}
	for _, file := range []string{addonConfigFile, addonValuesFile} {
		if b, ok := s.Files[file]; ok {
			r.Files[file] = substitute(b, v)
		}
	}
	if b, ok := s.nodeImages(); ok {
		r.Files[nodeImagesFile] = b
	}
	hashes, err := json.MarshalIndent(HashSource(s.Files), "", "  ")
	if err != nil {
		return nil, err
	}
	r.Files[hashesFile] = append(hashes, '\n')
	if r.Files, err = r.Pack(); err != nil {
		return nil, err
	}
	return Load(name.Tag(), r.Files) // what cannot be loaded must not be released
}

// HasStages says whether the source is of the convention with stages; the other has one chart for all add-ons.
func (s *Source) HasStages() bool {
	_, ok := s.Files[addonConfigFile]
	return ok
}

// ChartDirs are the directories of the source with a chart in each.
func (s *Source) ChartDirs() []string {
	out := []string{classDir}
	if !s.HasStages() {
		return append(out, addonDir)
	}
	addons := s.Files.Sub(addonDir)
	for _, dir := range addons.Dirs() {
		if _, ok := addons[path.Join(dir, chartFile)]; ok {
			out = append(out, path.Join(addonDir, dir))
		}
	}
	return out
}

func (s *Source) buildClass(v Versions, deps VendoredCharts) (archive.Tree, error) {
	return s.packChart(classDir, s.ClassChart(), v.ClusterStack, v, deps)
}

func (s *Source) buildAddons(v Versions, deps VendoredCharts) (archive.Tree, error) {
	if !s.HasStages() {
		return s.packChart(addonDir, s.AddonChart(), v.Components.ClusterAddon, v, deps)
	}
	out := archive.Tree{}
	for name, b := range s.Files.Sub(addonDir) {
		out[name] = substitute(b, v)
	}
	for _, dir := range s.ChartDirs()[1:] {
		name := strings.TrimPrefix(dir, addonDir+"/")
		keep, err := removeIgnored(dir, s.Files.Sub(dir))
		if err != nil {
			return nil, err
		}
		// Files beside the charts stay in the bundle; inside a chart, its .helmignore decides.
		for file := range s.Files.Sub(dir) {
			if _, ok := keep[file]; !ok {
				delete(out, path.Join(name, file))
			}
		}
		addTree(out, name, deps[dir])
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("%s: there is no chart in %s", addonConfigFile, addonDir)
	}
	return out, nil
}

func addTree(to archive.Tree, dir string, t archive.Tree) {
	for name, b := range t {
		to[path.Join(dir, name)] = b
	}
}

// packChart gives a chart as Helm packs it: in a directory of the chart's name, without what the chart
// itself says to ignore.
func (s *Source) packChart(dir, want string, chart version.Version, v Versions,
	deps VendoredCharts) (archive.Tree, error) {
	t, err := removeIgnored(dir, s.Files.Sub(dir))
	if err != nil {
		return nil, err
	}
	file := path.Join(dir, chartFile)
	b, ok := t[chartFile]
	if !ok {
		return nil, fmt.Errorf("%s is missing", file)
	}
	b = substitute(b, v)
	d, err := document.ParseOne(file, b)
	if err != nil {
		return nil, err
	}
	var c struct{ Name, Version string }
	if err := d.Decode(&c); err != nil {
		return nil, err
	}
	if !s.matchesChartName(c.Name, want) {
		return nil, &document.Error{
			File: file, Line: d.Line("name"),
			Reason: fmt.Sprintf("the chart's name must be %s, not %q: its archive is looked for by that", want, c.Name),
		}
	}
	b = setChartField(b, d, "name", want)
	out := archive.Tree{}
	for name, b := range t {
		out[path.Join(want, name)] = substitute(b, v)
	}
	// The lines that d knows are still right: setting the name moved none.
	b = setChartField(b, d, "version", chart.String())
	if again, err := document.ParseOne(file, b); err != nil || again.Decode(&c) != nil || c.Name != want ||
		c.Version != chart.String() {
		return nil, &document.Error{
			File: file, Line: 1, Reason: "name and version must each be a line of their own, so that a build can set them",
		}
	}
	out[path.Join(want, chartFile)] = b
	addTree(out, want, deps[dir])
	return out, nil
}

// matchesChartName says whether the name of a chart is the wanted one, or that without the version of
// Kubernetes: a source that serves several minors cannot name one of them.
func (s *Source) matchesChartName(name, want string) bool {
	return name == want || name == s.ChartNameWithoutKubernetes(want)
}

// ChartNameWithoutKubernetes is the name of a chart as a source for several minors has it.
func (s *Source) ChartNameWithoutKubernetes(chart string) string {
	return strings.Replace(chart, s.String(), s.Provider+"-"+s.Name, 1)
}

// setChartField sets a field of a Chart.yaml by changing one line or adding one: comments and order stay the
// author's.
func setChartField(b []byte, d document.Document, key, value string) []byte {
	line := key + ": " + value
	lines := strings.Split(string(b), "\n")
	n := d.Line(key) - 1
	if m, _ := d.Value().(map[string]any); m[key] == nil || n >= len(lines) || !strings.HasPrefix(lines[n], key+":") {
		return []byte(strings.TrimRight(string(b), "\n") + "\n" + line + "\n")
	}
	lines[n] = line
	return []byte(strings.Join(lines, "\n"))
}

// removeIgnored leaves out what .helmignore names, and what Helm ignores in every chart.
func removeIgnored(dir string, t archive.Tree) (archive.Tree, error) {
	const file = ".helmignore"
	rules, err := ignore.Parse(bytes.NewReader(t[file])) // there need not be one
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path.Join(dir, file), err)
	}
	rules.AddDefaults()
	out := maps.Clone(t)
	for name := range t {
		for p := name; p != "."; p = path.Dir(p) { // a directory takes its files along
			if rules.Ignore(p, fileInfo{name: path.Base(p), dir: p != name}) {
				delete(out, name)
			}
		}
	}
	return out, nil
}

// placeholders are what a build fills in.
func placeholders(v Versions) map[string]string {
	image := v.ClusterStack
	if v.Components.NodeImage != nil {
		image = *v.Components.NodeImage
	}
	return map[string]string{
		"<< .ClusterClassVersion >>": v.ClusterStack.String(),
		"<< .ClusterAddonVersion >>": v.Components.ClusterAddon.String(),
		"<< .NodeImageVersion >>":    image.String(),
	}
}

// substitute fills in versions. Anything else between << and >> is text, such as the beginning of a
// here-document of a shell.
func substitute(b []byte, v Versions) []byte {
	for from, to := range placeholders(v) {
		b = bytes.ReplaceAll(b, []byte(from), []byte(to))
	}
	return b
}

// nodeImages finds the description of the node images in any of the places where tools expect it.
func (s *Source) nodeImages() ([]byte, bool) {
	for _, file := range []string{nodeImagesFile, "node-images/config.yaml", "node-image/config.yaml"} {
		if b, ok := s.Files[file]; ok {
			return b, true
		}
	}
	return nil, false
}

// Draft gives as much as there is of the release a source would make: for linting sources that are not
// valid yet. It cannot be packed.
func (s *Source) Draft(v Versions, deps VendoredCharts) *Release {
	r := &Release{
		Name:     version.ReleaseName{ReleaseLine: s.ReleaseLine, Version: v.ClusterStack},
		Metadata: Metadata{Versions: v},
		Class:    s.draftChart(classDir, v, deps),
		Addons:   Addons{Charts: map[string]archive.Tree{}, Values: map[string][]byte{}},
	}
	if b, ok := r.Class[chartFile]; ok {
		// Templates of a class take its name from the version of their chart.
		if d, err := document.ParseOne(chartFile, b); err == nil {
			r.Class[chartFile] = setChartField(b, d, "version", v.ClusterStack.String())
		}
	}
	if b, ok := s.Files[addonConfigFile]; ok {
		config, _ := ParseAddonConfig(substitute(b, v)) // the linter reports what is wrong with it
		r.Addons.Config = &config
	} else if b, ok := s.Files[addonValuesFile]; ok {
		r.Addons.Values[""] = substitute(b, v)
	}
	for _, dir := range s.ChartDirs()[1:] {
		name := strings.TrimPrefix(strings.TrimPrefix(dir, addonDir), "/")
		r.Addons.Charts[name] = s.draftChart(dir, v, deps)
		if b, ok := r.Addons.Charts[name][overwriteFile]; ok && s.HasStages() {
			r.Addons.Values[name] = b
		}
	}
	return r
}

func (s *Source) draftChart(dir string, v Versions, deps VendoredCharts) archive.Tree {
	files := s.Files.Sub(dir)
	// A .helmignore that does not parse makes Build fail; a draft keeps all files instead.
	if kept, err := removeIgnored(dir, files); err == nil {
		files = kept
	}
	t := archive.Tree{}
	for name, b := range files {
		t[name] = substitute(b, v)
	}
	addTree(t, "", deps[dir])
	return t
}
