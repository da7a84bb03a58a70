package foreign

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/polder-kaas/polder/api/v1alpha1"
)

// later is how long the machinery takes for a step.
const later = 5 * time.Millisecond

func (s *Server) tag(version string) string {
	if s.is(FixedETag) {
		return `"1"`
	}
	return `"` + version + `"`
}

func (s *Server) clusterReply(status int, c *cluster) *reply {
	return &reply{status: status, tag: s.tag(c.ResourceVersion), body: s.present(c)}
}

// present is a cluster as customers see it.
func (s *Server) present(c *cluster) map[string]any {
	w := c.DeepCopy()
	if s.is(KeyShown) && c.key != "" {
		metav1.SetMetaDataAnnotation(&w.ObjectMeta, "foreign/key", c.key)
	}
	out := asMap(w)
	if s.is(NoStatus) {
		delete(out, "status")
	}
	return out
}

func (c *call) find() (*cluster, *problem) {
	name := c.vars["cluster"]
	if found := c.tenant.clusters[name]; found != nil {
		return found, nil
	}
	return nil, notFound("there is no cluster %s in tenant %s", name, c.tenant.name)
}

// stamp gives an object a new version, and tells those who watch.
func (s *Server) stamp(t *tenant, c *cluster, kind string) {
	c.ResourceVersion = strconv.FormatInt(s.next(), 10)
	s.tell(t, change{kind, s.present(c)})
}

func (s *Server) add(t *tenant, w *v1alpha1.WorkloadCluster, mark, key string) *cluster {
	c := &cluster{WorkloadCluster: *w, mark: mark, key: key}
	c.UID, c.Generation = types.UID(fmt.Sprintf("uid-%d", s.next())), 1
	c.CreationTimestamp = metav1.NewTime(time.Now().UTC().Truncate(time.Second))
	if !s.is(StatusTaken) {
		c.Status = v1alpha1.WorkloadClusterStatus{}
	}
	t.clusters[c.Name] = c
	s.stamp(t, c, "ADDED")
	time.AfterFunc(later, func() { s.observe(t, c) })
	return c
}

// observe is the machinery: what is made is ready at once.
func (s *Server) observe(t *tenant, c *cluster) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t.clusters[c.Name] != c || c.DeletionTimestamp != nil || s.is(StatusTaken) {
		return
	}
	c.Status = v1alpha1.WorkloadClusterStatus{
		Phase: v1alpha1.PhaseReady, Message: "the cluster is ready", Actor: v1alpha1.Nobody, Endpoint: "https://" + c.Name + ".example.org:6443",
	}
	if s.is(NoActor) {
		c.Status.Actor = ""
	}
	if c.Spec.Paused != nil && *c.Spec.Paused {
		c.Status = v1alpha1.WorkloadClusterStatus{
			Phase: v1alpha1.PhasePaused, Message: "the cluster is paused", Actor: v1alpha1.Customer, NextStep: "take out spec.paused",
		}
	}
	c.Status.ObservedGeneration = c.Generation
	s.stamp(t, c, "MODIFIED")
}

func (s *Server) listClusters(c *call) (*reply, *problem) {
	names := slices.Sorted(maps.Keys(c.tenant.clusters))
	from := 0
	if token := c.query.Get("pageToken"); token != "" {
		after, ok := strings.CutPrefix(token, "after-")
		if !ok {
			return nil, problemf(http.StatusBadRequest, "this pageToken is none of this server")
		}
		from, _ = slices.BinarySearch(names, after+"\x00")
	}
	size := 100
	if n := c.query.Get("pageSize"); n != "" && !s.is(IgnoredPageSize) {
		size, _ = strconv.Atoi(n)
	}
	names = names[from:]
	out := map[string]any{}
	if len(names) > size {
		last := names[size-1]
		if s.is(RepeatedItem) && size > 1 {
			last = names[size-2]
		}
		names, out["nextPageToken"] = names[:size], "after-"+last
	}
	items := []any{}
	for _, n := range names {
		items = append(items, s.present(c.tenant.clusters[n]))
	}
	out["items"] = items
	return &reply{status: http.StatusOK, body: out}, nil
}

func (s *Server) getCluster(c *call) (*reply, *problem) {
	found, p := c.find()
	if p != nil {
		return nil, p
	}
	if tag := s.tag(found.ResourceVersion); c.Header.Get("If-None-Match") == tag && !s.is(IgnoredIfNone) {
		return &reply{status: http.StatusNotModified, tag: tag}, nil
	}
	return s.clusterReply(http.StatusOK, found), nil
}

func (s *Server) createCluster(c *call) (*reply, *problem) {
	b, p := s.readFile(c)
	if p != nil {
		return nil, p
	}
	w, p := s.parse(b)
	if p != nil {
		return nil, p
	}
	key, mark := c.Header.Get("Idempotency-Key"), ""
	if key != "" && !s.is(IgnoredKey) {
		mark = fmt.Sprintf("%x.%x", sha256.Sum256([]byte(key)), sha256.Sum256(b))
	}
	if old := c.tenant.clusters[w.Name]; old != nil {
		sameKey := mark != "" && strings.HasPrefix(old.mark, mark[:64])
		switch {
		case sameKey && (old.mark == mark || s.is(KeyOfAnyBody)):
			return s.made(c, old), nil
		case sameKey:
			return nil, problemf(http.StatusUnprocessableEntity, "this key has made something else")
		}
		p := problemf(http.StatusConflict, "there is a cluster %s", w.Name)
		p.Reason = "AlreadyExists"
		return nil, p
	}
	if c.dryRun && !s.is(DryRunWrites) {
		return s.made(c, &cluster{WorkloadCluster: *w}), nil
	}
	return s.made(c, s.add(c.tenant, w, mark, key)), nil
}

