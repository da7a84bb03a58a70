package local

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/remotecommand"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/polder-kaas/polder/internal/providers/local/hostapi"
	"github.com/polder-kaas/polder/test/testenv"
)

const (
	olderVersion = "v1.35.10"
	oldVersion   = "v1.36.6"
	newVersion   = "v1.37.1"
)

// TestWalk takes one cluster through its whole life. Each step stands on the one before.
func TestWalk(t *testing.T) {
	p := testenv.StartPlane(t)
	c := create(t, p, "walk", oldVersion, options{})
	for _, step := range []struct {
		name string
		do   func(*testing.T, *cluster)
	}{
		{"comes up", comesUp},
		{"emulates the older minor", emulates},
		{"rolls out a deployment", rollsOut},
		{"explains what it cannot do", explains},
		{"scales its workers", scalesWorkers},
		{"grows to three control planes", growsToThree},
		{"is upgraded without a failed request", isUpgraded},
		{"survives the loss of an API server", survivesAPIServer},
		{"survives the loss of its host", survivesHost},
		{"survives the loss of polderd", survivesPlane},
		{"shrinks to one control plane", shrinksToOne},
		{"is deleted and leaves nothing", isDeleted},
	} {
		if !t.Run(step.name, func(t *testing.T) { step.do(t, c) }) {
			return
		}
	}
}

func comesUp(t *testing.T, c *cluster) {
	c.awaitAvailable(t, createTimeout)
	c.awaitNodes(t, soon, 1, 2, oldVersion)
	nodes, err := c.workload(t).CoreV1().Nodes().List(t.Context(), metav1.ListOptions{LabelSelector: "polder.dev/simulated=true"})
	if err != nil || len(nodes.Items) != 3 {
		t.Fatalf("nodes that say they are simulated: %d, %v; want 3", len(nodes.Items), err)
	}
	for _, n := range nodes.Items {
		if _, cp := n.Labels["node-role.kubernetes.io/control-plane"]; cp {
			if n.Labels[corev1.LabelTopologyZone] == "" || len(n.Spec.Taints) == 0 {
				t.Errorf("control-plane node has no zone or taint: %v, %v", n.Labels, n.Spec.Taints)
			}
			continue
		}
		if n.Labels["node.polder.dev/pool"] != "default" || n.Labels["node.polder.dev/role"] != "worker" {
			t.Errorf("labels of machine and kubeadm are not both on %s: %v", n.Name, n.Labels)
		}
		if got := n.Status.Capacity.Memory().String(); got != "8Gi" {
			t.Errorf("memory of %s is %s", n.Name, got)
		}
	}
	for _, m := range c.host(t).Machines {
		if len(m.Boot.NotHonored) > 0 {
			t.Errorf("%s does not honour %v", m.Name, m.Boot.NotHonored)
		}
	}
}

