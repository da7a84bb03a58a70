package conformance

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"

	"sigs.k8s.io/yaml"

	"github.com/polder-kaas/polder/api/v1alpha1"
)

// Media types.
const (
	typeYAML       = "application/yaml"
	typeJSON       = "application/json"
	typeMergePatch = "application/merge-patch+json"
)

// parseTemplate reads the file that all clusters are made of.
func parseTemplate(b []byte) (map[string]any, error) {
	var file map[string]any
	if err := yaml.UnmarshalStrict(b, &file); err != nil {
		return nil, fmt.Errorf("the file of the cluster is no YAML: %w", err)
	}
	if err := yaml.UnmarshalStrict(b, &v1alpha1.WorkloadCluster{}); err != nil {
		return nil, fmt.Errorf("the file of the cluster is not that of a WorkloadCluster: %w", err)
	}
	spec, ok := file["spec"].(map[string]any)
	if !ok || object(spec["stack"])["name"] == nil {
		return nil, errors.New("the file of the cluster has no spec.stack.name, which says what it is made of")
	}
	return map[string]any{"spec": spec}, nil
}

// chooseTemplate makes a file of the first stack that the server offers.
func (s *session) chooseTemplate(ctx context.Context) (map[string]any, error) {
	providers, err := listOf[v1alpha1.Provider](ctx, s, request{op: "list-providers"})
	if err != nil {
		return nil, err
	}
	type stack struct {
		Spec struct{ Name, Provider, KubernetesVersion string }
	}
	stacks, err := listOf[stack](ctx, s, request{op: "list-stacks"})
	if err != nil {
		return nil, err
	}
	for _, p := range providers {
		of := p.Status.StackProvider
		if of == "" {
			of = p.Name
		}
		for _, x := range stacks {
			if x.Spec.Provider == of {
				return map[string]any{"spec": map[string]any{
					"provider": p.Name,
					"stack":    map[string]any{"name": x.Spec.Name, "kubernetesVersion": x.Spec.KubernetesVersion},
				}}, nil
			}
		}
	}
	return nil, errors.New("the server offers no stack for any of its providers; say with a file what clusters are made of")
}

// listOf reads a list, its first page.
func listOf[T any](ctx context.Context, s *session, q request) ([]T, error) {
	a, err := s.want(ctx, q, http.StatusOK)
	if err != nil {
		return nil, err
	}
	var l struct{ Items []T }
	return l.Items, a.read(&l)
}

// read reads a body.
func (a *answer) read(v any) error {
	if err := json.Unmarshal(a.body, v); err != nil {
		return fmt.Errorf("the answer to %s cannot be read: %w", a.what, err)
	}
	return nil
}

func (a *answer) cluster() (*v1alpha1.WorkloadCluster, error) {
	c := &v1alpha1.WorkloadCluster{}
	return c, a.read(c)
}

// newName is that of a cluster, which is deleted after the check whether it was made or not.
func (s *session) newName() string {
	s.counter++
	name := fmt.Sprintf("%s-%d", s.prefix, s.counter)
	s.names, s.made = append(s.names, name), append(s.made, name)
	return name
}

// editFile changes the file of a cluster.
type editFile func(spec, metadata map[string]any)

// file is the file of a cluster.
func (s *session) file(name string, edit ...editFile) map[string]any {
	spec := maps.Clone(object(s.template["spec"]))
	if _, said := spec["paused"]; !said {
		spec["paused"] = true
	}
	metadata := map[string]any{
		"name": name, "labels": map[string]any{"conformance": "made"}, "annotations": map[string]any{"conformance/note": "x"},
	}
	for _, f := range edit {
		f(spec, metadata)
	}
	return map[string]any{
		"apiVersion": v1alpha1.GroupVersion.String(), "kind": "WorkloadCluster", "metadata": metadata, "spec": spec,
	}
}

// asJSON is a file as JSON, which has no values that could not be written.
func asJSON(v any) []byte {
	b, _ := json.Marshal(v)
	return b
}

