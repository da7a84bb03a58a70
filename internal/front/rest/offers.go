package rest

import (
	"context"
	"encoding/json"
	"net/http"
	"reflect"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	csv1 "github.com/polder-kaas/polder/api/clusterstack/v1alpha1"
	"github.com/polder-kaas/polder/api/v1alpha1"
	"github.com/polder-kaas/polder/internal/front/planepath"
	"github.com/polder-kaas/polder/internal/program/buildinfo"
)

var (
	stackResource    = csv1.GroupVersion.WithResource("clusterstacks")
	releaseResource  = csv1.GroupVersion.WithResource("clusterstackreleases")
	providerResource = v1alpha1.GroupVersion.WithResource("providers")
)

func typeOf[T any]() reflect.Type { return reflect.TypeFor[T]() }

const tagOffers = "Offers"

// StackFilter says which stacks are meant.
type StackFilter struct {
	Tenant string `query:"tenant" maxLength:"63" pattern:"^([a-z0-9]([-a-z0-9]*[a-z0-9])?)?$" doc:"Stacks of this tenant's own, instead of those for all."`
}

// StackSchema is what clusters of a stack can choose.
type StackSchema struct {
	Provider   string           `json:"provider" doc:"The provider that the release is for."`
	Stack      string           `json:"stack" doc:"Name of the stack."`
	Release    string           `json:"release" doc:"Name of the release."`
	Kubernetes string           `json:"kubernetes" doc:"The exact version of Kubernetes."`
	Parameters []StackParameter `json:"parameters" nullable:"false" doc:"What spec.parameters of a cluster may have."`
}

// StackParameter is one of a stack.
type StackParameter struct {
	Name        string `json:"name"`
	Type        string `json:"type"`
	Required    bool   `json:"required"`
	Default     string `json:"default,omitempty"`
	Allowed     string `json:"allowed,omitempty" doc:"Which values are allowed, for people."`
	Description string `json:"description,omitempty"`
	Replaces    string `json:"replaces" doc:"Which machines are replaced when it changes."`
}

func registerStacks(a *API) error {
	huma.Register(a.huma, operation("list-stacks", http.MethodGet, "/stacks", tagOffers,
		"List what clusters can be made of"),
		func(ctx context.Context, in *struct {
			StackFilter
			Page
		}) (*list[stackObject], error) {
			ctx, cancel := context.WithTimeout(ctx, planeTimeout)
			defer cancel()
			namespace, err := a.stackNamespace(ctx, in.Tenant)
			if err != nil {
				return nil, err
			}
			l, err := listObjects[stackObject](ctx, a, stackResource, namespace, in.Page)
			if err != nil {
				return nil, a.explainStacks(ctx, in.Tenant, err)
			}
			return l, nil
		})
	huma.Register(a.huma, operation("get-stack-schema", http.MethodGet, "/stacks/{stack}/schema", tagOffers,
		"Read what clusters of a stack can choose, for each provider"), a.getStackSchema)
	return nil
}

// stackNamespace is where the stacks are: those of a tenant, or those for all.
func (a *API) stackNamespace(ctx context.Context, tenant string) (string, error) {
	if tenant == "" {
		return v1alpha1.CatalogueNamespace, nil
	}
	return a.namespaceOf(ctx, tenant)
}

func (a *API) explainStacks(ctx context.Context, tenant string, err error) error {
	if tenant == "" {
		return explain(err)
	}
	return a.explainIn(ctx, tenant, err)
}

