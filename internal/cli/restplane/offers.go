package restplane

import (
	"context"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	csv1 "github.com/polder-kaas/polder/api/clusterstack/v1alpha1"
	"github.com/polder-kaas/polder/api/v1alpha1"
	"github.com/polder-kaas/polder/client"
	"github.com/polder-kaas/polder/stack/version"
)

func (c *call) readProviders(ctx context.Context) ([]object, error) {
	return c.pages(ctx, func(token string) (*http.Response, error) {
		return c.api.ListProviders(ctx, &client.ListProvidersParams{PageSize: pageSize, PageToken: token})
	})
}

func (c *call) listProviders(ctx context.Context) (any, error) {
	all, err := c.readProviders(ctx)
	return list(v1alpha1.GroupVersion.String(), "ProviderList", "", all), err
}

func (c *call) getProvider(ctx context.Context) (any, error) {
	all, err := c.readProviders(ctx)
	if err != nil {
		return nil, err
	}
	for _, o := range all {
		if name, _ := versionOf(o); name == c.name {
			return o, nil
		}
	}
	return nil, apierrors.NewNotFound(c.groupResource(), c.name)
}

// stacksOf is the tenant whose own stacks are meant; those for all are nobody's.
func (c *call) stacksOf() string {
	if c.namespace == v1alpha1.CatalogueNamespace {
		return ""
	}
	return c.tenant()
}

func (c *call) listStacks(ctx context.Context) (any, error) {
	all, err := c.pages(ctx, func(token string) (*http.Response, error) {
		return c.api.ListStacks(ctx, &client.ListStacksParams{Tenant: c.stacksOf(), PageSize: pageSize, PageToken: token})
	})
	return list(csv1.GroupVersion.String(), "ClusterStackList", "", all), err
}

// getRelease returns a release with its parameters, of those that are the newest of their stacks: of others the REST
// API says nothing.
func (c *call) getRelease(ctx context.Context) (any, error) {
	name, err := version.ParseReleaseName(c.name)
	if err != nil {
		return nil, apierrors.NewNotFound(c.groupResource(), c.name)
	}
	var l client.StackSchemaList
	res, err := c.api.GetStackSchema(ctx, name.Name, &client.GetStackSchemaParams{
		Tenant: c.stacksOf(), Kubernetes: name.Kubernetes.MinorString(),
	})
	if err := c.read(ctx, res, err, &l); err != nil {
		return nil, err
	}
	for _, s := range l.Items {
		if s.Release != c.name {
			continue
		}
		out := &csv1.ClusterStackRelease{
			TypeMeta:   metav1.TypeMeta{APIVersion: csv1.GroupVersion.String(), Kind: "ClusterStackRelease"},
			ObjectMeta: metav1.ObjectMeta{Name: c.name, Namespace: c.namespace},
		}
		for _, p := range s.Parameters {
			out.Status.Parameters = append(out.Status.Parameters, csv1.Parameter{
				Name: p.Name, Type: p.Type, Required: p.Required, Default: p.Default, Allowed: p.Allowed,
				Description: p.Description, Replaces: csv1.ReplacedMachines(p.Replaces),
			})
		}
		return out, nil
	}
	return nil, apierrors.NewNotFound(c.groupResource(), c.name)
}
