package rest

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime"
	"net/http"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"github.com/polder-kaas/polder/api/v1alpha1"
)

// keptMetadata is what customers see of an object's metadata.
var keptMetadata = []string{
	"name", "labels", "annotations", "uid", "resourceVersion", "generation", "creationTimestamp", "deletionTimestamp",
}

// hiddenAnnotations are those that only programs need. They stay when an object is replaced.
var hiddenAnnotations = []string{
	"kubectl.kubernetes.io/last-applied-configuration", v1alpha1.IdempotencyAnnotation,
}

// present returns an object as customers see it.
func present(u *unstructured.Unstructured) map[string]any {
	out := maps.Clone(u.Object)
	meta, _ := out["metadata"].(map[string]any)
	kept := map[string]any{}
	for _, name := range keptMetadata {
		if v, ok := meta[name]; ok {
			kept[name] = v
		}
	}
	if all, ok := kept["annotations"].(map[string]any); ok {
		all = maps.Clone(all)
		for _, name := range hiddenAnnotations {
			delete(all, name)
		}
		kept["annotations"] = all
		if len(all) == 0 {
			delete(kept, "annotations")
		}
	}
	out["metadata"] = kept
	return out
}

// eTag is that of an object's version.
func eTag(u metav1.Object) string { return `"` + u.GetResourceVersion() + `"` }

// Preconditions say of which version of an object a request is.
type Preconditions struct {
	IfMatch     string `header:"If-Match" maxLength:"1024" doc:"The ETag that the object must have: if somebody changed it meanwhile, nothing is done."`
	IfNoneMatch string `header:"If-None-Match" maxLength:"1024" doc:"With *: the object must not be there yet."`
}

// version returns the version that is asked for, or nothing if any will do.
func (p Preconditions) version() (string, error) {
	switch v := strings.TrimSpace(p.IfMatch); {
	case v == "" || v == "*":
		return "", nil
	case len(v) > 2 && v[0] == '"' && v[len(v)-1] == '"' && !strings.ContainsAny(v[1:len(v)-1], `", `):
		return v[1 : len(v)-1], nil
	}
	return "", newProblem(http.StatusBadRequest, "If-Match is one ETag, as an answer of this API has it, or *")
}

func (p Preconditions) mustExist() bool    { return strings.TrimSpace(p.IfMatch) != "" }
func (p Preconditions) mustNotExist() bool { return strings.TrimSpace(p.IfNoneMatch) == "*" }

func changedMeanwhile(what string) *Problem {
	p := problemf(http.StatusPreconditionFailed, "%s was changed meanwhile: read it again, and decide anew", what)
	p.Reason = string(metav1.StatusReasonConflict)
	return p
}

// ObjectBody is an object as a customer writes it.
type ObjectBody struct {
	ContentType string `header:"Content-Type" hidden:"true"`
	RawBody     []byte `contentType:"application/yaml"`
}

// setBodySchema says what a body is, once an operation was registered: huma knows of raw bodies only that they are
// bytes.
func (a *API) setBodySchema(b *huma.RequestBody, schema *huma.Schema, types ...string) {
	b.Content = map[string]*huma.MediaType{}
	for _, t := range types {
		b.Content[t] = &huma.MediaType{Schema: schema}
	}
}

// mediaType checks that a body is of one of some types; without a header it is taken for the first.
func (b ObjectBody) mediaType(known ...string) (string, error) {
	if b.ContentType == "" {
		return known[0], nil
	}
	t, _, err := mime.ParseMediaType(b.ContentType)
	if err != nil || !slices.Contains(known, t) {
		return "", problemf(http.StatusUnsupportedMediaType, "a body of type %q is not taken; send %s", b.ContentType,
			strings.Join(known, " or "))
	}
	return t, nil
}

const (
	typeJSON       = "application/json"
	typeYAML       = "application/yaml"
	typeMergePatch = "application/merge-patch+json"
)

// decode reads one object. What is written twice is refused: nobody knows which was meant.
func (b ObjectBody) decode() (map[string]any, error) {
	t, err := b.mediaType(typeYAML, typeJSON, "application/x-yaml", "text/yaml")
	if err != nil {
		return nil, err
	}
	raw := b.RawBody
	if t != typeJSON {
		if raw, err = singleDocument(raw); err != nil || raw == nil {
			return nil, cmp.Or(err, error(newProblem(http.StatusBadRequest, "the body is empty")))
		}
		if raw, err = yaml.YAMLToJSONStrict(raw); err != nil {
			return nil, problemf(http.StatusBadRequest, "the body is no YAML: %v", err)
		}
	}
	return decodeObject(raw)
}