func emulates(t *testing.T, c *cluster) {
	b, err := c.workload(t).Discovery().RESTClient().Get().AbsPath("/version").DoRaw(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var v struct{ EmulationMinor string }
	decode(t, b, &v)
	if v.EmulationMinor != "36" {
		t.Errorf("the API server emulates minor %q: %s", v.EmulationMinor, b)
	}
}

func rollsOut(t *testing.T, c *cluster) {
	k := c.workload(t)
	labels := map[string]string{"app": "web"}
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "default"}, Spec: appsv1.DeploymentSpec{
		Replicas: ptr.To[int32](3), Selector: &metav1.LabelSelector{MatchLabels: labels},
		Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "example.org/web:1"}}},
		},
	}}
	if _, err := k.AppsV1().Deployments("default").Create(t.Context(), d, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	testenv.Eventually(t, soon, func() error {
		have, err := k.AppsV1().Deployments("default").Get(t.Context(), "web", metav1.GetOptions{})
		if err != nil || have.Status.AvailableReplicas != 3 {
			return fmt.Errorf("available: %d of 3, %w", have.Status.AvailableReplicas, err)
		}
		return nil
	})
	pods, err := k.CoreV1().Pods("default").List(t.Context(), metav1.ListOptions{LabelSelector: "app=web"})
	if err != nil {
		t.Fatal(err)
	}
	b, err := k.CoreV1().Pods("default").GetLogs(pods.Items[0].Name, &corev1.PodLogOptions{}).DoRaw(t.Context())
	if err != nil || !strings.Contains(string(b), "is simulated on node "+pods.Items[0].Spec.NodeName) {
		t.Errorf("log of a simulated pod: %q, %v", b, err)
	}
	if err := k.CoreV1().Pods("default").Delete(t.Context(), pods.Items[0].Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	testenv.Eventually(t, soon, func() error {
		_, err := k.CoreV1().Pods("default").Get(t.Context(), pods.Items[0].Name, metav1.GetOptions{})
		if !apierrors.IsNotFound(err) {
			return fmt.Errorf("the deleted pod is still there: %w", err)
		}
		return nil
	})
}

// explains: the log of a real process is its own, and what cannot be done is refused with a reason.
func explains(t *testing.T, c *cluster) {
	k := c.workload(t)
	pods, err := k.CoreV1().Pods("kube-system").List(t.Context(), metav1.ListOptions{LabelSelector: "component=kube-scheduler"})
	if err != nil || len(pods.Items) != 1 {
		t.Fatalf("mirror pods of the scheduler: %d, %v", len(pods.Items), err)
	}
	b, err := k.CoreV1().Pods("kube-system").GetLogs(pods.Items[0].Name, &corev1.PodLogOptions{TailLines: ptr.To[int64](1)}).DoRaw(t.Context())
	if err != nil || strings.Count(string(b), "\n") != 1 {
		t.Errorf("last line of the scheduler: %q, %v", b, err)
	}
	url := k.CoreV1().RESTClient().Post().Namespace("kube-system").Resource("pods").Name(pods.Items[0].Name).SubResource("exec").
		VersionedParams(&corev1.PodExecOptions{Command: []string{"ls"}, Stdout: true}, scheme.ParameterCodec).URL()
	e, err := remotecommand.NewSPDYExecutor(c.config(t), "POST", url)
	if err != nil {
		t.Fatal(err)
	}
	err = e.StreamWithContext(t.Context(), remotecommand.StreamOptions{Stdout: io.Discard})
	if err == nil || !strings.Contains(err.Error(), "simulated machine") {
		t.Errorf("exec in a simulated machine: %v; want a refusal with its reason", err)
	}
}

func scalesWorkers(t *testing.T, c *cluster) {
	for _, n := range []int32{4, 2} {
		c.patch(t, func(o *clusterv1.Cluster) { o.Spec.Topology.Workers.MachineDeployments[0].Replicas = ptr.To(n) })
		c.awaitNodes(t, createTimeout, 1, int(n), oldVersion)
	}
}

func growsToThree(t *testing.T, c *cluster) {
	c.patch(t, func(o *clusterv1.Cluster) { o.Spec.Topology.ControlPlane.Replicas = ptr.To[int32](3) })
	c.awaitControlPlane(t, createTimeout, 3, oldVersion)
	if names := members(t, c, machineWithStore(t, c)); len(names) != 3 {
		t.Errorf("members of the store: %v, want three", names)
	}
	if s := c.host(t); len(s.Serving) != 3 {
		t.Errorf("behind the endpoint are %v, want all three", s.Serving)
	}
}

func isUpgraded(t *testing.T, c *cluster) { upgrade(t, c, newVersion) }

// upgrade sends requests all the time, over one connection and over new ones, while machines are replaced.
func upgrade(t *testing.T, c *cluster, version string) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	loads := []*load{startLoad(ctx, t, c, false), startLoad(ctx, t, c, true)}
	c.patch(t, func(o *clusterv1.Cluster) { o.Spec.Topology.Version = version })
	c.awaitControlPlane(t, upgradeTimeout, 3, version)
	c.awaitNodes(t, upgradeTimeout, 3, 2, version)
	stop()
	for _, l := range loads {
		l.done.Wait()
		t.Logf("%s: %d requests, %d failed", l.name, l.requests, len(l.failed))
		if len(l.failed) > 0 {
			t.Errorf("%s: %d of %d requests failed, the first with %v", l.name, len(l.failed), l.requests, l.failed[0])
		}
	}
	if len(members(t, c, machineWithStore(t, c))) != 3 {
		t.Error("after the upgrade the store has not three members")
	}
}

func machineWithStore(t *testing.T, c *cluster) hostapi.MachineStatus {
	t.Helper()
	m, _ := process(t, c.host(t), "etcd")
	return m
}

type load struct {
	name     string
	done     sync.WaitGroup
	requests int
	failed   []error
}

func startLoad(ctx context.Context, t *testing.T, c *cluster, fresh bool) *load {
	l := &load{name: "one connection"}
	k := c.workload(t)
	if fresh {
		l.name = "new connections"
	}
	cfg := c.config(t)
	l.done.Go(func() {
		for ctx.Err() == nil {
			if fresh {
				cfg.Dial = nil
				cfg.UserAgent = fmt.Sprintf("load/%d", l.requests) // another transport
				var err error
				if k, err = kubernetes.NewForConfig(cfg); err != nil {
					l.failed = append(l.failed, err)
					return
				}
			}
			rctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 20*time.Second)
			_, err := k.CoreV1().Namespaces().Get(rctx, "default", metav1.GetOptions{})
			cancel()
			l.requests++
			if err != nil {
				l.failed = append(l.failed, fmt.Errorf("%s: %w", time.Now().Format(time.TimeOnly), err))
			}
			select {
			case <-ctx.Done():
			case <-time.After(50 * time.Millisecond):
			}
		}
	})
	return l
}

