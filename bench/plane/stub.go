package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/polder-kaas/polder/config/samples"
)

const stubGroup = "infrastructure.cluster.x-k8s.io"

// machinesPerCluster follows from the sample: one of the control plane and two workers.
const machinesPerCluster = 3

var (
	clusters       = clusterv1.GroupVersion.WithResource("clusters")
	machines       = clusterv1.GroupVersion.WithResource("machines")
	clusterClasses = clusterv1.GroupVersion.WithResource("clusterclasses")
	stubClusters   = schema.GroupVersionResource{Group: stubGroup, Version: "v1beta1", Resource: "stubclusters"}
	stubMachines   = schema.GroupVersionResource{Group: stubGroup, Version: "v1beta1", Resource: "stubmachines"}
)

// buildClusters makes n stub clusters and plays their infrastructure until all their machines exist; it returns what
// that took. The class is there before the time starts.
func buildClusters(ctx context.Context, p *processes, a access, n int) (effort, error) {
	if err := installClass(ctx, p, a); err != nil {
		return effort{}, err
	}
	before, err := look(p.pids())
	if err != nil {
		return effort{}, err
	}
	begin := time.Now()
	for i := range n {
		c, err := stubCluster(fmt.Sprintf("bench-%03d", i))
		if err != nil {
			return effort{}, err
		}
		if err := p.await(ctx, c.GetName(), soon, func(ctx context.Context) error { return a.create(ctx, c) }); err != nil {
			return effort{}, err
		}
	}
	err = p.await(ctx, "all machines", seldom, func(ctx context.Context) error {
		if err := a.provision(ctx); err != nil {
			return err
		}
		l, err := a.client.Resource(machines).Namespace(namespace).List(ctx, metav1.ListOptions{})
		if err == nil && len(l.Items) != n*machinesPerCluster {
			err = fmt.Errorf("%d of %d machines are there", len(l.Items), n*machinesPerCluster)
		}
		return err
	})
	if err != nil {
		return effort{}, err
	}
	return p.effortSince(begin, before.cpu)
}

// installClass installs the class and waits until Cluster API has read it: clusters made earlier would wait for its
// next reconciliation.
func installClass(ctx context.Context, p *processes, a access) error {
	for _, file := range []string{"stub/crds.yaml", "stub/class.yaml"} {
		all, err := samples.Load(file)
		if err != nil {
			return err
		}
		for _, u := range all {
			// A kind is served a moment after its definition was created.
			if err := p.await(ctx, u.GetKind()+" "+u.GetName(), soon,
				func(ctx context.Context) error { return a.create(ctx, u) }); err != nil {
				return err
			}
		}
	}
	return p.await(ctx, "the class", soon, func(ctx context.Context) error {
		c, err := a.client.Resource(clusterClasses).Namespace(namespace).Get(ctx, "stub", metav1.GetOptions{})
		if err != nil {
			return err
		}
		seen, _, err := unstructured.NestedInt64(c.Object, "status", "observedGeneration")
		if err == nil && seen != c.GetGeneration() {
			err = errors.New("it has not been observed")
		}
		return err
	})
}

// stubCluster is the sample cluster, whose workers do not wait for a control plane that will
// never answer.
func stubCluster(name string) (*unstructured.Unstructured, error) {
	all, err := samples.Load("stub/cluster.yaml")
	if err != nil {
		return nil, err
	}
	c := all[0]
	c.SetName(name)
	workers, _, err := unstructured.NestedSlice(c.Object, "spec", "topology", "workers", "machineDeployments")
	if err != nil {
		return nil, err
	}
	for _, w := range workers {
		if m, ok := w.(map[string]any); ok {
			m["metadata"] = map[string]any{
				"annotations": map[string]any{
					clusterv1.MachineSetSkipPreflightChecksAnnotation: string(clusterv1.MachineSetPreflightCheckAll),
				},
			}
		}
	}
	return c, unstructured.SetNestedSlice(c.Object, workers, "spec", "topology", "workers", "machineDeployments")
}

func (a access) create(ctx context.Context, u *unstructured.Unstructured) error {
	plural, _ := meta.UnsafeGuessKindToResource(u.GroupVersionKind()) // all our kinds have regular plurals
	var r dynamic.ResourceInterface = a.client.Resource(plural)
	if u.GetKind() != "CustomResourceDefinition" {
		r = a.client.Resource(plural).Namespace(namespace)
	}
	if _, err := r.Create(ctx, u, metav1.CreateOptions{}); !apierrors.IsAlreadyExists(err) {
		return err
	}
	return nil
}

// provision plays the infrastructure provider: whatever is asked for is there at once. Nothing listens at the clusters'
// endpoint, so Cluster API tries to connect and is refused.
func (a access) provision(ctx context.Context) error {
	endpoint := func(string) any {
		return map[string]any{"controlPlaneEndpoint": map[string]any{"host": "127.0.0.1", "port": 1}}
	}
	providerID := func(name string) any { return map[string]any{"providerID": "stub://" + name} }
	return errors.Join(a.provisionAll(ctx, stubClusters, endpoint), a.provisionAll(ctx, stubMachines, providerID))
}

func (a access) provisionAll(ctx context.Context, r schema.GroupVersionResource, spec func(name string) any) error {
	c := a.client.Resource(r).Namespace(namespace)
	l, err := c.List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for _, u := range l.Items {
		if done, _, err := unstructured.NestedBool(u.Object, "status", "initialization", "provisioned"); done || err != nil {
			continue
		}
		if err := merge(ctx, c, u.GetName(), map[string]any{"spec": spec(u.GetName())}); err != nil {
			return err
		}
		status := map[string]any{"status": map[string]any{"initialization": map[string]any{"provisioned": true}}}
		if err := merge(ctx, c, u.GetName(), status, "status"); err != nil {
			return err
		}
	}
	return nil
}

func merge(ctx context.Context, c dynamic.ResourceInterface, name string, patch any, subresources ...string) error {
	b, err := json.Marshal(patch)
	if err != nil {
		return err
	}
	_, err = c.Patch(ctx, name, types.MergePatchType, b, metav1.PatchOptions{}, subresources...)
	return err
}
