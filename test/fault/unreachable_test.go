package fault

import (
	"fmt"
	"slices"
	"syscall"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/polder-kaas/polder/api/v1alpha1"
	"github.com/polder-kaas/polder/internal/providers/local/hostapi"
	"github.com/polder-kaas/polder/test/testenv"
)

// maxUnnoticed is how long a cluster may be called ready though its API does not answer.
const maxUnnoticed = 15 * time.Second

// TestHangingAPIServer stops the API server of a cluster, as a machine does that has no memory left. That is said soon, and
// so is that it is well again. (A host that is killed is back before anybody could say so.)
func TestHangingAPIServer(t *testing.T) {
	p := startWithCluster(t)
	o, s := onlyCluster(t, p)
	server := 0
	for _, m := range s.Machines {
		for _, process := range m.Processes {
			if process.Name == "kube-apiserver" {
				server = process.PID
			}
		}
	}
	signal := func(pid int, sig syscall.Signal) {
		t.Helper()
		if err := syscall.Kill(pid, sig); err != nil {
			t.Fatal(err)
		}
	}
	signal(server, syscall.SIGSTOP)
	awaitUnreachable(t, p, o)
	signal(server, syscall.SIGCONT)
	awaitClusters(t, p)
}

// TestEtcdFull raises the alarm of an etcd that has no space left: the cluster takes no changes. That is said soon, with who must
// act and how; what is said works.
func TestEtcdFull(t *testing.T) {
	p := startWithCluster(t)
	o, s := onlyCluster(t, p)
	var secret corev1.Secret
	if err := p.Client(t).Get(t.Context(), client.ObjectKey{Namespace: o.Namespace, Name: o.Name + "-kubeconfig"}, &secret); err != nil {
		t.Fatal(err)
	}
	cfg, err := clientcmd.RESTConfigFromKubeConfig(secret.Data["value"])
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(s.Machines, func(m hostapi.MachineStatus) bool {
		return slices.ContainsFunc(m.Processes, func(p hostapi.ProcessStatus) bool { return p.Name == "etcd" })
	})
	etcd := testenv.NewEtcdClient(t, cfg, s.Machines[i])
	members, err := etcd.MemberList(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := etcdserverpb.NewMaintenanceClient(etcd.ActiveConnection()).Alarm(t.Context(), &etcdserverpb.AlarmRequest{
		Action: etcdserverpb.AlarmRequest_ACTIVATE, MemberID: members.Members[0].ID, Alarm: etcdserverpb.AlarmType_NOSPACE,
	}); err != nil {
		t.Fatal(err)
	}
	begin := time.Now()
	testenv.Eventually(t, wait, func() error {
		if err := p.Client(t).Get(t.Context(), keyOf(o), o); err != nil {
			return err
		}
		c := meta.FindStatusCondition(o.Status.Conditions, v1alpha1.ConditionControlPlane)
		if c == nil || c.Reason != v1alpha1.ReasonEtcdFull || o.Status.Phase != v1alpha1.PhaseStalled || o.Status.Actor != v1alpha1.PlatformOperator {
			return fmt.Errorf("it is %s, for %s: %+v", o.Status.Phase, o.Status.Actor, c)
		}
		return nil
	})
	t.Logf("said after %s: %s; %s", time.Since(begin).Round(100*time.Millisecond), o.Status.Message, o.Status.NextStep)
	k, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := k.CoreV1().ConfigMaps("default").Delete(t.Context(), "kube-root-ca.crt", metav1.DeleteOptions{}); err != nil {
		t.Errorf("a deletion: %v", err)
	}
	if _, err := etcd.Defragment(t.Context(), etcd.Endpoints()[0]); err != nil {
		t.Fatal(err)
	}
	if _, err := etcd.AlarmDisarm(t.Context(), &clientv3.AlarmMember{}); err != nil {
		t.Fatal(err)
	}
	awaitClusters(t, p)
}

// onlyCluster is the cluster of a plane that has one, and what its host says.
func onlyCluster(t *testing.T, p *testenv.Plane) (*v1alpha1.WorkloadCluster, hostapi.Status) {
	t.Helper()
	var all v1alpha1.WorkloadClusterList
	if err := p.Client(t).List(t.Context(), &all); err != nil || len(all.Items) != 1 {
		t.Fatalf("%d clusters, %v", len(all.Items), err)
	}
	s, _, err := p.HostStatus(t.Context(), all.Items[0].Namespace, all.Items[0].Name)
	if err != nil {
		t.Fatal(err)
	}
	return &all.Items[0], s
}

// awaitUnreachable waits until the status says so.
func awaitUnreachable(t *testing.T, p *testenv.Plane, o *v1alpha1.WorkloadCluster) {
	t.Helper()
	begin := time.Now()
	testenv.Eventually(t, wait, func() error {
		if err := p.Client(t).Get(t.Context(), keyOf(o), o); err != nil {
			return err
		}
		c := meta.FindStatusCondition(o.Status.Conditions, v1alpha1.ConditionReachable)
		if c == nil || c.Reason != v1alpha1.ReasonUnreachable || o.Status.Phase == v1alpha1.PhaseReady {
			return fmt.Errorf("it is %s: %+v", o.Status.Phase, c)
		}
		return nil
	})
	took := time.Since(begin)
	t.Logf("an API that hangs is said after %s: %s", took.Round(100*time.Millisecond), o.Status.Message)
	if took > maxUnnoticed {
		t.Errorf("that is more than %s", maxUnnoticed)
	}
}
