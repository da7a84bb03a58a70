package render

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/polder-kaas/polder/stack/document"
)

// Object is one Kubernetes object that a chart rendered to.
type Object struct {
	Path  string // of the template it comes from
	Value map[string]any
}

// HelmHook is an object that Helm would apply at certain moments and at no other. It is not among the
// Objects of an ObjectSet.
type HelmHook struct {
	Object
	Events []string // for example pre-delete
}

const helmHookAnnotation = "helm.sh/hook"

// ObjectSet is what rendered files have in them.
type ObjectSet struct {
	Objects   []Object
	HelmHooks []HelmHook
	Errors    []*Error // why some of it cannot be applied
	Warnings  []*Error // what works, but is surely not meant so
	seen      map[string]string
}

// ParseObjects reads rendered files. It reports all that is wrong with them, not only the first.
func ParseObjects(files []File) ObjectSet {
	s := ObjectSet{seen: map[string]string{}}
	for _, f := range files {
		docs, warnings, err := document.ParseLoose(f.Path, []byte(f.Text))
		for _, w := range warnings {
			s.Warnings = append(s.Warnings, resultError(w))
		}
		if err != nil {
			s.Errors = append(s.Errors, resultError(err))
			continue
		}
		for _, d := range docs {
			for _, o := range flattenList(f.Path, d.Value()) {
				s.add(o)
			}
		}
	}
	return s
}

// resultError says that the line of an error is one of what was rendered, not of the template.
func resultError(err error) *Error {
	e := documentError(err)
	return &Error{Path: e.Path, Reason: fmt.Sprintf("what it renders to, at line %d of the result: %s", e.Line, e.Reason)}
}

func (s *ObjectSet) add(o Object) {
	if reasons := o.validate(); len(reasons) > 0 {
		s.Errors = append(s.Errors, &Error{
			Path: o.Path, Reason: truncateReason(o.String() + " " + strings.Join(reasons, ", and ")),
		})
		return
	}
	if h, ok := o.helmHook(); ok {
		s.HelmHooks = append(s.HelmHooks, h)
		return
	}
	if other, ok := s.seen[o.key()]; ok {
		s.Errors = append(s.Errors, &Error{
			Path: o.Path, Reason: truncateReason(fmt.Sprintf("%s is rendered twice, here and in %s", o, other)),
		})
		return
	}
	s.seen[o.key()] = o.Path
	s.Objects = append(s.Objects, o)
}

// flattenList gives the objects of a List, also of one in a list; any other object is returned as it is.
func flattenList(path string, v any) []Object {
	m, _ := v.(map[string]any) // validate refuses nil
	o := Object{Path: path, Value: m}
	items, ok := m["items"].([]any)
	if !ok || o.Kind() != "List" {
		return []Object{o}
	}
	var out []Object
	for _, item := range items {
		out = append(out, flattenList(path, item)...)
	}
	return out
}

func (o Object) stringField(keys ...string) string {
	var v any = o.Value
	for _, k := range keys {
		m, ok := v.(map[string]any)
		if !ok {
			return ""
		}
		v = m[k]
	}
	s, _ := v.(string)
	return s
}

// APIVersion is the apiVersion of the object.
func (o Object) APIVersion() string { return o.stringField("apiVersion") }

// Group is the API group of the object's kind; empty for the core group.
func (o Object) Group() string {
	group, _, ok := strings.Cut(o.APIVersion(), "/")
	if !ok {
		return ""
	}
	return group
}

// Kind is the kind of the object.
func (o Object) Kind() string { return o.stringField("kind") }

// Name is the name of the object.
func (o Object) Name() string { return o.stringField("metadata", "name") }

// Namespace is the namespace of the object, if it names one.
func (o Object) Namespace() string { return o.stringField("metadata", "namespace") }

// String is how people name it: Deployment kube-system/cilium.
func (o Object) String() string {
	kind, name := o.Kind(), o.Name()
	if ns := o.Namespace(); ns != "" {
		name = ns + "/" + name
	}
	if kind == "" {
		kind = "an object"
	}
	return strings.TrimSpace(kind + " " + name)
}

// key leaves out the version: an object that is rendered in two versions is still one.
func (o Object) key() string {
	return strings.Join([]string{o.Group(), o.Kind(), o.Namespace(), o.Name()}, "|")
}

var (
	apiVersionPattern = regexp.MustCompile(`^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?v[0-9]+((alpha|beta)[0-9]+)?$`)
	kindPattern       = regexp.MustCompile(`^[A-Z][A-Za-z0-9]*$`)
	// Some kinds, such as roles, take more in their names than most: no more than a part of a path.
	namePattern      = regexp.MustCompile(`^[A-Za-z0-9]([-A-Za-z0-9.:_]*[A-Za-z0-9])?$`)
	namespacePattern = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`)
)

// validate says why no API server would accept the object.
func (o Object) validate() []string {
	if o.Value == nil {
		return []string{"is none: there must be an object with apiVersion and kind"}
	}
	var out []string
	if !apiVersionPattern.MatchString(o.APIVersion()) {
		out = append(out, fmt.Sprintf("has the apiVersion %.60q, which is none", fmt.Sprint(o.Value["apiVersion"])))
	}
	if !kindPattern.MatchString(o.Kind()) {
		out = append(out, fmt.Sprintf("has the kind %.60q, which is none", fmt.Sprint(o.Value["kind"])))
	}
	meta, ok := o.Value["metadata"].(map[string]any)
	if !ok {
		return append(out, "has no metadata")
	}
	if name, _ := meta["name"].(string); len(name) > 253 || !namePattern.MatchString(name) {
		out = append(out, fmt.Sprintf("has the name %.60q, which is none", fmt.Sprint(meta["name"])))
	}
	if ns, ok := meta["namespace"]; ok && ns != nil {
		if s, _ := ns.(string); len(s) > 63 || !namespacePattern.MatchString(s) {
			out = append(out, fmt.Sprintf("has the namespace %.60q, which is none", fmt.Sprint(ns)))
		}
	}
	for _, field := range []string{"labels", "annotations"} {
		out = append(out, checkStringMap(field, meta[field])...)
	}
	return out
}

func checkStringMap(field string, v any) []string {
	m, ok := v.(map[string]any)
	if !ok {
		if v != nil {
			return []string{field + " that are no object"}
		}
		return nil
	}
	var out []string
	for k, v := range m {
		if _, ok := v.(string); !ok {
			out = append(out, fmt.Sprintf("has %s with %.60q: %.60s, which must be a string; quote it", field, k, fmt.Sprint(v)))
		}
	}
	slices.Sort(out)
	return out
}

func (o Object) helmHook() (HelmHook, bool) {
	events := o.stringField("metadata", "annotations", helmHookAnnotation)
	if events == "" {
		return HelmHook{}, false
	}
	h := HelmHook{Object: o}
	for _, e := range strings.Split(events, ",") {
		h.Events = append(h.Events, strings.TrimSpace(e))
	}
	return h, true
}
