package render

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	"helm.sh/helm/v4/pkg/chart/loader/archive"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	chartutil "helm.sh/helm/v4/pkg/chart/v2/util"
	"helm.sh/helm/v4/pkg/engine"
)

// renderJob renders one chart in this process, unlimited. Only the child calls it.
func renderJob(j Job, caps *common.Capabilities, t *task) (out Output) {
	out.Job = j.Name
	c := newRandomSource(t.Input.Record, j.Name)
	c.forbidden, c.keysLeft = t.Input.ForbidRandomness, &t.keysLeft
	defer func() {
		out.Expires = c.expires
		if out.Err == nil {
			out.NewKeys = c.newKeys
		}
	}()
	values := map[string]any{}
	if j.Template != nil {
		if values, out.MissingValue, out.Err = j.Template.render(c); out.Err != nil {
			return out
		}
	}
	out.Files, out.Err = renderChart(j, loader.MergeMaps(values, j.Values), caps, c)
	return out
}

func renderChart(j Job, values map[string]any, caps *common.Capabilities, c *randomSource) ([]File, *Error) {
	ch, err := loadChart(j.Chart, caps)
	if err != nil {
		return nil, err
	}
	if err := chartutil.ProcessDependencies(ch, values); err != nil {
		return nil, errorf("its dependencies cannot be taken in: %v", err)
	}
	// Helm's validation of schemas is skipped, as it would fetch what they refer to; checkSchemas validates.
	top, coalesceErr := util.ToRenderValuesWithSchemaValidation(ch, values, common.ReleaseOptions{
		Name: j.ReleaseName, Namespace: j.Namespace, Revision: 1, IsInstall: true,
	}, caps, true)
	if coalesceErr != nil {
		return nil, errorf("its values do not fit together: %v", coalesceErr)
	}
	if err := checkSchemas(ch, top["Values"]); err != nil {
		return nil, err
	}
	return executeTemplates(ch, top, c)
}

// loadChart reads a chart, which must have all its dependencies in it.
func loadChart(files map[string][]byte, caps *common.Capabilities) (*chart.Chart, *Error) {
	list := make([]*archive.BufferedFile, 0, len(files))
	for _, name := range slices.Sorted(maps.Keys(files)) {
		list = append(list, &archive.BufferedFile{Name: name, Data: files[name]})
	}
	ch, err := loader.LoadFiles(list)
	if err != nil {
		return nil, errorf("the chart cannot be loaded: %v", err)
	}
	if ch.Metadata.Type == "library" {
		return nil, &Error{
			Path: chartFile, Reason: "a library chart renders to nothing; an add-on must be an application chart",
		}
	}
	if k := ch.Metadata.KubeVersion; k != "" && !chartutil.IsCompatibleRange(k, caps.KubeVersion.String()) {
		return nil, &Error{
			Path:   chartFile,
			Reason: truncateReason(fmt.Sprintf("the chart is for Kubernetes %s, and this is %s", k, caps.KubeVersion.Version)),
		}
	}
	sortDependencies(ch)
	return ch, checkDependencies(ch, "")
}

const chartFile = "Chart.yaml"

// checkDependencies says which dependency of a chart, or of one of its dependencies, is missing.
func checkDependencies(ch *chart.Chart, dir string) *Error {
	have := map[string]bool{}
	for _, d := range ch.Dependencies() {
		have[d.Name()] = true
	}
	for _, d := range ch.Metadata.Dependencies {
		if d != nil && !have[d.Name] {
			return &Error{
				Path:   dir + chartFile,
				Reason: truncateReason(fmt.Sprintf("the chart needs the chart %s %s of %q, which is not in its charts directory; polder stack lock and build put it there", d.Name, d.Version, d.Repository)),
			}
		}
	}
	for _, d := range ch.Dependencies() {
		if err := checkDependencies(d, dir+"charts/"+d.Name()+"/"); err != nil {
			return err
		}
	}
	return nil
}

// executeTemplates runs the templates. NOTES.txt is run too, as it may refuse values, but is left out of the result.
func executeTemplates(ch *chart.Chart, top common.Values, c *randomSource) ([]File, *Error) {
	files := crdFiles(ch)
	addEnterCalls(ch)
	out, err := engine.Engine{CustomTemplateFuncs: hermeticFuncs(c)}.Render(ch, top)
	if err != nil {
		return nil, templateError(err, ch.Name())
	}
	for _, name := range slices.Sorted(maps.Keys(out)) {
		if text := out[name]; strings.TrimSpace(text) != "" && path.Base(name) != "NOTES.txt" {
			files = append(files, File{Path: strings.TrimPrefix(name, ch.Name()+"/"), Text: text})
		}
	}
	return files, nil
}

// crdFiles gives the files of the directories crds, which are no templates.
func crdFiles(ch *chart.Chart) []File {
	var files []File
	for _, d := range ch.CRDObjects() {
		name := strings.TrimPrefix(d.Filename, ch.Name()+"/")
		files = append(files, File{Path: name, Text: string(d.File.Data)})
	}
	return files
}

// addEnterCalls makes every template call enterTemplate first. It changes copies: aliases of one chart share its
// files.
func addEnterCalls(ch *chart.Chart) {
	marked := make([]*common.File, 0, len(ch.Templates))
	for _, t := range ch.Templates {
		if !strings.HasPrefix(path.Base(t.Name), "_") {
			t = &common.File{Name: t.Name, Data: append([]byte("{{"+enterFunction+" .}}"), t.Data...)}
		}
		marked = append(marked, t)
	}
	ch.Templates = marked
	for _, d := range ch.Dependencies() {
		addEnterCalls(d)
	}
}

// sortDependencies puts dependencies in a fixed order: Helm has them in that of a map.
func sortDependencies(ch *chart.Chart) {
	deps := slices.Clone(ch.Dependencies())
	slices.SortStableFunc(deps, func(a, b *chart.Chart) int {
		return cmp.Or(strings.Compare(a.Name(), b.Name()), strings.Compare(b.Metadata.Version, a.Metadata.Version))
	})
	ch.SetDependencies(deps...)
	for _, d := range deps {
		sortDependencies(d)
	}
}

func helmCapabilities(c Capabilities) (*common.Capabilities, error) {
	caps := common.DefaultCapabilities.Copy()
	caps.HelmVersion.GoVersion = "" // rendering must not depend on what this program was built with
	if c.KubeVersion == "" {
		return nil, errors.New("the version of Kubernetes is missing")
	}
	k, err := common.ParseKubeVersion(c.KubeVersion)
	if err != nil {
		return nil, fmt.Errorf("version %q of Kubernetes: %w", c.KubeVersion, err)
	}
	caps.KubeVersion = *k
	if len(c.APIVersions) > 0 {
		caps.APIVersions = c.APIVersions
	}
	return caps, nil
}
