// Package local tests local clusters on real processes, as an ordinary user: the built polderd
// makes them, Cluster API's own controllers drive them, and their API servers, etcd and
// controllers are the ones of Kubernetes.
package local

import (
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/polder-kaas/polder/internal/providers/local/hostapi"
	"github.com/polder-kaas/polder/test/testenv"
)

// Limits are generous: test machines are shared and slow at times. How fast it is, is for the
// benchmark to say.
const (
	createTimeout  = 8 * time.Minute
	upgradeTimeout = 12 * time.Minute
	soon           = time.Minute
)

// cluster is a local cluster under test.
type cluster struct {
	plane     *testenv.Plane
	mgmt      client.Client
	namespace string
	name      string
}

// options alter a cluster and its class before they are created.
type options struct {
	cluster func(*clusterv1.Cluster)
	class   func(*unstructured.Unstructured)
}

// create applies the sample class and cluster in a namespace of their own.
func create(t *testing.T, p *testenv.Plane, name, version string, opts options) *cluster {
	t.Helper()
	c := &cluster{plane: p, mgmt: p.Client(t), namespace: p.CreateNamespace(t), name: name}
	testenv.InstallLocalClass(t, c.mgmt, c.namespace, opts.class)
	o := &clusterv1.Cluster{}
	convert(t, testenv.LocalCluster(t, c.namespace, name, version), o)
	if opts.cluster != nil {
		opts.cluster(o)
	}
	if err := c.mgmt.Create(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	return c
}

func (c *cluster) get(t *testing.T) (*clusterv1.Cluster, error) {
	t.Helper()
	o := &clusterv1.Cluster{}
	return o, c.mgmt.Get(t.Context(), client.ObjectKey{Namespace: c.namespace, Name: c.name}, o)
}

// awaitAvailable waits until Cluster API says that the whole cluster is there.
func (c *cluster) awaitAvailable(t *testing.T, timeout time.Duration) {
	t.Helper()
	testenv.Eventually(t, timeout, func() error {
		o, err := c.get(t)
		if err != nil {
			return err
		}
		i := slices.IndexFunc(o.Status.Conditions, func(x metav1.Condition) bool { return x.Type == clusterv1.AvailableCondition })
		if i < 0 || o.Status.Conditions[i].Status != metav1.ConditionTrue {
			return fmt.Errorf("the cluster is not available: %v", o.Status.Conditions)
		}
		return nil
	})
}

// patch changes the cluster, again if somebody else did so meanwhile.
func (c *cluster) patch(t *testing.T, change func(*clusterv1.Cluster)) {
	t.Helper()
	testenv.Eventually(t, soon, func() error {
		o, err := c.get(t)
		if err != nil {
			return err
		}
		before := o.DeepCopy()
		change(o)
		return c.mgmt.Patch(t.Context(), o, client.MergeFrom(before))
	})
}

func (c *cluster) config(t *testing.T) *rest.Config {
	t.Helper()
	return testenv.WorkloadConfig(t, c.mgmt, c.namespace, c.name)
}

func (c *cluster) workload(t *testing.T) kubernetes.Interface {
	t.Helper()
	k, err := kubernetes.NewForConfig(c.config(t))
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func (c *cluster) host(t *testing.T) hostapi.Status {
	t.Helper()
	s, _, err := c.plane.HostStatus(t.Context(), c.namespace, c.name)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// awaitNodes waits until the cluster has exactly this many nodes, all ready and of this version.
func (c *cluster) awaitNodes(t *testing.T, timeout time.Duration, controlPlane, workers int, version string) {
	t.Helper()
	k := c.workload(t)
	testenv.Eventually(t, timeout, func() error {
		l, err := k.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
		if err != nil {
			return err
		}
		var cps, ws int
		for _, n := range l.Items {
			if v := n.Status.NodeInfo.KubeletVersion; v != version {
				return fmt.Errorf("node %s is of version %s", n.Name, v)
			}
			if !nodeReady(n) {
				return fmt.Errorf("node %s is not ready: %v", n.Name, n.Status.Conditions)
			}
			if _, ok := n.Labels["node-role.kubernetes.io/control-plane"]; ok {
				cps++
			} else {
				ws++
			}
		}
		if cps != controlPlane || ws != workers {
			return fmt.Errorf("there are %d control-plane nodes and %d workers, want %d and %d", cps, ws, controlPlane, workers)
		}
		return nil
	})
}

func nodeReady(n corev1.Node) bool {
	return slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}

// awaitControlPlane waits until the KubeadmControlPlane has this many replicas of this version, and
// is done with them.
func (c *cluster) awaitControlPlane(t *testing.T, timeout time.Duration, replicas int32, version string) {
	t.Helper()
	testenv.Eventually(t, timeout, func() error {
		l := &controlplanev1.KubeadmControlPlaneList{}
		if err := c.mgmt.List(t.Context(), l, client.InNamespace(c.namespace)); err != nil {
			return err
		}
		if len(l.Items) != 1 {
			return fmt.Errorf("there are %d control planes", len(l.Items))
		}
		s := l.Items[0].Status
		for what, have := range map[string]*int32{"replicas": s.Replicas, "ready": s.ReadyReplicas, "up to date": s.UpToDateReplicas} {
			if have == nil || *have != replicas {
				return fmt.Errorf("%s: %v, want %d; %v", what, have, replicas, s.Conditions)
			}
		}
		if len(s.Versions) != 1 || s.Versions[0].Version != version {
			return fmt.Errorf("versions %v, want %s", s.Versions, version)
		}
		return nil
	})
}