func (a *API) getStackSchema(ctx context.Context, in *struct {
	Stack string `path:"stack" minLength:"1" maxLength:"63" pattern:"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$" doc:"Name of the stack: spec.stack.name of a cluster." example:"scs"`
	StackFilter
	Kubernetes string `query:"kubernetes" maxLength:"9" pattern:"^([0-9]\\.[0-9]+)?$" doc:"The minor of Kubernetes; without it, all there are." example:"1.36"`
}) (*list[StackSchema], error) {
	ctx, cancel := context.WithTimeout(ctx, planeTimeout)
	defer cancel()
	namespace, err := a.stackNamespace(ctx, in.Tenant)
	if err != nil {
		return nil, err
	}
	l, err := a.client.Resource(stackResource).Namespace(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, a.explainStacks(ctx, in.Tenant, err)
	}
	out := &list[StackSchema]{}
	out.Body.Items = []StackSchema{}
	found := false
	for i := range l.Items {
		s := &csv1.ClusterStack{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(l.Items[i].Object, s); err != nil {
			return nil, err
		}
		if s.Spec.Name != in.Stack || in.Kubernetes != "" && s.Spec.KubernetesVersion != in.Kubernetes {
			continue
		}
		found = true
		if s.Status.LatestRelease == nil {
			continue
		}
		one, err := a.readStackSchema(ctx, s)
		if err != nil {
			return nil, a.explainStacks(ctx, in.Tenant, err)
		}
		out.Body.Items = append(out.Body.Items, *one)
	}
	if !found {
		return nil, problemf(http.StatusNotFound, "there is no stack %s here; GET /v1/stacks lists those there are", in.Stack)
	}
	return out, nil
}

// readStackSchema reads the newest release of a stack, which has its parameters.
func (a *API) readStackSchema(ctx context.Context, s *csv1.ClusterStack) (*StackSchema, error) {
	name, kubernetes, _ := strings.Cut(*s.Status.LatestRelease, " | ")
	u, err := a.client.Resource(releaseResource).Namespace(s.Namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	r := &csv1.ClusterStackRelease{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, r); err != nil {
		return nil, err
	}
	out := &StackSchema{
		Provider: s.Spec.Provider, Stack: s.Spec.Name, Release: name, Kubernetes: kubernetes, Parameters: []StackParameter{},
	}
	for _, p := range r.Status.Parameters {
		out.Parameters = append(out.Parameters, StackParameter{
			Name: p.Name, Type: p.Type, Required: p.Required, Default: p.Default, Allowed: p.Allowed, Description: p.Description,
			Replaces: string(p.Replaces),
		})
	}
	return out, nil
}

func registerProviders(a *API) error {
	huma.Register(a.huma, operation("list-providers", http.MethodGet, "/providers", tagOffers,
		"List where clusters can be made"),
		func(ctx context.Context, in *Page) (*list[providerObject], error) {
			ctx, cancel := context.WithTimeout(ctx, planeTimeout)
			defer cancel()
			l, err := listObjects[providerObject](ctx, a, providerResource, "", *in)
			return l, explain(err)
		})
	return nil
}

// planeStatus is how the plane is, as polder status -o json says it.
type planeStatus json.RawMessage

// MarshalJSON is what the plane has said.
func (s planeStatus) MarshalJSON() ([]byte, error) { return json.RawMessage(s).MarshalJSON() }

// Schema leaves open what is in it: it is for people, and grows.
func (planeStatus) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{
		Type: huma.TypeObject, AdditionalProperties: true,
		Description: "phase, components, versions, backup, login and warnings, as polder status -o json says them.",
	}
}

const tagPlane = "Plane"

func registerPlane(a *API) error {
	version := operation("get-version", http.MethodGet, "/version", tagPlane, "Which version this is")
	version.Security = public
	huma.Register(a.huma, version, func(context.Context, *struct{}) (*struct{ Body buildinfo.Info }, error) {
		return &struct{ Body buildinfo.Info }{a.cfg.Version}, nil
	})
	huma.Register(a.huma, operation("get-plane", http.MethodGet, "/plane", tagPlane,
		"How the plane is; for its operators"),
		func(ctx context.Context, _ *struct{}) (*struct{ Body planeStatus }, error) {
			ctx, cancel := context.WithTimeout(ctx, planeTimeout)
			defer cancel()
			var raw json.RawMessage
			if err := a.getPath(ctx, planepath.Status, nil, &raw); err != nil {
				return nil, explain(err)
			}
			return &struct{ Body planeStatus }{planeStatus(raw)}, nil
		})
	huma.Register(a.huma, operation("list-releases", http.MethodGet, "/releases", tagPlane,
		"List releases of all stacks of all tenants; for operators"),
		func(ctx context.Context, in *Page) (*list[releaseObject], error) {
			ctx, cancel := context.WithTimeout(ctx, planeTimeout)
			defer cancel()
			// They are those of all tenants: of whom counts.
			l, err := listObjects[releaseObject](ctx, a, releaseResource, "", *in, "namespace")
			return l, explain(err)
		})
	return nil
}
