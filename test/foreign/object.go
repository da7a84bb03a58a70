package foreign

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"regexp"
	"slices"
	"strings"

	yamlv3 "go.yaml.in/yaml/v3"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"github.com/polder-kaas/polder/api/v1alpha1"
)

// readBody reads the body of a request, which is of one of some types.
func readBody(c *call, kinds ...string) ([]byte, string, *problem) {
	kind, _, _ := mime.ParseMediaType(c.Header.Get("Content-Type"))
	if !slices.Contains(kinds, kind) {
		return nil, "", problemf(http.StatusUnsupportedMediaType, "send %s", strings.Join(kinds, " or "))
	}
	b, err := io.ReadAll(c.Body)
	if large := (*http.MaxBytesError)(nil); errors.As(err, &large) {
		return nil, "", problemf(http.StatusRequestEntityTooLarge, "the body is larger than 1 MiB")
	}
	if err != nil {
		return nil, "", problemf(http.StatusBadRequest, "the body ended: %v", err)
	}
	return b, kind, nil
}

// readJSON reads a small body.
func readJSON(c *call, v any) *problem {
	b, _, p := readBody(c, "application/json")
	if p != nil {
		return p
	}
	strict, err := kjson.UnmarshalStrict(b, v)
	if err := errors.Join(append(strict, err)...); err != nil {
		return problemf(http.StatusUnprocessableEntity, "the body is not right: %v", err)
	}
	return nil
}

// readFile reads the file of a cluster as JSON.
func (s *Server) readFile(c *call) ([]byte, *problem) {
	b, kind, p := readBody(c, "application/yaml", "application/json")
	if p != nil {
		return nil, p
	}
	if kind == "application/yaml" {
		if b, p = s.oneDocument(b); p != nil {
			return nil, p
		}
		var err error
		if b, err = yaml.YAMLToJSONStrict(b); err != nil {
			return nil, problemf(http.StatusBadRequest, "this is no YAML: %v", err)
		}
	}
	return b, checkObject(b)
}

// oneDocument refuses a file with two.
func (s *Server) oneDocument(b []byte) ([]byte, *problem) {
	d := yamlv3.NewDecoder(bytes.NewReader(b))
	var first, second yamlv3.Node
	if err := d.Decode(&first); err != nil {
		return nil, problemf(http.StatusBadRequest, "this is no YAML: %v", err)
	}
	if err := d.Decode(&second); !errors.Is(err, io.EOF) {
		if s.is(SecondObject) {
			b, _ = yamlv3.Marshal(&first)
			return b, nil
		}
		return nil, problemf(http.StatusBadRequest, "there is more than one object")
	}
	return b, nil
}

func checkObject(b []byte) *problem {
	var v any
	strict, err := kjson.UnmarshalStrict(b, &v)
	if err := errors.Join(append(strict, err)...); err != nil {
		return problemf(http.StatusBadRequest, "the body cannot be read: %v", err)
	}
	if _, ok := v.(map[string]any); !ok {
		return problemf(http.StatusBadRequest, "the body is no object")
	}
	return nil
}

// parse makes a cluster of its file.
func (s *Server) parse(b []byte) (*v1alpha1.WorkloadCluster, *problem) {
	w := &v1alpha1.WorkloadCluster{}
	strict, err := kjson.UnmarshalStrict(b, w)
	if s.is(UnknownField) {
		strict = nil
	}
	if err := errors.Join(append(strict, err)...); err != nil {
		return nil, problemf(http.StatusBadRequest, "the body cannot be read: %v", err)
	}
	return w, s.check(w)
}

var namePattern = regexp.MustCompile(`^[a-z]([-a-z0-9]{0,38}[a-z0-9])?$`)

// check says what is wrong with a cluster, and puts defaults into it.
func (s *Server) check(w *v1alpha1.WorkloadCluster) *problem {
	one := int32(1)
	if w.Spec.ControlPlane.Replicas == nil {
		w.Spec.ControlPlane.Replicas = &one
	}
	if w.Spec.Stack.Channel == "" {
		w.Spec.Stack.Channel = v1alpha1.ChannelStable
	}
	switch {
	case w.Kind != "" && w.Kind != "WorkloadCluster":
		return wrongField("kind", "write WorkloadCluster")
	case !namePattern.MatchString(w.Name):
		return wrongField("metadata.name", "this is no name of a cluster")
	case len(w.Finalizers) > 0 || len(w.OwnerReferences) > 0:
		return wrongField("metadata.finalizers", "it cannot be set")
	case w.Spec.Stack.Name != stackName && s.is(ServerError):
		return problemf(http.StatusInternalServerError, "nobody thought of this")
	case w.Spec.Stack.Name != stackName:
		return wrongField("spec.stack.name", "there is no such stack")
	case !slices.Contains([]int32{1, 3, 5}, *w.Spec.ControlPlane.Replicas):
		return wrongField("spec.controlPlane.replicas", "write 1, 3 or 5")
	}
	for i, pool := range w.Spec.Workers {
		if pool.Replicas != nil && *pool.Replicas < 0 {
			return wrongField(fmt.Sprintf("spec.workers[%d].replicas", i), "it is less than nothing")
		}
	}
	w.Kind, w.APIVersion = "WorkloadCluster", v1alpha1.GroupVersion.String()
	return nil
}

// merge is RFC 7396.
func (s *Server) merge(into, patch map[string]any) {
	for name, v := range patch {
		inner, isObject := v.(map[string]any)
		switch old, _ := into[name].(map[string]any); {
		case v == nil:
			if !s.is(NullStays) {
				delete(into, name)
			}
		case isObject:
			if old == nil {
				old = map[string]any{}
			}
			s.merge(old, inner)
			into[name] = old
		default:
			into[name] = v
		}
	}
}

// asMap is an object by the names of its fields.
func asMap(v any) map[string]any {
	b, _ := json.Marshal(v)
	out := map[string]any{}
	_ = json.Unmarshal(b, &out)
	return out
}
