package conformance

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"sigs.k8s.io/yaml"

	"github.com/polder-kaas/polder/api/v1alpha1"
)

func clusterChecks() []check {
	return []check{
		{
			name: "clusters/made", run: checkMade,
			shows: "POST takes cluster-values.yaml as YAML and as JSON, and answers 201 with the object, its ETag and its Location",
		},
		{
			name: "clusters/name taken", run: checkNameTaken,
			shows: "a second cluster of a name is refused with 409, reason AlreadyExists, and the first stays",
		},
		{
			name: "clusters/written back", run: checkWrittenBack,
			shows: "what was read can be written back with PUT, and changes nothing",
		},
		{
			name: "clusters/replaced", run: checkReplaced,
			shows: "PUT replaces spec, labels and annotations: what the body leaves out goes",
		},
		{
			name: "clusters/put makes", run: checkPutMakes,
			shows: "PUT makes a cluster that is not there, of the name in the path and no other",
		},
		{
			name: "clusters/deleted", run: checkDeleted,
			shows: "DELETE is answered 202, after which the cluster is being deleted until it is answered with 404",
		},
		{
			name: "clusters/uid", run: checkUID,
			shows: "DELETE with the uid of another cluster is refused with 412, and deletes nothing",
		},
		{
			name: "clusters/parts", run: checkParts,
			shows: "events, machines, addons and upgrades of a cluster are lists, and 404 where there is no cluster",
		},
	}
}

// checkObject is an error unless a cluster is what its file says.
func checkObject(c *v1alpha1.WorkloadCluster, name string, file map[string]any) error {
	switch {
	case c.Name != name:
		return fmt.Errorf("the cluster is called %q, not %s", c.Name, name)
	case c.UID == "" || c.ResourceVersion == "" || c.CreationTimestamp.IsZero():
		return errors.New("the cluster lacks metadata.uid, resourceVersion or creationTimestamp")
	case c.Labels["conformance"] != "made" || c.Annotations["conformance/note"] != "x":
		return fmt.Errorf("the cluster has labels %v and annotations %v, not those of its file", c.Labels, c.Annotations)
	}
	stack := object(object(file["spec"])["stack"])
	if c.Spec.Stack.Name != stack["name"] {
		return fmt.Errorf("the cluster has the stack %q, not %v", c.Spec.Stack.Name, stack["name"])
	}
	return nil
}

func checkMade(ctx context.Context, s *session) error {
	for _, kind := range []string{typeYAML, typeJSON} {
		name := s.newName()
		file := s.file(name)
		q := post(file)
		if kind == typeYAML {
			b, err := yaml.JSONToYAML(q.body)
			if err != nil {
				return err
			}
			q.body, q.kind = append([]byte("# a comment\n"), b...), kind
		}
		a, err := s.want(ctx, q, http.StatusCreated)
		if err != nil {
			return fmt.Errorf("a body of type %s: %w", kind, err)
		}
		made, err := a.cluster()
		if err != nil {
			return err
		}
		if err := checkObject(made, name, file); err != nil {
			return fmt.Errorf("the answer to %s: %w", a.what, err)
		}
		if want := "/v1/tenants/" + s.cfg.Tenant + "/clusters/" + name; a.header.Get("Location") != want {
			return fmt.Errorf("the Location of what was made is to be %s; it is %q", want, a.header.Get("Location"))
		}
		if a.header.Get("ETag") == "" {
			return fmt.Errorf("the answer to %s has no ETag", a.what)
		}
		got, _, err := s.read(ctx, name)
		if err != nil {
			return err
		}
		if err := checkObject(got, name, file); err != nil {
			return fmt.Errorf("read again: %w", err)
		}
		if got.UID != made.UID {
			return errors.New("read again, the cluster has another uid")
		}
	}
	return nil
}

func checkNameTaken(ctx context.Context, s *session) error {
	c, err := s.make(ctx)
	if err != nil {
		return err
	}
	a, err := s.want(ctx, post(s.file(c.Name)), http.StatusConflict)
	if err != nil {
		return err
	}
	if err := a.wantReason("AlreadyExists"); err != nil {
		return err
	}
	return s.wantSame(ctx, c)
}

// wantSame is an error unless a cluster is still the one that it was.
func (s *session) wantSame(ctx context.Context, c *v1alpha1.WorkloadCluster) error {
	now, _, err := s.read(ctx, c.Name)
	switch {
	case err != nil:
		return err
	case now.UID != c.UID:
		return fmt.Errorf("cluster %s is another one after a request that was refused", c.Name)
	case isDeleting(now):
		return fmt.Errorf("cluster %s is being deleted after a request that was refused", c.Name)
	case now.Generation != c.Generation || now.Labels["conformance"] != c.Labels["conformance"]:
		return fmt.Errorf("cluster %s has changed after a request that was refused", c.Name)
	}
	return nil
}