func (s *Server) made(c *call, made *cluster) *reply {
	a := s.clusterReply(http.StatusCreated, made)
	a.header = map[string]string{"Location": "/v1/tenants/" + c.tenant.name + "/clusters/" + made.Name}
	c.vars["cluster"] = made.Name
	return a
}

// precondition says whether a cluster may be changed as somebody knows it.
func (s *Server) precondition(c *call, found *cluster, version string) *problem {
	match := c.Header.Get("If-Match")
	switch {
	case c.Header.Get("If-None-Match") == "*" && found != nil && !s.is(IgnoredIfNone):
		return problemf(http.StatusPreconditionFailed, "there is a cluster of this name")
	case match != "" && found == nil:
		return problemf(http.StatusPreconditionFailed, "there is no cluster of this name")
	case match != "" && match != "*" && match != s.tag(found.ResourceVersion) && !s.is(IgnoredIfMatch),
		version != "" && found != nil && version != found.ResourceVersion && !s.is(StaleFile):
		return problemf(http.StatusPreconditionFailed, "the cluster was changed meanwhile")
	}
	return nil
}

func (s *Server) putCluster(c *call) (*reply, *problem) {
	b, p := s.readFile(c)
	if p != nil {
		return nil, p
	}
	w, p := s.parse(b)
	if p != nil {
		return nil, p
	}
	if w.Name != c.vars["cluster"] {
		return nil, wrongField("metadata.name", "it is not the name in the path")
	}
	old := c.tenant.clusters[w.Name]
	if p := s.precondition(c, old, w.ResourceVersion); p != nil {
		return nil, p
	}
	switch {
	case old == nil && c.dryRun && !s.is(DryRunWrites):
		return s.clusterReply(http.StatusCreated, &cluster{WorkloadCluster: *w}), nil
	case old == nil:
		return s.clusterReply(http.StatusCreated, s.add(c.tenant, w, "", "")), nil
	}
	if s.is(LabelsStay) {
		labels := maps.Clone(old.Labels)
		maps.Copy(labels, w.Labels)
		w.Labels = labels
	}
	return s.replace(c, old, w), nil
}

// replace writes what customers write.
func (s *Server) replace(c *call, old *cluster, w *v1alpha1.WorkloadCluster) *reply {
	now := &cluster{WorkloadCluster: *old.DeepCopy(), mark: old.mark, key: old.key}
	if !reflect.DeepEqual(asMap(now.Spec), asMap(w.Spec)) {
		now.Generation++
	}
	now.Spec, now.Labels, now.Annotations = w.Spec, w.Labels, w.Annotations
	if s.is(StatusTaken) {
		now.Status = w.Status
	}
	if c.dryRun && !s.is(DryRunWrites) {
		return s.clusterReply(http.StatusOK, now)
	}
	*old = *now
	s.stamp(c.tenant, old, "MODIFIED")
	time.AfterFunc(later, func() { s.observe(c.tenant, old) })
	return s.clusterReply(http.StatusOK, old)
}

func (s *Server) patchCluster(c *call) (*reply, *problem) {
	b, _, p := readBody(c, "application/merge-patch+json", "application/json")
	if p == nil {
		p = checkObject(b)
	}
	if p != nil {
		return nil, p
	}
	var patch map[string]any
	_ = json.Unmarshal(b, &patch)
	for name, v := range patch {
		if name != "spec" && name != "metadata" {
			return nil, wrongField(name, "it cannot be changed")
		}
		inner, _ := v.(map[string]any)
		for field := range inner {
			if name == "metadata" && field != "labels" && field != "annotations" {
				return nil, wrongField("metadata."+field, "it cannot be changed")
			}
		}
	}
	old, p := c.find()
	if p != nil {
		return nil, p
	}
	if p := s.precondition(c, old, ""); p != nil {
		return nil, p
	}
	all := asMap(old.WorkloadCluster)
	s.merge(all, patch)
	b, _ = json.Marshal(all)
	w, p := s.parse(b)
	if p != nil {
		return nil, p
	}
	return s.replace(c, old, w), nil
}

func (s *Server) deleteCluster(c *call) (*reply, *problem) {
	found, p := c.find()
	if p != nil {
		return nil, p
	}
	if p := s.precondition(c, found, ""); p != nil {
		return nil, p
	}
	if uid := c.query.Get("uid"); uid != "" && uid != string(found.UID) && !s.is(IgnoredUID) {
		return nil, problemf(http.StatusPreconditionFailed, "the cluster has another uid")
	}
	if s.is(NothingDeleted) {
		return &reply{status: http.StatusOK}, nil
	}
	if c.dryRun && !s.is(DryRunWrites) || found.DeletionTimestamp != nil {
		return &reply{status: http.StatusAccepted}, nil
	}
	now := metav1.NewTime(time.Now().UTC().Truncate(time.Second))
	found.DeletionTimestamp, found.Status.Phase = &now, v1alpha1.PhaseDeleting
	s.stamp(c.tenant, found, "MODIFIED")
	t := c.tenant
	time.AfterFunc(later, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(t.clusters, found.Name)
		if !s.is(DeletionsNotTold) {
			s.stamp(t, found, "DELETED")
		}
	})
	return &reply{status: http.StatusAccepted}, nil
}

func (s *Server) listPart(c *call) (*reply, *problem) {
	if _, p := c.find(); p != nil {
		return nil, p
	}
	return items([]any{}), nil
}

// items is a list.
func items(all any) *reply {
	return &reply{status: http.StatusOK, body: map[string]any{"items": all}}
}
