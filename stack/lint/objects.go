package lint

import (
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	kubernetesversion "k8s.io/component-base/version"

	"github.com/polder-kaas/polder/stack"
	"github.com/polder-kaas/polder/stack/finding"
	"github.com/polder-kaas/polder/stack/render"
	"github.com/polder-kaas/polder/stack/version"
)

// objectRule is the name of the rule for objects that no API server takes.
const objectRule = "object"

// objectChecker checks what one chart renders to.
type objectChecker struct {
	dir        string // of the chart
	kubernetes version.Kubernetes
	kinds      *runtime.Scheme
	findings   []objectFinding
}

// objectFinding is a finding and the field it is about, by which its line is found.
type objectFinding struct {
	finding.Finding
	field string
}

// CheckObjects says what no API server would take of the objects that a release renders to: fields and kinds that
// Kubernetes' own types do not have, and metadata that is none. Stages may be nil.
func CheckObjects(r *stack.Release, c *stack.Class, stages []stack.RenderedStage) (finding.List, error) {
	found, err := checkClassObjects(r, c)
	if err != nil {
		return nil, err
	}
	more, err := checkAddonObjects(r, stages)
	if err != nil {
		return nil, err
	}
	var out finding.List
	for _, f := range append(found, more...) {
		out = append(out, f.Finding)
	}
	return out, nil
}

func checkClassObjects(r *stack.Release, c *stack.Class) ([]objectFinding, error) {
	return checkObjects(classDir, c.Objects, r.Metadata.KubernetesVersion())
}

// checkAddonObjects checks each chart once, though stages of both runtime hooks may have it.
func checkAddonObjects(r *stack.Release, stages []stack.RenderedStage) ([]objectFinding, error) {
	var out []objectFinding
	seen := map[string]bool{}
	for _, s := range stages {
		if seen[s.Stage.Name] {
			continue
		}
		seen[s.Stage.Name] = true
		objects := slices.Clone(s.Objects)
		for _, h := range s.HelmHooks {
			objects = append(objects, h.Object)
		}
		found, err := checkObjects(path.Join(addonDir, s.Stage.Name), objects, r.Metadata.KubernetesVersion())
		if err != nil {
			return nil, err
		}
		out = append(out, found...)
	}
	return out, nil
}

// checkObjects checks objects of a chart against Kubernetes' own types. Of other kinds only the metadata is known.
func checkObjects(dir string, objects []render.Object, k version.Kubernetes) ([]objectFinding, error) {
	kinds, err := builtinKinds()
	if err != nil {
		return nil, err
	}
	c := &objectChecker{dir: dir, kubernetes: k, kinds: kinds}
	for _, o := range objects {
		c.checkObject(o)
	}
	return c.findings, nil
}

func (c *objectChecker) add(o render.Object, severity finding.Severity, name, what, fix string) {
	f := finding.Finding{File: path.Join(c.dir, o.Path), Severity: severity, Rule: objectRule, What: what, Fix: fix}
	c.findings = append(c.findings, objectFinding{f, name})
}

// severity is that of what the types here do not have: a Kubernetes that is newer than they are may have it.
func (c *objectChecker) severity() finding.Severity {
	known, err := version.ParseKubernetes(kubernetesversion.DefaultKubeBinaryVersion)
	known.Patch = c.kubernetes.Patch
	if err != nil || version.CompareKubernetes(c.kubernetes, known) > 0 {
		return finding.Warning
	}
	return finding.Error
}

func (c *objectChecker) checkObject(o render.Object) {
	gv, err := schema.ParseGroupVersion(o.APIVersion())
	switch {
	case err != nil: // rendering refuses it
		return
	case c.kinds.Recognizes(gv.WithKind(o.Kind())):
		like, err := c.kinds.New(gv.WithKind(o.Kind()))
		if err != nil {
			return // this cannot be: it is recognized
		}
		c.checkServed(o, like)
		c.checkFields(o, o.Value, like, "")
	case c.kinds.IsVersionRegistered(gv):
		c.add(o, c.severity(), "kind", fmt.Sprintf("%s is of a kind that %s does not have", o, gv),
			"correct kind or apiVersion")
		return
	case c.kinds.IsGroupRegistered(gv.Group):
		c.add(o, c.severity(), "apiVersion", fmt.Sprintf("%s is of %s, which Kubernetes does not serve", o, gv),
			"use a version that it serves")
		return
	default:
		metadata, _ := o.Value["metadata"].(map[string]any)
		c.checkFields(o, metadata, new(metav1.ObjectMeta), "metadata")
	}
	c.checkLabels(o)
}

