package stackauthor

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"github.com/polder-kaas/polder/internal/cli/output"
	"github.com/polder-kaas/polder/internal/program/cmdline"
	"github.com/polder-kaas/polder/internal/program/exit"
	"github.com/polder-kaas/polder/stack"
	"github.com/polder-kaas/polder/stack/finding"
	"github.com/polder-kaas/polder/stack/lint"
	"github.com/polder-kaas/polder/stack/render"
)

// partClass is the part of a release that is no stage.
const partClass = "class"

// renderOptions are the flags of render.
type renderOptions struct {
	releaseFlags
	values      string
	runtimeHook string
	onlyPart    string
	namespace   string
}

// newRenderCommand is polder stack render.
func newRenderCommand() *cobra.Command {
	var r renderOptions
	c := &cobra.Command{
		Use:        "render DIR|REF",
		Short:      "Show the objects a stack renders to",
		SuggestFor: []string{"template", "show"},
		Long: `render shows the objects of the class and, stage by stage, those of the add-ons. It takes the source of a
stack, the directory of a release, or a published release (oci://host/repository:tag).

Add-ons are rendered for a cluster: a sample with all defaults or, with --values, for the Cluster in that
file; the file may have the cluster's control plane and infrastructure too, as further documents. Values of
variables in it that Cluster API would refuse are told. Where a chart asks chance or the clock, the answer is
always the same here, so these are no passwords to use.

The exit code is 0 only if everything rendered and is sound. What is wrong goes to standard error.`,
		Example: `  polder stack render . --only class | polder kubectl apply -f -
  polder stack render oci://registry.example.org/stacks:openstack-scs-1-36-v3 --only network`,
		Args: cmdline.Args(1, 1, "a directory or a reference"),
		RunE: func(c *cobra.Command, args []string) error {
			return r.run(c.Context(), c.InOrStdin(), c.OutOrStdout(), c.ErrOrStderr(), args[0])
		},
	}
	r.addFlags(c)
	c.Flags().StringVar(&r.values, "values", "", "`file` with the Cluster to render for")
	c.Flags().StringVar(&r.runtimeHook, "hook", stack.AfterControlPlaneInitialized, "show the stages of this `hook`")
	c.Flags().StringVar(&r.onlyPart, "only", "", "show only the `part`: class, addons, or the name of a stage")
	c.Flags().StringVar(&r.namespace, "namespace", "default",
		"`namespace` that charts of the class see; objects have it only if the chart says so")
	return c
}

// run prints what could be rendered also where something is wrong with it: the text shows why.
func (r *renderOptions) run(ctx context.Context, stdin io.Reader, out, complaints io.Writer, arg string) error {
	if r.runtimeHook != stack.AfterControlPlaneInitialized && r.runtimeHook != stack.BeforeClusterUpgrade {
		return exit.Errorf(exit.Usage, "hook %q is not known; use %s or %s", r.runtimeHook,
			stack.AfterControlPlaneInitialized, stack.BeforeClusterUpgrade)
	}
	release, err := r.loadRelease(ctx, stdin, arg)
	if err != nil {
		return err
	}
	rendered, err := renderRelease(ctx, release, r.namespace, r.values, r.onlyPart == partClass)
	if err != nil {
		return err
	}
	for _, f := range rendered.found.Sorted() {
		fmt.Fprintln(complaints, f)
	}
	shown, err := r.printParts(out, rendered)
	if err != nil {
		return err
	}
	// The findings were printed above; only the exit code is left to say.
	if rendered.found.Err() != nil {
		return output.ErrSilent
	}
	if !shown {
		return exit.Errorf(exit.Usage, "%s has no part %q; use class, addons, or the name of a stage", release.Name,
			r.onlyPart)
	}
	return nil
}

// rendering is what a release renders to, and what is wrong with it.
type rendering struct {
	class  *stack.Class // nil if it does not render
	stages []stack.RenderedStage
	found  finding.List
}

