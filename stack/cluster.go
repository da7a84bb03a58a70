package stack

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	clusterv1beta1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/polder-kaas/polder/stack/class"
	"github.com/polder-kaas/polder/stack/document"
)

// ClusterData are the objects that templates of values see.
type ClusterData struct {
	Cluster      map[string]any
	ControlPlane map[string]any
	InfraCluster map[string]any
}

// templateData gives the objects by the names that templates know them by. An object that is not there is
// empty and not nil, so that templates can ask for its fields.
func (d ClusterData) templateData() map[string]any {
	out := map[string]any{}
	for name, o := range map[string]map[string]any{"Cluster": d.Cluster, "ControlPlane": d.ControlPlane,
		"InfraCluster": d.InfraCluster} {
		if o == nil {
			o = map[string]any{}
		}
		out[name] = o
	}
	return out
}

// ParseClusterData reads objects for templates of values from YAML documents: a Cluster and, if
// templates ask for them, its control plane and its infrastructure.
func ParseClusterData(file string, b []byte) (ClusterData, error) {
	docs, err := document.Parse(file, b)
	if err != nil {
		return ClusterData{}, err
	}
	var d ClusterData
	for _, doc := range docs {
		m, _ := doc.Value().(map[string]any)
		kind, _ := m["kind"].(string)
		version, _ := m["apiVersion"].(string)
		switch {
		case kind == "Cluster" && strings.HasPrefix(version, class.Group+"/"):
			d.Cluster = m
		// Providers choose the names of their kinds; only the endings are common to all.
		case strings.HasSuffix(kind, "ControlPlane"):
			d.ControlPlane = m
		case strings.HasSuffix(kind, "Cluster"):
			d.InfraCluster = m
		default:
			return d, &document.Error{
				File: file, Line: doc.Line(),
				Reason: fmt.Sprintf("kind %q is neither a Cluster of %s, its control plane nor its infrastructure", kind,
					class.Group),
			}
		}
	}
	if d.Cluster == nil {
		return d, &document.Error{File: file, Reason: "there is no Cluster of " + class.Group}
	}
	return d, nil
}

// ConvertTo gives the data with its Cluster in a version of Cluster API's types: templates are written for
// one version, that of their class.
func (d ClusterData) ConvertTo(version string) (ClusterData, error) {
	have, _ := d.Cluster["apiVersion"].(string)
	if d.Cluster == nil || have == class.Group+"/"+version {
		return d, nil
	}
	var out any
	var err error
	switch {
	case have == class.Group+"/"+class.V1Beta2 && version == class.V1Beta1:
		var in clusterv1.Cluster
		old := &clusterv1beta1.Cluster{}
		if err = convertJSON(d.Cluster, &in); err == nil {
			err = clusterv1beta1.Convert_v1beta2_Cluster_To_v1beta1_Cluster(&in, old, nil)
		}
		old.APIVersion, old.Kind = class.Group+"/"+version, "Cluster"
		out = old
	case have == class.Group+"/"+class.V1Beta1 && version == class.V1Beta2:
		var in clusterv1beta1.Cluster
		recent := &clusterv1.Cluster{}
		if err = convertJSON(d.Cluster, &in); err == nil {
			err = clusterv1beta1.Convert_v1beta1_Cluster_To_v1beta2_Cluster(&in, recent, nil)
		}
		recent.APIVersion, recent.Kind = class.Group+"/"+version, "Cluster"
		out = recent
	default:
		return d, fmt.Errorf("a Cluster of %s cannot be turned into one of %s", have, version)
	}
	if err != nil {
		return d, fmt.Errorf("turning a Cluster of %s into one of %s: %w", have, version, err)
	}
	d.Cluster = map[string]any{}
	return d, convertJSON(out, &d.Cluster)
}

func convertJSON(from, into any) error {
	b, err := json.Marshal(from)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(b, into); err != nil {
		return errors.New(strings.TrimPrefix(err.Error(), "json: "))
	}
	return nil
}

// SampleClusterData gives the data of a cluster that is up and running, with all variables at their defaults:
// for looking at what a release renders to.
func (r *Release) SampleClusterData(c *Class) (ClusterData, error) {
	const name, namespace = "sample", "default"
	variables := c.Defaults()
	if variables == nil {
		variables = []any{}
	}
	topology := map[string]any{
		"classRef":     map[string]any{"name": r.Name.Class()},
		"version":      r.Metadata.Versions.Kubernetes,
		"controlPlane": map[string]any{"replicas": int64(1)},
		"variables":    variables,
	}
	if len(c.MachineDeploymentClasses) > 0 {
		topology["workers"] = map[string]any{
			"machineDeployments": []any{
				map[string]any{"class": c.MachineDeploymentClasses[0], "name": "default", "replicas": int64(2)},
			},
		}
	}
	ref := func(kind string) map[string]any {
		return map[string]any{"apiGroup": "example.org", "kind": kind, "name": name}
	}
	d := ClusterData{
		Cluster: map[string]any{
			"apiVersion": class.Group + "/" + class.V1Beta2,
			"kind":       "Cluster",
			"metadata":   map[string]any{"name": name, "namespace": namespace, "uid": "00000000-0000-4000-8000-000000000000"},
			"spec": map[string]any{
				"clusterNetwork": map[string]any{
					"pods":          map[string]any{"cidrBlocks": []any{"10.244.0.0/16"}},
					"services":      map[string]any{"cidrBlocks": []any{"10.96.0.0/16"}},
					"serviceDomain": "cluster.local",
				},
				"controlPlaneEndpoint": map[string]any{"host": "192.0.2.1", "port": int64(6443)},
				"controlPlaneRef":      ref("ControlPlane"),
				"infrastructureRef":    ref("InfraCluster"),
				"topology":             topology,
			},
		},
		ControlPlane: map[string]any{
			"metadata": map[string]any{"name": name, "namespace": namespace},
			"spec":     map[string]any{"version": r.Metadata.Versions.Kubernetes, "replicas": int64(1)},
		},
		InfraCluster: map[string]any{
			"metadata": map[string]any{"name": name, "namespace": namespace}, "spec": map[string]any{},
		},
	}
	// It is written in the newer types above; templates expect those of their class.
	return d.ConvertTo(c.Version)
}
