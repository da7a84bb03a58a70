package kubelet

import (
	"encoding/json"
	"net/netip"
	"os"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	infrav1 "github.com/polder-kaas/polder/api/infrastructure/v1alpha1"
	"github.com/polder-kaas/polder/internal/providers/local/hostapi"
)

func mustAddr(s string) netip.Addr { return netip.MustParseAddr(s) }

func desiredNode(t *testing.T, m hostapi.MachineSpec, n hostapi.NodeRegistration) *corev1.Node {
	t.Helper()
	dir := hostapi.MachineDir(t.TempDir())
	b, err := json.Marshal(n)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(dir.NodeFile(), b, 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := New(Config{Machine: m, Dir: dir, Address: mustAddr("127.1.0.11")}).desiredNode()
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func TestDesiredNode(t *testing.T) {
	own := map[string]string{
		"kubernetes.io/hostname": "n", "kubernetes.io/os": "linux", "kubernetes.io/arch": runtime.GOARCH, infrav1.SimulatedLabel: "true", RunningLabel: "true",
	}
	with := func(more ...string) map[string]string {
		all := map[string]string{}
		for k, v := range own {
			all[k] = v
		}
		for i := 0; i < len(more); i += 2 {
			all[more[i]] = more[i+1]
		}
		return all
	}
	a := corev1.Taint{Key: "a", Effect: corev1.TaintEffectNoSchedule}
	aHard := corev1.Taint{Key: "a", Effect: corev1.TaintEffectNoExecute}
	aOther := corev1.Taint{Key: "a", Value: "other", Effect: corev1.TaintEffectNoSchedule}
	for name, c := range map[string]struct {
		machine hostapi.MachineSpec
		node    hostapi.NodeRegistration
		labels  map[string]string
		taints  []corev1.Taint
	}{
		"nothing asked for": {labels: own},
		"a zone":            {machine: hostapi.MachineSpec{Zone: "z"}, labels: with("topology.kubernetes.io/zone", "z")},
		"labels of both, kubeadm's win": {
			machine: hostapi.MachineSpec{Labels: map[string]string{"x": "machine", "y": "machine"}}, node: hostapi.NodeRegistration{
				Labels: map[string]string{"x": "kubeadm"},
			},
			labels: with("x", "kubeadm", "y", "machine"),
		},
		"taints of both": {machine: hostapi.MachineSpec{Taints: []corev1.Taint{aHard}}, node: hostapi.NodeRegistration{Taints: []corev1.Taint{a}},
			labels: own, taints: []corev1.Taint{a, aHard}},
		"the same taint twice is one": {machine: hostapi.MachineSpec{Taints: []corev1.Taint{a}}, node: hostapi.NodeRegistration{Taints: []corev1.Taint{a}},
			labels: own, taints: []corev1.Taint{a}},
		"the values of one taint: the first": {machine: hostapi.MachineSpec{Taints: []corev1.Taint{aOther}},
			node: hostapi.NodeRegistration{Taints: []corev1.Taint{a}}, labels: own, taints: []corev1.Taint{a}},
	} {
		t.Run(name, func(t *testing.T) {
			c.machine.Node = "n"
			got := desiredNode(t, c.machine, c.node)
			if d := cmp.Diff(c.labels, got.Labels); d != "" {
				t.Error(d)
			}
			if d := cmp.Diff(c.taints, got.Spec.Taints); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestDesiredNodeStatus(t *testing.T) {
	chosen := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("64"), "example.com/gpu": resource.MustParse("2")}
	got := desiredNode(t, hostapi.MachineSpec{Node: "n", UID: "u", Version: "v1.35.2", ProviderID: "local://a", Capacity: chosen}, hostapi.NodeRegistration{})
	want := map[corev1.ResourceName]string{"cpu": "64", "memory": "8Gi", "ephemeral-storage": "100Gi", "pods": "110", "example.com/gpu": "2"}
	for _, list := range []corev1.ResourceList{got.Status.Capacity, got.Status.Allocatable} {
		for name, v := range want {
			if q := list[name]; q.String() != v || len(list) != len(want) {
				t.Errorf("%s: %s of %d, want %s", name, &q, len(list), v)
			}
		}
	}
	if len(chosen) != 2 {
		t.Error("what was chosen was changed")
	}
	if got.Name != "n" || got.Spec.ProviderID != "local://a" || got.Status.NodeInfo.KubeletVersion != "v1.35.2" ||
		got.Status.DaemonEndpoints.KubeletEndpoint.Port != Port {
		t.Errorf("%+v", got)
	}
	if d := cmp.Diff([]corev1.NodeAddress{{Type: "InternalIP", Address: "127.1.0.11"}, {Type: "Hostname", Address: "n"}}, got.Status.Addresses); d != "" {
		t.Error(d)
	}
}

func TestDesiredNodeErrors(t *testing.T) {
	dir := hostapi.MachineDir(t.TempDir())
	k := New(Config{Dir: dir})
	if _, err := k.desiredNode(); err == nil {
		t.Error("there is no file, and no error")
	}
	if err := os.WriteFile(dir.NodeFile(), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := k.desiredNode(); err == nil || !strings.Contains(err.Error(), dir.NodeFile()) {
		t.Errorf("error %v", err)
	}
}

func TestRunningLabelPatch(t *testing.T) {
	for on, want := range map[bool]string{true: `{"metadata":{"labels":{"local.polder.dev/running":"true"}}}`,
		false: `{"metadata":{"labels":{"local.polder.dev/running":null}}}`} {
		if got := string(runningLabelPatch(on)); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}
