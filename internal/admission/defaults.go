package admission

import (
	"context"
	"fmt"
	"slices"

	"github.com/polder-kaas/polder/api/v1alpha1"
	"github.com/polder-kaas/polder/internal/lineage"
	"github.com/polder-kaas/polder/internal/tenancy"
)

// Default fills in fields that were left out and depend on what is installed: the provider, if there is only one that
// may be used, and the newest minor of Kubernetes. A cluster keeps what it got in this way, also if the field is left
// out again.
func (c *Checker) Default(ctx context.Context, o, old *v1alpha1.WorkloadCluster) error {
	if old != nil {
		if o.Spec.Provider == "" {
			o.Spec.Provider = old.Spec.Provider
		}
		if o.Spec.Stack.KubernetesVersion == "" {
			o.Spec.Stack.KubernetesVersion = old.Spec.Stack.KubernetesVersion
		}
		return nil
	}
	if o.Spec.Provider != "" && o.Spec.Stack.KubernetesVersion != "" {
		return nil
	}
	var l v1alpha1.ProviderList
	if err := c.Client.List(ctx, &l); err != nil {
		return fmt.Errorf("reading the providers: %w", err)
	}
	if o.Spec.Provider == "" {
		only, err := c.onlyProvider(ctx, o.Namespace, l.Items)
		if err != nil {
			return err
		}
		o.Spec.Provider = only
	}
	if o.Spec.Stack.KubernetesVersion != "" {
		return nil
	}
	for i := range l.Items {
		if l.Items[i].Name != o.Spec.Provider {
			continue
		}
		all, err := lineage.ReadCatalogue(ctx, c.Client, o.Namespace)
		if err != nil {
			return err
		}
		o.Spec.Stack.KubernetesVersion = all.NewestMinor(stackProviderOf(&l.Items[i]), o.Spec.Stack.Name,
			o.Spec.Stack.Channel)
	}
	return nil
}

// onlyProvider returns the provider if there is only one that a namespace may use; "" if there are several, or none.
func (c *Checker) onlyProvider(ctx context.Context, namespace string, all []v1alpha1.Provider) (string, error) {
	t, err := tenancy.Of(ctx, c.Client, namespace)
	if err != nil {
		return "", err
	}
	var names []string
	for i := range all {
		if t == nil || len(t.Spec.Allow.Providers) == 0 || slices.Contains(t.Spec.Allow.Providers, all[i].Name) {
			names = append(names, all[i].Name)
		}
	}
	if len(names) != 1 {
		return "", nil
	}
	return names[0], nil
}
