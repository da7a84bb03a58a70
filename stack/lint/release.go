package lint

import (
	"context"
	"path"

	"github.com/polder-kaas/polder/stack"
	"github.com/polder-kaas/polder/stack/archive"
	"github.com/polder-kaas/polder/stack/finding"
	"github.com/polder-kaas/polder/stack/render"
)

// RunRelease lints a release that was built, here or by other tools: its stages, its class and what its charts render
// to. Names of files are those of its source. The error is about the computer, not about the release.
func RunRelease(ctx context.Context, r *stack.Release, o Options) (finding.List, error) {
	if o.Renderer == nil {
		o.Renderer = new(render.Renderer)
	}
	l := newReleaseLinter(r)
	l.opts = o
	if err := l.checkRendered(ctx, r, nil); err != nil {
		return nil, err
	}
	// RenderAddons has said it as well, unless the class does not render.
	l.findings = append(l.findings, r.CheckStages()...)
	return l.findings.Sorted(), nil
}

// CheckRelease returns the errors for which nobody should install or publish a release, whoever has built it: stages
// that would be skipped, applied though nobody said so or never be done, and parameters that no cluster could set. The
// class is what the release renders to.
func CheckRelease(ctx context.Context, r *stack.Release, c *stack.Class) finding.List {
	return append(CheckVariables(ctx, r, c), r.CheckStages().Errors()...)
}

// CheckVariables returns the errors in the variables of a release's class: schemas and CEL rules that Cluster API would
// refuse.
func CheckVariables(ctx context.Context, r *stack.Release, c *stack.Class) finding.List {
	l := newReleaseLinter(r)
	cl := &classLinter{linter: l, class: c, file: path.Join(classDir, c.Path)}
	cl.checkVariables(ctx)
	return l.findings.Errors().Sorted()
}

// newReleaseLinter gives a release the shape of its source.
func newReleaseLinter(r *stack.Release) *linter {
	files := archive.Tree{}
	addFiles(files, "", r.Files)
	addFiles(files, classDir, r.Class)
	for name, chart := range r.Addons.Charts {
		addFiles(files, path.Join(addonDir, name), chart)
	}
	line := r.Name.ReleaseLine
	line.Kubernetes = r.Metadata.KubernetesVersion()
	return &linter{files: files, source: &stack.Source{ReleaseLine: line, Files: files}}
}

func addFiles(to archive.Tree, dir string, files archive.Tree) {
	for name, b := range files {
		to[path.Join(dir, name)] = b
	}
}