func decodeObject(raw []byte) (map[string]any, error) {
	if len(bytes.TrimSpace(raw)) == 0 {
		return nil, newProblem(http.StatusBadRequest, "the body is empty")
	}
	var v any
	strict, err := kjson.UnmarshalStrict(raw, &v)
	if err == nil && len(strict) > 0 {
		err = errors.Join(strict...)
	}
	if err != nil {
		return nil, problemf(http.StatusBadRequest, "the body cannot be read: %v", err)
	}
	object, ok := v.(map[string]any)
	if !ok {
		return nil, newProblem(http.StatusBadRequest, "the body is no object: it begins with apiVersion, kind, metadata or spec")
	}
	return object, nil
}

// singleDocument refuses a file with more than one object: all but the first would be forgotten.
func singleDocument(raw []byte) (first []byte, err error) {
	r := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(raw)))
	for {
		d, err := r.Read()
		switch {
		case errors.Is(err, io.EOF):
			return first, nil
		case err != nil:
			return nil, problemf(http.StatusBadRequest, "the body is no YAML: %v", err)
		case isBlank(d):
		case first != nil:
			return nil, newProblem(http.StatusBadRequest, "the body has more than one object; send each of them apart")
		default:
			first = d
		}
	}
}

// isBlank says that a document has nothing but comments.
func isBlank(d []byte) bool {
	for line := range bytes.Lines(d) {
		if l := bytes.TrimSpace(line); len(l) > 0 && l[0] != '#' && !bytes.Equal(l, []byte("---")) {
			return false
		}
	}
	return true
}

// newCluster makes of a customer's file what is sent to the plane. What the plane fills in itself is left out, so that
// what was read can be written back.
func newCluster(in map[string]any, namespace, name string) (*unstructured.Unstructured, error) {
	const kind = "WorkloadCluster"
	for field, want := range map[string]string{"apiVersion": v1alpha1.GroupVersion.String(), "kind": kind} {
		if v, ok := in[field]; ok && v != want {
			return nil, fieldProblem(field, fmt.Sprintf("write %s, or leave it out", want))
		}
	}
	meta, ok := in["metadata"].(map[string]any)
	if _, given := in["metadata"]; given && !ok {
		return nil, fieldProblem("metadata", "it is no object")
	}
	meta = maps.Clone(meta)
	if meta == nil {
		meta = map[string]any{}
	}
	if ns, ok := meta["namespace"]; ok && ns != namespace {
		return nil, fieldProblem("metadata.namespace", "it is that of another tenant; leave it out")
	}
	switch given, ok := meta["name"]; {
	case !ok && name == "":
		return nil, fieldProblem("metadata.name", "a cluster needs a name")
	case !ok:
		meta["name"] = name
	case name != "" && given != name:
		return nil, fieldProblem("metadata.name", fmt.Sprintf("it is not the name in the path, %s", name))
	}
	if _, ok := meta["name"].(string); !ok {
		return nil, fieldProblem("metadata.name", "it is no text")
	}
	for _, notHere := range []string{"ownerReferences", "finalizers", "generateName"} {
		if _, ok := meta[notHere]; ok {
			return nil, fieldProblem("metadata."+notHere, "it cannot be set here; leave it out")
		}
	}
	for _, filledIn := range []string{
		"uid", "generation", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "managedFields",
		"selfLink",
	} {
		delete(meta, filledIn)
	}
	meta["namespace"] = namespace
	out := maps.Clone(in)
	delete(out, "status")
	out["apiVersion"], out["kind"], out["metadata"] = v1alpha1.GroupVersion.String(), kind, meta
	return &unstructured.Unstructured{Object: out}, nil
}

func fieldProblem(field, message string) *Problem {
	p := problemf(http.StatusUnprocessableEntity, "%s: %s", field, message)
	p.Reason, p.Errors = string(metav1.StatusReasonInvalid), []ProblemField{{Location: field, Message: message}}
	return p
}

// warningHeaders are the plane's warnings as HTTP has them.
func (c *caller) warningHeader() string {
	if c == nil || len(c.warnings) == 0 {
		return ""
	}
	return `299 - "` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(oneLine(strings.Join(c.warnings, "; "))) + `"`
}