func checkWrittenBack(ctx context.Context, s *session) error {
	c, err := s.make(ctx)
	if err != nil {
		return err
	}
	return s.eventually(ctx, func(ctx context.Context) error { // its status may change between both
		read, err := s.want(ctx, get(c.Name), http.StatusOK)
		if err != nil {
			return err
		}
		q := request{op: "put-cluster", cluster: c.Name, body: read.body, kind: typeJSON}
		a, err := s.want(ctx, q, http.StatusOK)
		if err != nil {
			return err
		}
		now, err := a.cluster()
		if err != nil {
			return err
		}
		if now.UID != c.UID || now.Generation != c.Generation {
			return fmt.Errorf("written back, the cluster has uid %s and generation %d; it had %s and %d", now.UID,
				now.Generation, c.UID, c.Generation)
		}
		return nil
	})
}

func checkReplaced(ctx context.Context, s *session) error {
	c, err := s.make(ctx, func(spec, _ map[string]any) { spec["deletionProtection"] = false })
	if err != nil {
		return err
	}
	file := s.file(c.Name, func(_, metadata map[string]any) {
		metadata["labels"] = map[string]any{"conformance-other": "replaced"}
		delete(metadata, "annotations")
	})
	if _, err := s.want(ctx, put(c.Name, file), http.StatusOK); err != nil {
		return err
	}
	now, _, err := s.read(ctx, c.Name)
	switch {
	case err != nil:
		return err
	case now.Labels["conformance-other"] != "replaced":
		return errors.New("a label that PUT has is not there afterwards")
	case now.Labels["conformance"] != "" || now.Annotations["conformance/note"] != "":
		return errors.New("labels or annotations that PUT leaves out are there afterwards")
	case now.Spec.DeletionProtection != nil:
		return errors.New("spec.deletionProtection, which PUT leaves out, is there afterwards")
	}
	return nil
}

func checkPutMakes(ctx context.Context, s *session) error {
	name, other := s.newName(), s.newName()
	a, err := s.want(ctx, put(name, s.file(other)), http.StatusUnprocessableEntity)
	if err != nil {
		return err
	}
	if err := a.wantLocation("metadata.name"); err != nil {
		return err
	}
	for _, n := range []string{name, other} {
		if _, err := s.want(ctx, get(n), http.StatusNotFound); err != nil {
			return err
		}
	}
	if _, err := s.want(ctx, put(name, s.file(name)), http.StatusCreated); err != nil {
		return err
	}
	_, _, err = s.read(ctx, name)
	return err
}

func checkDeleted(ctx context.Context, s *session) error {
	c, err := s.make(ctx)
	if err != nil {
		return err
	}
	if _, err := s.want(ctx, request{op: "delete-cluster", cluster: c.Name}, http.StatusAccepted); err != nil {
		return err
	}
	err = s.eventually(ctx, func(ctx context.Context) error {
		a, err := s.want(ctx, get(c.Name), http.StatusNotFound, http.StatusOK)
		if err != nil || a.status == http.StatusNotFound {
			return err
		}
		now, err := a.cluster()
		if err != nil {
			return err
		}
		if !isDeleting(now) {
			return fmt.Errorf("cluster %s was deleted, and is there without a deletionTimestamp, in phase %q", c.Name,
				now.Status.Phase)
		}
		return nil
	})
	if err != nil {
		return err
	}
	_, err = s.want(ctx, request{op: "delete-cluster", cluster: s.prefix + "-none"}, http.StatusNotFound)
	return err
}

func checkUID(ctx context.Context, s *session) error {
	c, err := s.make(ctx)
	if err != nil {
		return err
	}
	q := request{op: "delete-cluster", cluster: c.Name}.ask("uid", "00000000-0000-0000-0000-000000000000")
	if _, err := s.want(ctx, q, http.StatusPreconditionFailed); err != nil {
		return err
	}
	return s.wantSame(ctx, c)
}

func checkParts(ctx context.Context, s *session) error {
	c, err := s.make(ctx)
	if err != nil {
		return err
	}
	for _, op := range []string{"list-events", "list-machines", "list-addons", "list-upgrades"} {
		if _, err := s.want(ctx, request{op: op, cluster: c.Name}, http.StatusOK); err != nil {
			return err
		}
		if _, err := s.want(ctx, request{op: op, cluster: s.prefix + "-none"}, http.StatusNotFound); err != nil {
			return err
		}
	}
	all, err := listOf[v1alpha1.WorkloadCluster](ctx, s, request{op: "list-clusters"}.ask("pageSize", "500"))
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(all, func(x v1alpha1.WorkloadCluster) bool { return x.UID == c.UID }) && len(all) < 500 {
		return fmt.Errorf("GET /tenants/%s/clusters does not list %s", s.cfg.Tenant, c.Name)
	}
	return nil
}
