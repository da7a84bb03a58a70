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

// checkDraft checks what the source would be released as.
func (l *linter) checkDraft(ctx context.Context, incomplete map[string]bool) error {
	if _, ok := l.files[chartYAML(classDir)]; !ok || incomplete[classDir] {
		return nil
	}
	source := l.source.WithPatch() // checkConfig reports a version without one
	v, err := source.CustomVersions(version.Version{Word: "lint", ID: "0"}, version.Version{}, version.Version{})
	if err != nil {
		return err
	}
	return l.checkRendered(ctx, source.Draft(v, l.opts.VendoredCharts), incomplete)
}

// checkRendered checks what the charts render to with their defaults, for a sample cluster.
func (l *linter) checkRendered(ctx context.Context, r *stack.Release, incomplete map[string]bool) error {
	c, found, err := r.RenderClass(ctx, l.opts.Renderer, "default")
	if err != nil {
		return err
	}
	l.addRenderFindings(found)
	if c != nil {
		l.checkClass(ctx, c)
		if err := l.addObjectFindings(checkClassObjects(r, c)); err != nil {
			return err
		}
	} else { // what is wrong is reported; add-ons are rendered all the same
		c = &stack.Class{Class: &class.Class{Version: class.V1Beta2}}
	}
	data, err := r.SampleClusterData(c)
	if err != nil {
		return err
	}
	return l.checkAddons(ctx, r, data, incomplete)
}

// addRenderFindings adds findings of rendering, which know no line.
func (l *linter) addRenderFindings(found finding.List) {
	for _, f := range found {
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
	in := stack.AddonInput{Cluster: data, Record: render.FixedRecord()}
	stages, found, err := r.RenderAddons(ctx, l.opts.Renderer, in)
	if err != nil {
		return err
	}
	l.addRenderFindings(found)
	return l.addObjectFindings(checkAddonObjects(r, stages))
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
