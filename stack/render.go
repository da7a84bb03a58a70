package stack

import (
	"cmp"
	"context"
	"fmt"
	"path"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/polder-kaas/polder/stack/class"
	"github.com/polder-kaas/polder/stack/finding"
	"github.com/polder-kaas/polder/stack/render"
)

// Helm's names for what add-ons are installed as; templates may rely on them.
const (
	addonRelease = "cluster-addon"
	// AddonNamespace is that of objects which name none.
	AddonNamespace = "kube-system"
)

// Class is what the class chart of a release renders to.
type Class struct {
	*class.Class
	Objects []render.Object
}

// RenderedStage is a stage of add-ons, with what it renders to.
type RenderedStage struct {
	RuntimeHook string // of Cluster API, on which the stage is run
	Stage       Stage
	Objects     []render.Object
	HelmHooks   []render.HelmHook // objects that Helm applies at certain moments only
	Expires     *time.Time        // when the first certificate that was made for it ends; nil if none was
	NewKeys     render.Keys       // to be stored in the record before the objects are applied; see render.Output
}

// AddonInput is what the add-ons of one cluster depend on.
type AddonInput struct {
	Cluster     ClusterData
	APIVersions []string // that the cluster serves; empty means Kubernetes' own
	Record      render.Record
}

// RenderClass renders the class and the templates it refers to, for a namespace. Findings with
// errors mean that the class cannot be used; the error is about the renderer.
func (r *Release) RenderClass(ctx context.Context, rd *render.Renderer,
	namespace string) (*Class, finding.List, error) {
	out, err := rd.Render(ctx, render.Input{
		Jobs: []render.Job{
			{Name: classDir, Chart: r.Class, ReleaseName: r.Name.ReleaseLine.String(), Namespace: namespace},
		},
		Capabilities:     render.Capabilities{KubeVersion: r.Metadata.Versions.Kubernetes},
		Record:           render.FixedRecord(),
		ForbidRandomness: true, // a class is the same for all clusters
	})
	if err != nil {
		return nil, nil, err
	}
	set, found := readOutput(classDir, out[0])
	if found.Err() != nil {
		return nil, found, nil
	}
	objects := set.Objects
	c, err := class.Find(objects)
	if err != nil {
		return nil, append(found, finding.Finding{File: path.Join(classDir, chartFile), Severity: finding.Error,
			Rule: "class", What: err.Error()}), nil
	}
	if c.Name() != r.Name.Class() {
		found = append(found, finding.Finding{File: path.Join(classDir, c.Path), Severity: finding.Error, Rule: "class-name",
			What: fmt.Sprintf("the ClusterClass is named %s, and clusters of this release look for %s", c.Name(),
				r.Name.Class()),
			Fix: "name it {{ .Release.Name }}-{{ .Chart.Version }}"})
	}
	// The class comes last: Cluster API looks for its templates as soon as it sees the class.
	slices.SortStableFunc(objects, func(a, b render.Object) int { return cmp.Compare(applyRank(a), applyRank(b)) })
	return &Class{Class: c, Objects: objects}, found, nil
}

func applyRank(o render.Object) int {
	if o.Group() == class.Group && o.Kind() == "ClusterClass" {
		return 1
	}
	return 0
}

// RenderAddons renders the add-ons of a cluster, stage by stage, in their order. A chart is rendered
// once, so stages of both runtime hooks share its objects: they must not be changed. The Cluster must be in
// the version that the class is written in (ClusterData.ConvertTo). Findings with errors mean that the add-ons must not
// be applied; an action or a hook that is not known is one.
func (r *Release) RenderAddons(ctx context.Context, rd *render.Renderer,
	in AddonInput) ([]RenderedStage, finding.List, error) {
	stages, found := r.allStages(), r.CheckStages()
	var jobs []render.Job
	index := map[string]int{}
	for _, s := range stages {
		if _, ok := index[s.Stage.Name]; !ok {
			index[s.Stage.Name] = len(jobs)
			jobs = append(jobs, r.addonJob(s.Stage.Name, in.Cluster))
		}
	}
	if len(jobs) == 0 {
		return nil, found, nil
	}
	out, err := rd.Render(ctx, render.Input{
		Jobs:         jobs,
		Capabilities: render.Capabilities{KubeVersion: r.Metadata.Versions.Kubernetes, APIVersions: in.APIVersions},
		Record:       in.Record,
	})
	if err != nil {
		return nil, nil, err
	}
	read, more := r.readOutputs(out)
	found = append(found, more...)
	for i, s := range stages {
		r := read[index[s.Stage.Name]]
		stages[i].Objects, stages[i].HelmHooks = r.Objects, r.HelmHooks
		stages[i].Expires, stages[i].NewKeys = r.Expires, r.NewKeys
	}
	return stages, found, nil
}

