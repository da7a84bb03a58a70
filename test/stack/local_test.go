package stack

import (
	"crypto/tls"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/polder-kaas/polder/stack"
	"github.com/polder-kaas/polder/stack/condition"
	"github.com/polder-kaas/polder/stack/render"
	"github.com/polder-kaas/polder/test/testenv"
)

// A cluster of the shipped stack comes up with what its parameters ask for, and gets its add-ons stage
// by stage.
func TestLocalSCS(t *testing.T) {
	p := shared.Get(t)
	mgmt, ns := p.Client(t), p.CreateNamespace(t)
	old, next := release(t, "local/scs", "1.36", "v1"), release(t, "local/scs", "1.37", "v0-sha.abc1234")
	class := install(t, mgmt, old, ns)
	install(t, mgmt, next, ns)
	refusesBadParameters(t, mgmt, ns, old)
	refusesBadParameters(t, mgmt, ns, next)
	c, workload := makeCluster(t, mgmt, ns, old)
	applyAddons(t, workload, c, old, class)
}

// makeCluster makes a cluster of a release and checks that it is as it should be.
func makeCluster(t *testing.T, mgmt client.Client, ns string, r *stack.Release) (*clusterv1.Cluster, client.Client) {
	t.Helper()
	c := newCluster(ns, r)
	if err := mgmt.Create(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	await(t, mgmt, c, createTimeout, available)
	cfg := testenv.WorkloadConfig(t, mgmt, ns, c.Name)
	workload := testenv.NewClient(t, cfg)
	isHardened(t, cfg, workload)
	return c, workload
}

func newCluster(ns string, r *stack.Release) *clusterv1.Cluster {
	value := func(name, json string) clusterv1.ClusterVariable {
		v := clusterv1.ClusterVariable{Name: name}
		v.Value.Raw = []byte(json)
		return v
	}
	c := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "demo"}}
	c.Spec.ClusterNetwork.Pods.CIDRBlocks = []string{"10.244.0.0/16"}
	c.Spec.ClusterNetwork.Services.CIDRBlocks = []string{"10.96.0.0/16"}
	c.Spec.Topology.ClassRef.Name = r.Name.Class()
	c.Spec.Topology.Version = r.Metadata.Versions.Kubernetes
	c.Spec.Topology.ControlPlane.Replicas = ptr.To[int32](1)
	c.Spec.Topology.Variables = []clusterv1.ClusterVariable{
		value("certSANs", `["api.example.org"]`),
		value("registryMirrors", `[{"hostnameUpstream":"docker.io","urlUpstream":"https://registry-1.docker.io","urlMirror":"https://mirror.example.org"}]`),
		value("oidcConfig", `{"clientID":"polder","issuerURL":"https://login.example.invalid"}`),
	}
	md := clusterv1.MachineDeploymentTopology{Class: "default-worker", Name: "default", Replicas: ptr.To[int32](1)}
	md.Variables.Overrides = []clusterv1.ClusterVariable{value("flavor", `"SCS-8V-32"`)}
	c.Spec.Topology.Workers.MachineDeployments = []clusterv1.MachineDeploymentTopology{md}
	return c
}

// refusesBadParameters checks that Cluster API validates parameters against the schemas we ship.
func refusesBadParameters(t *testing.T, mgmt client.Client, ns string, r *stack.Release) {
	t.Helper()
	for name, json := range map[string]string{"flavor": `"large"`, "podSecurityStandard": `"none"`, "certSANs": `[""]`, "oidcConfig": `{"issuerURL":"http://x"}`,
		"registryMirrors": `[{"urlMirror":"x"}]`, "unknown": `1`} {
		testenv.Eventually(t, soon, func() error { // until the class was looked at, variables are taken unseen
			c := newCluster(ns, r)
			v := clusterv1.ClusterVariable{Name: name}
			v.Value.Raw = []byte(json)
			c.Spec.Topology.Variables = []clusterv1.ClusterVariable{v}
			err := mgmt.Create(t.Context(), c, client.DryRunAll)
			if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), name) {
				return fmt.Errorf("%s: %s was not refused: %w", name, json, err)
			}
			return nil
		})
	}
}

func await(t *testing.T, mgmt client.Client, c *clusterv1.Cluster, timeout time.Duration, is func(*clusterv1.Cluster) error) {
	t.Helper()
	testenv.Eventually(t, timeout, func() error {
		if err := mgmt.Get(t.Context(), client.ObjectKeyFromObject(c), c); err != nil {
			return err
		}
		return is(c)
	})
}

func available(c *clusterv1.Cluster) error {
	i := slices.IndexFunc(c.Status.Conditions, func(x metav1.Condition) bool { return x.Type == clusterv1.AvailableCondition })
	if i < 0 || c.Status.Conditions[i].Status != metav1.ConditionTrue {
		return fmt.Errorf("the cluster is not available: %v", c.Status.Conditions)
	}
	return nil
}

