package main

import (
	"bytes"
	"context"
	"fmt"
	"io"

	"sigs.k8s.io/yaml"

	"github.com/polder-kaas/polder/config/samples"
)

// makeClusters makes the sample local cluster, once for each name: one machine for the control plane and two
// workers. It returns the paths of their kubeconfigs, by name.
func (p *plane) makeClusters(ctx context.Context, out io.Writer, version string,
	names ...string) (map[string]string, error) {
	class, err := sampleManifests("local/class.yaml", nil)
	if err != nil {
		return nil, err
	}
	if _, err := p.runKubectl(ctx, bytes.NewReader(class), "apply", "-f", "-"); err != nil {
		return nil, err
	}
	if _, err := p.runKubectl(ctx, nil, "wait", "--for=condition=RefVersionsUpToDate", "clusterclass/local",
		"--timeout="+waitTimeout); err != nil {
		return nil, err
	}
	for _, n := range names {
		cluster, err := sampleManifests("local/cluster.yaml",
			func(o map[string]any) error { return setNameAndVersion(o, n, version) })
		if err != nil {
			return nil, err
		}
		if _, err := p.runKubectl(ctx, bytes.NewReader(cluster), "apply", "-f", "-"); err != nil {
			return nil, err
		}
	}
	// All clusters are made before the first is waited for, so that they start side by side.
	files := map[string]string{}
	for _, n := range names {
		if _, err := p.runKubectl(ctx, nil, "wait", "--for=condition=Available", "cluster/"+n,
			"--timeout="+waitTimeout); err != nil {
			return nil, err
		}
		fmt.Fprintf(out, "cluster %s is available\n", n)
		if files[n], err = p.writeKubeconfig(ctx, n); err != nil {
			return nil, err
		}
	}
	return files, nil
}

// sampleManifests gives the YAML of the objects of a sample, after a change.
func sampleManifests(file string, change func(map[string]any) error) ([]byte, error) {
	objects, err := samples.Load(file)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	for _, o := range objects {
		if change != nil {
			if err := change(o.Object); err != nil {
				return nil, err
			}
		}
		b, err := yaml.Marshal(o.Object)
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(&out, "---\n%s", b)
	}
	return out.Bytes(), nil
}

// setNameAndVersion gives the sample cluster a name and a version.
func setNameAndVersion(o map[string]any, name, version string) error {
	metadata, _ := o["metadata"].(map[string]any)
	spec, _ := o["spec"].(map[string]any)
	topology, _ := spec["topology"].(map[string]any)
	if metadata == nil || topology == nil {
		return fmt.Errorf("the sample cluster has no name or no topology")
	}
	metadata["name"], topology["version"] = name, version
	return nil
}
