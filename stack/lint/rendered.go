package lint

import (
	"context"
	"path"
	"strings"

	"github.com/polder-kaas/polder/stack"
	"github.com/polder-kaas/polder/stack/class"
	"github.com/polder-kaas/polder/stack/finding"
	"github.com/polder-kaas/polder/stack/render"
	"github.com/polder-kaas/polder/stack/version"
)

// checkRendered checks what the charts render to with their defaults, for a sample cluster.
func (l *linter) checkRendered(ctx context.Context, incomplete map[string]bool) error {
	if _, ok := l.files[chartYAML(classDir)]; !ok || incomplete[classDir] {
		return nil
	}
	// checkConfig reports a version of Kubernetes that is not exact, which is the only error here.
	v, err := l.source.CustomVersions(version.Version{Word: "lint", ID: "0"}, version.Version{}, version.Version{})
	if err != nil {
		return nil //nolint:nilerr // said by config: the version is not exact
	}
	r := l.source.Draft(v, l.opts.VendoredCharts)
	c, found, err := r.RenderClass(ctx, l.opts.Renderer, "default")
	if err != nil {
		return err
	}
	l.addRenderFindings(found)
	if c != nil {
		l.checkClass(ctx, c)
	} else { // what is wrong is reported; add-ons are rendered all the same
		c = &stack.Class{Class: &class.Class{Version: class.V1Beta2}}
	}
	data, err := r.SampleClusterData(c)
	if err != nil {
		return err
	}
	return l.checkAddons(ctx, r, data, incomplete)
}

// addRenderFindings adds findings of rendering that static checks have not reported already.
func (l *linter) addRenderFindings(found finding.List) {
	for _, f := range found {
		// checkStages reports it, with its line.
		if f.Rule == "stage-chart" {
			continue
		}
		if f.Line == 0 {
			f.Line = l.guessLine(f)
		}
		l.add(f)
	}
}

// guessLine guesses the line of the template that a finding about its result is about: where the template
// has one of the names in it.
func (l *linter) guessLine(f finding.Finding) int {
	for _, word := range strings.FieldsFunc(f.What, func(r rune) bool { return strings.ContainsRune(" ,:;\"'/", r) }) {
		if len(word) > 2 && word != "the" {
			if n := l.findLine(f.File, word); n > 0 {
				return n
			}
		}
	}
	return 0
}

func (l *linter) checkAddons(ctx context.Context, r *stack.Release, data stack.ClusterData,
	incomplete map[string]bool) error {
	if r.Addons.Config != nil {
		l.dropIncompleteStages(r, incomplete)
	} else if _, ok := r.Addons.Charts[""]["Chart.yaml"]; !ok || incomplete[addonDir] {
		return nil
	}
	_, found, err := r.RenderAddons(ctx, l.opts.Renderer, stack.AddonInput{Cluster: data, Record: render.FixedRecord()})
	if err != nil {
		return err
	}
	l.addRenderFindings(found)
	return nil
}

// dropIncompleteStages takes out stages whose charts cannot be rendered.
func (l *linter) dropIncompleteStages(r *stack.Release, incomplete map[string]bool) {
	for runtimeHook, stages := range r.Addons.Config.AddonStages {
		var keep []stack.Stage
		for _, s := range stages {
			if !incomplete[path.Join(addonDir, s.Name)] {
				keep = append(keep, s)
			}
		}
		r.Addons.Config.AddonStages[runtimeHook] = keep
	}
}