// isHardened checks what scs-0215 and scs-0217 ask for, from outside.
func isHardened(t *testing.T, cfg *rest.Config, workload client.Client) {
	t.Helper()
	anonymous := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	for path, want := range map[string]int{"/livez": 200, "/version": 200, "/api": 401, "/apis": 401,
		"/api/v1/namespaces/kube-public/configmaps/cluster-info": 200} {
		resp, err := anonymous.Get(cfg.Host + path)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != want {
			t.Errorf("without a name, %s gives %d, want %d", path, resp.StatusCode, want)
		}
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "privileged"}, Spec: corev1.PodSpec{Containers: []corev1.Container{
		{Name: "x", Image: "x", SecurityContext: &corev1.SecurityContext{Privileged: ptr.To(true)}},
	}}}
	testenv.Eventually(t, soon, func() error {
		if err := workload.Create(t.Context(), pod.DeepCopy(), client.DryRunAll); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "PodSecurity") {
			return fmt.Errorf("a privileged pod: %w", err)
		}
		return nil
	})
	var pods corev1.PodList
	if err := workload.List(t.Context(), &pods, client.MatchingLabels{"component": "kube-apiserver"}); err != nil || len(pods.Items) == 0 {
		t.Fatal("there is no pod of the API server", err)
	}
	args := strings.Join(pods.Items[0].Spec.Containers[0].Command, "\n")
	for _, want := range []string{"--enable-admission-plugins=NodeRestriction,PodSecurity,EventRateLimit", "--authorization-mode=Node,RBAC",
		"--max-requests-inflight=400", "--max-mutating-requests-inflight=200", "--min-request-timeout=", "--audit-log-path=", "--etcd-cafile="} {
		if !strings.Contains(args, want) {
			t.Errorf("the API server has no %s", want)
		}
	}
	var nodes corev1.NodeList
	if err := workload.List(t.Context(), &nodes, client.MatchingLabels{"node.polder.dev/role": "worker"}); err != nil || len(nodes.Items) == 0 ||
		nodes.Items[0].Status.Capacity.Cpu().Value() != 8 {
		t.Errorf("workers do not have the size of their flavor: %v, %v", err, nodes.Items)
	}
}

// applyAddons applies the stages in their order, and waits for their conditions.
func applyAddons(t *testing.T, workload client.Client, c *clusterv1.Cluster, r *stack.Release, class *stack.Class) {
	t.Helper()
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(c)
	if err != nil {
		t.Fatal(err)
	}
	object["apiVersion"], object["kind"] = clusterv1.GroupVersion.String(), "Cluster"
	data, err := stack.ClusterData{Cluster: object}.ConvertTo(class.Version)
	if err != nil {
		t.Fatal(err)
	}
	stages, found, err := r.RenderAddons(t.Context(), new(render.Renderer), stack.AddonInput{Cluster: data, Record: render.FixedRecord()})
	if err != nil || found != nil {
		t.Fatal(found, err)
	}
	for _, s := range stages {
		if s.RuntimeHook != stack.AfterControlPlaneInitialized {
			continue
		}
		awaitCondition(t, workload, s.Stage.WaitForPreCondition)
		for _, o := range s.Objects {
			if err := workload.Create(t.Context(), &unstructured.Unstructured{Object: o.Value}); err != nil {
				t.Fatalf("stage %s: %v", s.Stage.Name, err)
			}
		}
		awaitCondition(t, workload, s.Stage.WaitForPostCondition)
	}
	var ds appsv1.DaemonSet
	if err := workload.Get(t.Context(), client.ObjectKey{Namespace: "kube-system", Name: "network-agent"}, &ds); err != nil || ds.Status.NumberReady != 2 {
		t.Errorf("%v, %+v", err, ds.Status)
	}
	var cm corev1.ConfigMap
	if err := workload.Get(t.Context(), client.ObjectKey{Namespace: "kube-public", Name: "cluster-stack"}, &cm); err != nil || cm.Data["cluster"] != c.Namespace+
		"/demo" || cm.Data["addons"] != "v1" {
		t.Error(err, cm.Data)
	}
}

func awaitCondition(t *testing.T, workload client.Client, c *stack.Condition) {
	t.Helper()
	if c == nil {
		return
	}
	var keys []string
	for _, o := range c.Objects {
		keys = append(keys, o.Key)
	}
	program, err := condition.Compile(c.Conditions, keys)
	if err != nil {
		t.Fatal(err)
	}
	testenv.Eventually(t, soon, func() error {
		objects := map[string]map[string]any{}
		for _, o := range c.Objects {
			u := &unstructured.Unstructured{}
			u.SetGroupVersionKind(schema.FromAPIVersionAndKind(o.APIVersion, o.Kind))
			if err := workload.Get(t.Context(), client.ObjectKey{Namespace: o.Namespace, Name: o.Name}, u); client.IgnoreNotFound(err) != nil {
				return err
			} else if err == nil {
				objects[o.Key] = u.Object
			}
		}
		met, missing, err := program.Eval(objects)
		if err == nil && !met {
			err = fmt.Errorf("%s is not true yet: %s", c.Conditions, missing)
		}
		return err
	})
}