// checkServed warns of versions that an API server of the release does not have. It is no error, since a chart may ask
// the cluster for what it serves, and here it sees all versions.
func (c *objectChecker) checkServed(o render.Object, like runtime.Object) {
	served := true
	if l, ok := like.(interface{ APILifecycleIntroduced() (int, int) }); ok {
		major, minor := l.APILifecycleIntroduced()
		served = !isOlder(c.kubernetes, major, minor)
	}
	if l, ok := like.(interface{ APILifecycleRemoved() (int, int) }); ok {
		major, minor := l.APILifecycleRemoved()
		served = served && isOlder(c.kubernetes, major, minor)
	}
	if !served {
		c.add(o, finding.Warning, "apiVersion", fmt.Sprintf("%s is of %s, which Kubernetes %s does not serve", o,
			o.APIVersion(), c.kubernetes.MinorString()), "use another version of it, or ask .Capabilities.APIVersions for it")
	}
}

func isOlder(k version.Kubernetes, major, minor int) bool {
	return k.Major < major || k.Major == major && k.Minor < minor
}

// checkFields checks that a value has no other fields than a type, and that they are of its types.
func (c *objectChecker) checkFields(o render.Object, value map[string]any, like any, at string) {
	err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(value, like, true)
	if err == nil {
		return
	}
	strict, ok := runtime.AsStrictDecodingError(err)
	if !ok {
		name, why := describeTypeError(value, like, err)
		c.add(o, finding.Error, name, fmt.Sprintf("%s: %s%s", o, joinField(at, name), why), "correct it")
		return
	}
	for _, e := range strict.Errors() {
		// The library has no type for it.
		name := strings.Trim(strings.TrimPrefix(e.Error(), "unknown field "), `"`)
		c.add(o, c.severity(), name, fmt.Sprintf("%s has the field %s, which %s does not know, so no API server takes it", o,
			joinField(at, name), o.APIVersion()), "correct it")
	}
}

func joinField(at, name string) string { return strings.TrimPrefix(at+"."+name, ".") }

// describeTypeError finds the field that has a wrong type, which the converter does not name.
func describeTypeError(value map[string]any, like any, converting error) (name, why string) {
	b, err := json.Marshal(value)
	if err != nil {
		return "", converting.Error()
	}
	var te *json.UnmarshalTypeError
	if err := json.Unmarshal(b, like); errors.As(err, &te) {
		return te.Field, " cannot be a " + te.Value
	}
	return "", converting.Error()
}

// checkLabels checks what API servers ask of the keys and values in all metadata.
func (c *objectChecker) checkLabels(o render.Object) {
	var m struct {
		Metadata struct {
			Labels      map[string]string `json:"labels"`
			Annotations map[string]string `json:"annotations"`
		} `json:"metadata"`
	}
	if runtime.DefaultUnstructuredConverter.FromUnstructured(o.Value, &m) != nil {
		return // it is reported as a wrong type
	}
	at := field.NewPath("metadata")
	errs := metav1validation.ValidateLabels(m.Metadata.Labels, at.Child("labels"))
	errs = append(errs, validation.ValidateAnnotations(m.Metadata.Annotations, at.Child("annotations"))...)
	for _, e := range errs {
		detail, _, _ := strings.Cut(e.Detail, " (e.g.")
		c.add(o, finding.Error, e.Field, fmt.Sprintf("%s: %s has %.80q: %s", o, e.Field, fmt.Sprint(e.BadValue), detail),
			"correct it")
	}
}

// addObjectFindings adds findings about objects, with the line where the template has the field.
func (l *linter) addObjectFindings(found []objectFinding, err error) error {
	for _, f := range found {
		f.Line = l.findLine(f.File, f.field[strings.LastIndexByte(f.field, '.')+1:]+":")
		if f.Line == 0 {
			f.Line = l.guessLine(f.Finding)
		}
		l.add(f.Finding)
	}
	return err
}
