package topology

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/polder-kaas/polder/internal/lineage"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/polder-kaas/polder/provider"
)

// ReleaseForProvider returns what providers are told of a release: the variables and worker classes of its ClusterClass
// in the plane.
func ReleaseForProvider(ctx context.Context, c client.Reader, rel lineage.CatalogueEntry) (provider.Release, error) {
	out := provider.Release{Name: rel.Tag(), Kubernetes: rel.Object.Status.KubernetesVersion}
	class := &clusterv1.ClusterClass{}
	if err := c.Get(ctx, rel.ClassKey(), class); err != nil {
		return out, fmt.Errorf("reading the class of release %s: %w", rel.Tag(), err)
	}
	for _, v := range class.Spec.Variables {
		schema, err := schemaToMap(v.Schema.OpenAPIV3Schema)
		if err != nil {
			return out, fmt.Errorf("variable %s of class %s: %w", v.Name, class.Name, err)
		}
		out.Variables = append(out.Variables, provider.Variable{
			Name: v.Name, Required: v.Required != nil && *v.Required, Schema: schema,
		})
	}
	for _, w := range class.Spec.Workers.MachineDeployments {
		out.Workers = append(out.Workers, w.Class)
	}
	return out, nil
}

// schemaToMap converts a schema to a map as JSON has it.
func schemaToMap(v clusterv1.JSONSchemaProps) (map[string]any, error) {
	b, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	var out map[string]any
	return out, json.Unmarshal(b, &out)
}