func survivesAPIServer(t *testing.T, c *cluster) {
	k := c.workload(t)
	m, p := process(t, c.host(t), "kube-apiserver")
	kill(t, p.PID)
	// The two others answer at once; a request that was under way may fail.
	testenv.Eventually(t, time.Minute, func() error {
		_, err := k.CoreV1().Namespaces().Get(t.Context(), "default", metav1.GetOptions{})
		return err
	})
	testenv.Eventually(t, soon, func() error {
		for _, now := range c.host(t).Machines {
			for _, q := range now.Processes {
				if now.Name == m.Name && q.Name == p.Name && q.PID != p.PID && q.Ready {
					return nil
				}
			}
		}
		return fmt.Errorf("the API server of %s is not back", m.Name)
	})
	testenv.Eventually(t, soon, func() error {
		mirror, err := k.CoreV1().Pods("kube-system").Get(t.Context(), "kube-apiserver-"+m.Node, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if r := mirror.Status.ContainerStatuses[0].RestartCount; r == 0 {
			return fmt.Errorf("the mirror pod knows of no restart")
		}
		return nil
	})
}

func survivesHost(t *testing.T, c *cluster) {
	before := c.host(t)
	kill(t, before.PID)
	testenv.Eventually(t, 2*time.Minute, func() error {
		now, _, err := c.plane.HostStatus(t.Context(), c.namespace, c.name)
		if err != nil {
			return err
		}
		if now.PID == before.PID {
			return fmt.Errorf("the host is the same")
		}
		for _, m := range now.Machines {
			if !m.IsRunning() {
				return fmt.Errorf("%s is not running: %+v", m.Name, m)
			}
		}
		return nil
	})
	c.awaitNodes(t, soon, 3, 2, newVersion)
	if d, err := c.workload(t).AppsV1().Deployments("default").Get(t.Context(), "web", metav1.GetOptions{}); err != nil {
		t.Errorf("what was in the cluster is lost: %v, %v", d, err)
	}
}

func survivesPlane(t *testing.T, c *cluster) {
	before, workload := c.host(t), c.workload(t)
	c.plane.Kill()
	if _, err := workload.CoreV1().Namespaces().Get(t.Context(), "default", metav1.GetOptions{}); err != nil {
		t.Errorf("without polderd the cluster does not answer: %v", err)
	}
	c.plane.Start(t)
	c.plane.AwaitReady(t)
	c.mgmt = c.plane.Client(t)
	if now := c.host(t); now.PID != before.PID || !now.StartedAt.Equal(before.StartedAt) {
		t.Errorf("the host was restarted: %d, then %d", before.PID, now.PID)
	}
	c.awaitAvailable(t, soon)
}

func shrinksToOne(t *testing.T, c *cluster) {
	c.patch(t, func(o *clusterv1.Cluster) { o.Spec.Topology.ControlPlane.Replicas = ptr.To[int32](1) })
	c.awaitControlPlane(t, createTimeout, 1, newVersion)
	c.awaitNodes(t, createTimeout, 1, 2, newVersion)
	if names := members(t, c, machineWithStore(t, c)); len(names) != 1 {
		t.Errorf("members of the store: %v, want one", names)
	}
}

func isDeleted(t *testing.T, c *cluster) {
	o, err := c.get(t)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.mgmt.Delete(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	testenv.Eventually(t, createTimeout, func() error {
		if _, err := c.get(t); !apierrors.IsNotFound(err) {
			return fmt.Errorf("the cluster is still there: %w", err)
		}
		return nil
	})
	nothingLeft(t, c)
}

// nothingLeft checks that no processes, files and objects are left.
func nothingLeft(t *testing.T, c *cluster) {
	t.Helper()
	testenv.Eventually(t, soon, func() error {
		left, err := c.plane.Processes()
		if err != nil || len(left) != 1 { // polderd itself
			return fmt.Errorf("processes are left: %s, %w", strings.Join(left, "\n"), err)
		}
		files, err := filepath.Glob(filepath.Join(c.plane.Data, "local", "*"))
		if err != nil || len(files) > 0 {
			return fmt.Errorf("files are left: %v, %w", files, err)
		}
		var secrets corev1.SecretList
		if err := c.mgmt.List(t.Context(), &secrets, client.InNamespace(c.namespace)); err != nil || len(secrets.Items) > 0 {
			return fmt.Errorf("%d secrets are left, %w", len(secrets.Items), err)
		}
		return nil
	})
	if _, err := os.Stat(filepath.Join(c.plane.Data, "local")); err != nil {
		t.Error(err)
	}
}
