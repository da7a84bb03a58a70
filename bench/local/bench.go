package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/ptr"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/polder-kaas/polder/config/samples"
)

const (
	oldVersion = "v1.36.6"
	newVersion = "v1.37.1"
	patience   = 10 * time.Minute
	settle     = 45 * time.Second
)

type row struct{ what, measured, aim string }

type bench struct {
	client client.Client
	data   string
	rows   []row
}

func newScheme() (*runtime.Scheme, error) {
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, clusterv1.AddToScheme, controlplanev1.AddToScheme} {
		if err := add(s); err != nil {
			return nil, err
		}
	}
	return s, nil
}

func (b *bench) add(what, aim, format string, args ...any) {
	b.rows = append(b.rows, row{what, fmt.Sprintf(format, args...), aim})
	say("%s: %s", what, fmt.Sprintf(format, args...))
}

func (b *bench) print(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	fmt.Fprintln(t, "what\tmeasured\taim")
	for _, r := range b.rows {
		fmt.Fprintf(t, "%s\t%s\t%s\n", r.what, r.measured, r.aim)
	}
	return t.Flush()
}

// class installs the sample class and waits until Cluster API knows it.
func (b *bench) class(ctx context.Context) error {
	us, err := samples.Load("local/class.yaml")
	if err != nil {
		return err
	}
	for _, u := range us {
		u.SetNamespace(corev1.NamespaceDefault)
		if err := b.client.Create(ctx, u); err != nil {
			return err
		}
	}
	return b.until(ctx, "the class", func() (bool, error) {
		cc := &clusterv1.ClusterClass{}
		err := b.client.Get(ctx, client.ObjectKey{Namespace: corev1.NamespaceDefault, Name: "local"}, cc)
		return err == nil && len(cc.Status.Variables) > 0, err
	})
}

func (b *bench) until(ctx context.Context, what string, done func() (bool, error)) error {
	var last error
	err := wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, patience, true, func(context.Context) (bool, error) {
		ok, err := done()
		last = err
		return ok && err == nil, nil
	})
	if err != nil {
		return fmt.Errorf("waiting for %s: %w: %w", what, err, last)
	}
	return nil
}

// create makes a cluster and returns how long it took to be available.
func (b *bench) create(ctx context.Context, name, version string, controlPlanes, workers int32) (time.Duration, error) {
	us, err := samples.Load("local/cluster.yaml")
	if err != nil {
		return 0, err
	}
	c := &clusterv1.Cluster{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(us[0].Object, c); err != nil {
		return 0, err
	}
	c.Name, c.Namespace = name, corev1.NamespaceDefault
	c.Spec.Topology.Version = version
	c.Spec.Topology.ControlPlane.Replicas = ptr.To(controlPlanes)
	c.Spec.Topology.Workers.MachineDeployments[0].Replicas = ptr.To(workers)
	begin := time.Now()
	if err := b.client.Create(ctx, c); err != nil {
		return 0, err
	}
	return b.since(begin, b.available(ctx, name, controlPlanes, workers, version))
}

func (b *bench) since(begin time.Time, err error) (time.Duration, error) {
	return time.Since(begin), err
}

// available waits until the cluster says so and all machines run at the version.
func (b *bench) available(ctx context.Context, name string, controlPlanes, workers int32, version string) error {
	key := client.ObjectKey{Namespace: corev1.NamespaceDefault, Name: name}
	return b.until(ctx, "cluster "+name, func() (bool, error) {
		c := &clusterv1.Cluster{}
		if err := b.client.Get(ctx, key, c); err != nil {
			return false, err
		}
		if !meta.IsStatusConditionTrue(c.Status.Conditions, clusterv1.AvailableCondition) {
			return false, nil
		}
		ms := &clusterv1.MachineList{}
		if err := b.client.List(ctx, ms, client.InNamespace(key.Namespace), client.MatchingLabels{clusterv1.ClusterNameLabel: name}); err != nil {
			return false, err
		}
		ready := slices.DeleteFunc(ms.Items, func(m clusterv1.Machine) bool {
			return m.Spec.Version != version || !meta.IsStatusConditionTrue(m.Status.Conditions, clusterv1.ReadyCondition)
		})
		return len(ready) == int(controlPlanes+workers) && len(ms.Items) == len(ready), nil
	})
}

// change patches the cluster and waits until it is as wanted.
func (b *bench) change(ctx context.Context, name, version string, controlPlanes, workers int32) (time.Duration, error) {
	c := &clusterv1.Cluster{}
	if err := b.client.Get(ctx, client.ObjectKey{Namespace: corev1.NamespaceDefault, Name: name}, c); err != nil {
		return 0, err
	}
	before := c.DeepCopy()
	c.Spec.Topology.Version = version
	c.Spec.Topology.ControlPlane.Replicas = ptr.To(controlPlanes)
	c.Spec.Topology.Workers.MachineDeployments[0].Replicas = ptr.To(workers)
	begin := time.Now()
	if err := b.client.Patch(ctx, c, client.MergeFrom(before)); err != nil {
		return 0, err
	}
	return b.since(begin, b.available(ctx, name, controlPlanes, workers, version))
}

func (b *bench) remove(ctx context.Context, name string) (time.Duration, error) {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(clusterv1.GroupVersion.WithKind("Cluster"))
	u.SetNamespace(corev1.NamespaceDefault)
	u.SetName(name)
	begin := time.Now()
	if err := b.client.Delete(ctx, u); err != nil {
		return 0, err
	}
	return b.since(begin, b.until(ctx, "the end of "+name, func() (bool, error) {
		err := b.client.Get(ctx, client.ObjectKeyFromObject(u), u)
		return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
	}))
}
