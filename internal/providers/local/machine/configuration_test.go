package machine

import (
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/polder-kaas/polder/internal/providers/local/hostapi"
)

// withKubeadmConfig gives the machine a KubeadmConfig.
func withKubeadmConfig(t *testing.T, r *Reconciler, s *scope) {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := bootstrapv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	if err := corev1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	c := &bootstrapv1.KubeadmConfig{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "config"}}
	c.Spec.ClusterConfiguration.APIServer.ExtraArgs = []bootstrapv1.Arg{{Name: "event-ttl", Value: new("2h")}}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "data"}, Data: map[string][]byte{"value": []byte("#cloud-config")}}
	r.APIReader = fake.NewClientBuilder().WithScheme(scheme).WithObjects(c, secret).Build()
	s.machine.Spec.Bootstrap.ConfigRef = clusterv1.ContractVersionedObjectReference{APIGroup: bootstrapv1.GroupVersion.Group, Kind: "KubeadmConfig", Name: "config"}
	s.cluster.Spec.ControlPlaneEndpoint = clusterv1.APIEndpoint{Host: "127.1.0.1", Port: 6443}
	s.cluster.Spec.ClusterNetwork.Pods.CIDRBlocks = []string{"10.1.0.0/16"}
	s.cluster.Spec.ClusterNetwork.Services.CIDRBlocks = []string{"10.2.0.0/16"}
	s.cluster.Spec.ClusterNetwork.ServiceDomain = "example.local"
}

// A control plane is handed the configuration that the plane has for its cluster.
func TestClusterConfigurationIsHandedOver(t *testing.T) {
	h := newFakeHost(t, http.StatusOK, hostapi.Status{Machines: []hostapi.MachineStatus{{Name: "local", UID: "u"}}})
	r, s := fixture(h, true)
	withKubeadmConfig(t, r, s)
	if err := r.createMachine(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	got := string(h.received.ClusterConfiguration)
	for _, want := range []string{
		"kind: ClusterConfiguration", "apiVersion: kubeadm.k8s.io/v1beta4", "controlPlaneEndpoint: 127.1.0.1:6443", "clusterName: c", "kubernetesVersion: v1.36.1",
		"podSubnet: 10.1.0.0/16", "serviceSubnet: 10.2.0.0/16", "dnsDomain: example.local", "name: event-ttl",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%s is not in:\n%s", want, got)
		}
	}
}

// A machine that an older polderd made is given it later; a worker, or a machine that has booted, is not.
func TestClusterConfigurationComesLater(t *testing.T) {
	for name, c := range map[string]struct {
		status hostapi.MachineStatus
		put    bool
	}{
		"boots without":  {hostapi.MachineStatus{ControlPlane: true}, true},
		"boots with":     {hostapi.MachineStatus{ControlPlane: true, Configured: true}, false},
		"has booted":     {hostapi.MachineStatus{ControlPlane: true, Boot: hostapi.BootStatus{Done: true}}, false},
		"is no such one": {hostapi.MachineStatus{}, false},
	} {
		c.status.Name, c.status.UID = "local", "u"
		h := newFakeHost(t, http.StatusOK, hostapi.Status{Protocol: hostapi.JoinProtocol, Machines: []hostapi.MachineStatus{c.status}})
		r, s := fixture(h, true)
		withKubeadmConfig(t, r, s)
		if err := r.readHostStatus(t.Context(), s); err != nil {
			t.Fatal(err)
		}
		if err := r.createMachine(t.Context(), s); err != nil {
			t.Fatal(err)
		}
		if put := len(h.received.ClusterConfiguration) > 0; put != c.put {
			t.Errorf("%s: handed over %t", name, put)
		}
	}
}