// renderRelease renders the class, then the add-ons for a cluster of it, unless only the class is asked for: then what
// is wrong with add-ons does not matter.
func renderRelease(ctx context.Context, r *stack.Release, namespace, values string, onlyClass bool) (rendering, error) {
	rd := new(render.Renderer)
	var out rendering
	var err error
	out.class, out.found, err = r.RenderClass(ctx, rd, namespace)
	if err != nil {
		return out, err
	}
	if out.class == nil {
		if !onlyClass {
			out.found = append(out.found, r.CheckStages()...)
		}
		return out, nil
	}
	out.found = append(out.found, lint.CheckVariables(ctx, r, out.class)...)
	data, wrong, err := readClusterData(ctx, r, out.class, values)
	if err != nil {
		return out, err
	}
	out.found = append(out.found, wrong...)
	if !onlyClass {
		stages, found, err := r.RenderAddons(ctx, rd, stack.AddonInput{Cluster: data, Record: render.FixedRecord()})
		if err != nil {
			return out, err
		}
		out.stages, out.found = stages, append(out.found, found...)
	}
	found, err := lint.CheckObjects(r, out.class, out.stages)
	out.found = append(out.found, found...)
	return out, err
}

// readClusterData reads the Cluster to render for; where none is given, it makes one up, so that every stack can be
// rendered at once. Variables that the class refuses are findings.
func readClusterData(
	ctx context.Context, r *stack.Release, class *stack.Class, file string,
) (stack.ClusterData, finding.List, error) {
	if file == "" {
		d, err := r.SampleClusterData(class)
		return d, nil, err
	}
	b, err := os.ReadFile(file)
	if err != nil {
		return stack.ClusterData{}, nil, exit.With(exit.Usage, err)
	}
	d, err := stack.ParseClusterData(file, b)
	if err != nil {
		return d, nil, exit.With(exit.Usage, err)
	}
	wrong, err := class.CheckVariables(ctx, d)
	if err != nil {
		return d, nil, exit.With(exit.Usage, err)
	}
	var found finding.List
	for _, e := range wrong {
		found = append(found, finding.Finding{
			File: file, Line: findLine(b, "name: "+e.Variable), Severity: finding.Error, Rule: "variable", What: e.Error(),
		})
	}
	d, err = d.ConvertTo(class.Version)
	return d, found, err
}

// findLine gives the first line that has a word, as a hint; 0 if there is none.
func findLine(text []byte, word string) int {
	before, _, ok := bytes.Cut(text, []byte(word))
	if !ok {
		return 0
	}
	return 1 + bytes.Count(before, []byte("\n"))
}

// printParts writes what was asked for, and says whether there was any of it.
func (r *renderOptions) printParts(w io.Writer, rendered rendering) (bool, error) {
	shown := false
	if rendered.class != nil && (r.onlyPart == "" || r.onlyPart == partClass) {
		shown = true
		if err := printObjects(w, partClass, rendered.class.Objects); err != nil {
			return shown, err
		}
	}
	for _, s := range rendered.stages {
		name := s.Stage.Name
		if name == "" {
			name = "cluster-addon"
		}
		if s.RuntimeHook != r.runtimeHook || r.onlyPart != "" && r.onlyPart != "addons" && r.onlyPart != name {
			continue
		}
		shown = true
		if err := printObjects(w, fmt.Sprintf("%s, stage %s, %s", s.RuntimeHook, name, s.Stage.Action),
			s.Objects); err != nil {
			return shown, err
		}
	}
	return shown, nil
}

// printObjects names the file of the chart that an object comes from.
func printObjects(w io.Writer, title string, objects []render.Object) error {
	for _, o := range objects {
		b, err := yaml.Marshal(o.Value)
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintf(w, "---\n# %s: %s\n%s", title, o.Path, b); err != nil {
			return err
		}
	}
	return nil
}