// post is a request that makes a cluster.
func post(file map[string]any) request {
	return request{op: "create-cluster", body: asJSON(file), kind: typeJSON}
}

// put is a request that replaces a cluster.
func put(name string, file map[string]any) request {
	return request{op: "put-cluster", cluster: name, body: asJSON(file), kind: typeJSON}
}

// patch is a request that changes fields of a cluster.
func patch(name, body string) request {
	return request{op: "patch-cluster", cluster: name, body: []byte(body), kind: typeMergePatch}
}

func get(name string) request { return request{op: "get-cluster", cluster: name} }

func (q request) with(header, value string) request {
	q.header = maps.Clone(q.header)
	if q.header == nil {
		q.header = map[string]string{}
	}
	q.header[header] = value
	return q
}

func (q request) by(r Role) request {
	q.as = r
	return q
}

func (q request) ask(name, value string) request {
	all := url.Values{}
	maps.Copy(all, q.query)
	all.Set(name, value)
	q.query = all
	return q
}

func dryRun(q request) request { return q.ask("dryRun", "true") }

// make makes a cluster, and returns it as the server has it then.
func (s *session) make(ctx context.Context, edit ...editFile) (*v1alpha1.WorkloadCluster, error) {
	a, err := s.want(ctx, post(s.file(s.newName(), edit...)), http.StatusCreated)
	if err != nil {
		return nil, err
	}
	return a.cluster()
}

// read reads a cluster, with its ETag.
func (s *session) read(ctx context.Context, name string) (*v1alpha1.WorkloadCluster, string, error) {
	a, err := s.want(ctx, get(name), http.StatusOK)
	if err != nil {
		return nil, "", err
	}
	c, err := a.cluster()
	return c, a.header.Get("ETag"), err
}

// deleteMade begins to delete what the check before has made. A name that was not taken counts as gone.
func (s *session) deleteMade(ctx context.Context) {
	ctx = context.WithoutCancel(ctx) // each request has its own end
	for _, name := range s.made {
		a, err := s.do(ctx, request{op: "delete-cluster", cluster: name})
		s.gone[name] = err == nil && a.status == http.StatusNotFound
	}
	s.made = nil
}

// cleanUp waits until all that was made is gone, also after the context has ended. It says what is there still, and
// what of that is being deleted.
func (s *session) cleanUp(ctx context.Context) (left, deleting []string) {
	ctx = context.WithoutCancel(ctx)
	s.deleteMade(ctx)
	open := slices.DeleteFunc(slices.Clone(s.names), func(name string) bool { return s.gone[name] })
	s.made = slices.Clone(open) // once more: a request to delete may have been lost
	s.deleteMade(ctx)
	_ = eventually(ctx, s.cfg.Timeout, func(ctx context.Context) error {
		open = slices.DeleteFunc(open, func(name string) bool {
			a, err := s.do(ctx, get(name))
			return err == nil && a.status == http.StatusNotFound
		})
		if len(open) > 0 {
			return errors.New("something is left")
		}
		return nil
	})
	for _, name := range open {
		a, err := s.want(ctx, get(name), http.StatusOK, http.StatusNotFound)
		if err == nil && a.status == http.StatusNotFound {
			continue
		}
		switch c, err := clusterOf(a, err); {
		case err != nil:
			left = append(left, fmt.Sprintf("cluster %s may be there: %v", name, err))
		case isDeleting(c):
			deleting = append(deleting, "cluster "+name)
		default:
			left = append(left, fmt.Sprintf("cluster %s is there, and is not being deleted", name))
		}
	}
	return append(left, s.deleteRobots(ctx)...), deleting
}

func clusterOf(a *answer, err error) (*v1alpha1.WorkloadCluster, error) {
	if err != nil {
		return nil, err
	}
	return a.cluster()
}

func isDeleting(c *v1alpha1.WorkloadCluster) bool {
	return c.DeletionTimestamp != nil || c.Status.Phase == v1alpha1.PhaseDeleting
}
