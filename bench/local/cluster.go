package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/polder-kaas/polder/config/samples"
)

const (
	oldVersion   = "v1.36.6"
	newVersion   = "v1.37.1"
	pollInterval = 50 * time.Millisecond
)

// shape is what a cluster is made of.
type shape struct {
	version                string
	controlPlanes, workers int32
}

func (s shape) applyTo(c *clusterv1.Cluster) {
	c.Spec.Topology.Version = s.version
	c.Spec.Topology.ControlPlane.Replicas = ptr.To(s.controlPlanes)
	c.Spec.Topology.Workers.MachineDeployments[0].Replicas = ptr.To(s.workers)
}

func clusterKey(name string) client.ObjectKey {
	return client.ObjectKey{Namespace: corev1.NamespaceDefault, Name: name}
}

// installClass installs the sample class and waits until Cluster API knows it.
func (b *bench) installClass(ctx context.Context) error {
	us, err := samples.Load("local/class.yaml")
	if err != nil {
		return err
	}
	for _, u := range us {
		u.SetNamespace(corev1.NamespaceDefault)
		if err := b.Client.Create(ctx, u); err != nil {
			return err
		}
	}
	return b.Poll(pollInterval).Do(ctx, "the class", func(ctx context.Context) error {
		cc := &clusterv1.ClusterClass{}
		err := b.Client.Get(ctx, clusterKey("local"), cc)
		if err == nil && len(cc.Status.Variables) == 0 {
			err = errors.New("it has no variables")
		}
		return err
	})
}

// createCluster makes a cluster and returns how long it took to be available.
func (b *bench) createCluster(ctx context.Context, name string, s shape) (time.Duration, error) {
	us, err := samples.Load("local/cluster.yaml")
	if err != nil {
		return 0, err
	}
	c := &clusterv1.Cluster{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(us[0].Object, c); err != nil {
		return 0, err
	}
	c.Name, c.Namespace = name, corev1.NamespaceDefault
	s.applyTo(c)
	begin := time.Now()
	if err := b.Client.Create(ctx, c); err != nil {
		return 0, err
	}
	err = b.awaitAvailable(ctx, name, s)
	return time.Since(begin), err
}

// changeCluster patches a cluster and returns how long it took to be as wanted.
func (b *bench) changeCluster(ctx context.Context, name string, s shape) (time.Duration, error) {
	c := &clusterv1.Cluster{}
	if err := b.Client.Get(ctx, clusterKey(name), c); err != nil {
		return 0, err
	}
	before := c.DeepCopy()
	s.applyTo(c)
	begin := time.Now()
	if err := b.Client.Patch(ctx, c, client.MergeFrom(before)); err != nil {
		return 0, err
	}
	err := b.awaitAvailable(ctx, name, s)
	return time.Since(begin), err
}

// deleteCluster deletes a cluster and returns how long it took to be gone.
func (b *bench) deleteCluster(ctx context.Context, name string) (time.Duration, error) {
	c := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: corev1.NamespaceDefault, Name: name}}
	begin := time.Now()
	if err := b.Client.Delete(ctx, c); err != nil {
		return 0, err
	}
	err := b.AwaitGone(ctx, c, pollInterval)
	return time.Since(begin), err
}

// awaitAvailable waits until the cluster says that it is available and all its machines are ready at the version.
func (b *bench) awaitAvailable(ctx context.Context, name string, s shape) error {
	return b.Poll(pollInterval).Do(ctx, "cluster "+name, func(ctx context.Context) error {
		c := &clusterv1.Cluster{}
		if err := b.Client.Get(ctx, clusterKey(name), c); err != nil {
			return err
		}
		if !meta.IsStatusConditionTrue(c.Status.Conditions, clusterv1.AvailableCondition) {
			return errors.New("it is not available")
		}
		ms := &clusterv1.MachineList{}
		ofCluster := client.MatchingLabels{clusterv1.ClusterNameLabel: name}
		if err := b.Client.List(ctx, ms, client.InNamespace(c.Namespace), ofCluster); err != nil {
			return err
		}
		ready := 0
		for _, m := range ms.Items {
			if m.Spec.Version == s.version && meta.IsStatusConditionTrue(m.Status.Conditions, clusterv1.ReadyCondition) {
				ready++
			}
		}
		if want := int(s.controlPlanes + s.workers); ready != want || len(ms.Items) != want {
			return fmt.Errorf("%d of %d machines are ready with %s, %d are wanted", ready, len(ms.Items), s.version, want)
		}
		return nil
	})
}
