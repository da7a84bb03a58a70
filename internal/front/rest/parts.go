package rest

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"time"

	"github.com/danielgtaylor/huma/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/polder-kaas/polder/api/v1alpha1"
	"github.com/polder-kaas/polder/internal/front/planeapi"
	"github.com/polder-kaas/polder/internal/front/planepath"
)

// Event is what happened to a cluster.
type Event struct {
	Type      string    `json:"type" doc:"Normal or Warning."`
	Reason    string    `json:"reason" doc:"What happened, in one word."`
	Message   string    `json:"message" doc:"What happened, for people."`
	Count     int32     `json:"count" doc:"How often."`
	FirstTime time.Time `json:"firstTime" doc:"When it happened for the first time."`
	LastTime  time.Time `json:"lastTime" doc:"When it happened last."`
}

// Addon is a stage of add-ons of a cluster.
type Addon struct {
	Name    string `json:"name" doc:"Name of the stage."`
	Done    bool   `json:"done" doc:"Whether it was gone through."`
	Message string `json:"message,omitempty" doc:"What it waits for."`
}

// Upgrade is what a cluster's spec.stack could be changed to.
type Upgrade struct {
	KubernetesVersion string `json:"kubernetesVersion" doc:"The minor." example:"1.36"`
	Version           string `json:"version" doc:"The version of the release." example:"v3"`
	Kubernetes        string `json:"kubernetes,omitempty" doc:"The exact version of Kubernetes."`
}

func registerClusterParts(a *API) error {
	huma.Register(a.huma, operation("list-events", http.MethodGet, clusterPathPattern+"/events", tagClusters,
		"List what happened to a cluster, the newest last"), a.listEvents)
	huma.Register(a.huma, operation("list-machines", http.MethodGet, clusterPathPattern+"/machines", tagClusters,
		"List the machines of a cluster"), a.listMachines)
	huma.Register(a.huma, operation("list-addons", http.MethodGet, clusterPathPattern+"/addons", tagClusters,
		"List the stages of add-ons of a cluster, in their order"),
		partOf(a, func(s *v1alpha1.WorkloadClusterStatus) (out []Addon) {
			for _, x := range s.Addons {
				out = append(out, Addon{Name: x.Name, Done: x.Done, Message: x.Message})
			}
			return out
		}))
	huma.Register(a.huma, operation("list-upgrades", http.MethodGet, clusterPathPattern+"/upgrades", tagClusters,
		"List what spec.stack of a cluster could be changed to"),
		partOf(a, func(s *v1alpha1.WorkloadClusterStatus) (out []Upgrade) {
			for _, u := range s.Updates {
				out = append(out, Upgrade{KubernetesVersion: u.KubernetesVersion, Version: u.Version, Kubernetes: u.Kubernetes})
			}
			return out
		}))
	return nil
}

// Machine is one of a cluster.
type Machine = planeapi.Machine

func (a *API) listMachines(ctx context.Context, in *struct {
	ClusterPath
	Page
}) (*list[Machine], error) {
	ctx, cancel := context.WithTimeout(ctx, planeTimeout)
	defer cancel()
	if _, err := a.readCluster(ctx, in.Tenant, in.Cluster); err != nil {
		return nil, err
	}
	var found planeapi.MachinePage
	if err := a.getPath(ctx, planepath.Machines+in.Tenant+"/"+in.Cluster, in.query(), &found); err != nil {
		return nil, a.explainCluster(ctx, in.Tenant, in.Cluster, err)
	}
	out := &list[Machine]{}
	out.Body.Items, out.Body.NextPageToken = found.Items, found.Continue
	return out, nil
}

// partOf answers with a part of a cluster's status.
func partOf[T any](
	a *API, part func(*v1alpha1.WorkloadClusterStatus) []T,
) func(context.Context, *ClusterPath) (*list[T], error) {
	return func(ctx context.Context, in *ClusterPath) (*list[T], error) {
		ctx, cancel := context.WithTimeout(ctx, planeTimeout)
		defer cancel()
		u, err := a.readCluster(ctx, in.Tenant, in.Cluster)
		if err != nil {
			return nil, err
		}
		c := &v1alpha1.WorkloadCluster{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, c); err != nil {
			return nil, err
		}
		out := &list[T]{}
		out.Body.Items = append([]T{}, part(&c.Status)...)
		return out, nil
	}
}

func (a *API) listEvents(ctx context.Context, in *struct {
	ClusterPath
	Page
}) (*list[Event], error) {
	ctx, cancel := context.WithTimeout(ctx, planeTimeout)
	defer cancel()
	if _, err := a.readCluster(ctx, in.Tenant, in.Cluster); err != nil {
		return nil, err
	}
	namespace, err := a.namespaceOf(ctx, in.Tenant)
	if err != nil {
		return nil, err
	}
	o := metav1.ListOptions{Limit: in.PageSize, Continue: in.PageToken}
	o.FieldSelector = fields.Set{"involvedObject.kind": "WorkloadCluster", "involvedObject.name": in.Cluster}.String()
	l, err := a.client.Resource(corev1.SchemeGroupVersion.WithResource("events")).Namespace(namespace).List(ctx, o)
	if err != nil {
		return nil, a.explainIn(ctx, in.Tenant, err)
	}
	out := &list[Event]{}
	out.Body.Items, out.Body.NextPageToken = []Event{}, l.GetContinue()
	for i := range l.Items {
		e := &corev1.Event{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(l.Items[i].Object, e); err != nil {
			return nil, err
		}
		out.Body.Items = append(out.Body.Items, newEvent(e))
	}
	slices.SortStableFunc(out.Body.Items, func(x, y Event) int { return x.LastTime.Compare(y.LastTime) })
	return out, nil
}

// newEvent reads both forms that Kubernetes has of events.
func newEvent(e *corev1.Event) Event {
	first := cmp.Or(timeOf(e.FirstTimestamp), e.EventTime.UTC(), e.CreationTimestamp.UTC())
	out := Event{
		Type: e.Type, Reason: e.Reason, Message: e.Message, Count: max(e.Count, 1), FirstTime: first,
		LastTime: cmp.Or(timeOf(e.LastTimestamp), first),
	}
	if e.Series != nil {
		out.Count, out.LastTime = e.Series.Count, e.Series.LastObservedTime.UTC()
	}
	return out
}

func timeOf(t metav1.Time) time.Time {
	if t.IsZero() {
		return time.Time{}
	}
	return t.UTC()
}