// readOutputs parses all outputs, as many in parallel as there are CPUs: most of the time of a rendering goes
// into it.
func (r *Release) readOutputs(out []render.Output) ([]RenderedStage, finding.List) {
	read, found := make([]RenderedStage, len(out)), make([]finding.List, len(out))
	var wg sync.WaitGroup
	free := make(chan struct{}, runtime.GOMAXPROCS(0))
	for i, o := range out {
		free <- struct{}{}
		wg.Go(func() {
			defer func() { <-free }()
			dir := r.Addons.chartDir(o.Job)
			set, bad := readOutput(dir, o)
			if o.MissingValue {
				bad = append(bad, r.missingValueFinding(dir))
			}
			read[i] = RenderedStage{Objects: set.Objects, HelmHooks: set.HelmHooks, Expires: o.Expires, NewKeys: o.NewKeys}
			found[i] = bad
		})
	}
	wg.Wait()
	return read, slices.Concat(found...)
}

// runtimeHooks are those that stages are run on, in the order they happen in.
var runtimeHooks = []string{AfterControlPlaneInitialized, BeforeClusterUpgrade}

// allStages lists the stages of each runtime hook that have a chart. In the convention with one chart, that chart is
// the only stage of both.
func (r *Release) allStages() (out []RenderedStage) {
	if r.Addons.Config == nil {
		one := Stage{Name: "", Action: ActionApply}
		return []RenderedStage{{RuntimeHook: AfterControlPlaneInitialized, Stage: one},
			{RuntimeHook: BeforeClusterUpgrade, Stage: one}}
	}
	for _, runtimeHook := range runtimeHooks {
		for _, s := range r.Addons.Config.AddonStages[runtimeHook] {
			if _, ok := r.Addons.Charts[s.Name]; ok { // CheckStages reports the others
				out = append(out, RenderedStage{RuntimeHook: runtimeHook, Stage: s})
			}
		}
	}
	return out
}

// Stages are those of a runtime hook, in their order. In the convention with one chart, that chart is the only
// stage, with no name.
func (r *Release) Stages(runtimeHook string) (out []Stage) {
	for _, s := range r.allStages() {
		if s.RuntimeHook == runtimeHook {
			out = append(out, s.Stage)
		}
	}
	return out
}

func (a Addons) chartDir(name string) string { return path.Join(addonDir, name) }

func (r *Release) addonJob(name string, data ClusterData) render.Job {
	j := render.Job{Name: name, Chart: r.Addons.Charts[name], ReleaseName: addonRelease, Namespace: AddonNamespace}
	if text, ok := r.Addons.Values[name]; ok {
		file := overwriteFile
		if r.Addons.Config == nil {
			file = addonValuesFile
		}
		j.Template = &render.ValuesTemplate{File: file, Text: text, Data: data.templateData()}
	}
	return j
}

// readOutput turns what a chart rendered to into objects, and findings.
func readOutput(dir string, o render.Output) (render.ObjectSet, finding.List) {
	if o.Err != nil {
		return render.ObjectSet{}, finding.List{renderFinding(dir, "render", o.Err)}
	}
	set := render.ParseObjects(o.Files)
	var found finding.List
	for _, e := range set.Errors {
		found = append(found, renderFinding(dir, "object", e))
	}
	for _, e := range set.Warnings {
		f := renderFinding(dir, "object", e)
		f.Severity = finding.Warning
		found = append(found, f)
	}
	for _, h := range set.HelmHooks {
		// Objects of a class are applied without any Helm hook.
		if dir == classDir || !slices.ContainsFunc(h.Events, isAppliedHelmEvent) {
			found = append(found, helmHookFinding(dir, h))
		}
	}
	return set, found
}

func renderFinding(dir, rule string, e *render.Error) finding.Finding {
	file := path.Join(dir, e.Path)
	switch e.Path {
	case "":
		file = path.Join(dir, chartFile)
	case addonValuesFile:
		file = addonValuesFile // it lies beside the chart
	}
	return finding.Finding{File: file, Line: e.Line, Severity: finding.Error, Rule: rule, What: e.Reason}
}

func (r *Release) missingValueFinding(dir string) finding.Finding {
	file := path.Join(dir, overwriteFile)
	if r.Addons.Config == nil {
		file = addonValuesFile
	}
	return finding.Finding{File: file, Severity: finding.Warning, Rule: "no-value",
		What: "the template asks for a field that the cluster does not have, and writes <no value> instead",
		Fix:  "give it a default, for example with dig"}
}

// isAppliedHelmEvent says whether objects of a Helm hook are applied here too: an add-on is installed and
// upgraded, and never deleted with its release, rolled back or tested.
func isAppliedHelmEvent(event string) bool {
	return slices.Contains([]string{"pre-install", "post-install", "pre-upgrade", "post-upgrade"}, event)
}

func helmHookFinding(dir string, h render.HelmHook) finding.Finding {
	return finding.Finding{File: path.Join(dir, h.Path), Severity: finding.Warning, Rule: "helm-hook",
		What: fmt.Sprintf("%s is a Helm hook (%s) and will never be applied", h.Object, strings.Join(h.Events, ", ")),
		Fix:  "switch it off by a value, or make it an ordinary object"}
}
