package kubelet

import (
	"net/netip"
	"os"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/polder-kaas/polder/internal/providers/local/hostapi"
)

// newConfinedKubelet is one that checks what its machine is told.
func newConfinedKubelet(t *testing.T) *Kubelet {
	t.Helper()
	k := newKubelet(t)
	k.cfg.AllowEverything, k.cfg.Cluster = false, netip.PrefixFrom(testAddress(), 16).Masked()
	k.pods.cfg = k.cfg
	return k
}

// A pod of the control plane that may not be run is a process that fails: nobody waits for it in silence.
func TestRefusedPodFails(t *testing.T) {
	k := newConfinedKubelet(t)
	withoutEnv := func(s string) string {
		var keep []string
		for _, line := range strings.Split(s, "\n") {
			if !strings.Contains(line, "env:") {
				keep = append(keep, line)
			}
		}
		return strings.Join(keep, "\n")
	}
	writeManifest(t, k, "etcd", withoutEnv(manifestOf("etcd", 0, "--config-file=/etc/x")))
	for range 2 { // also when it is tried again
		syncPods(t, k)
		p := processStatus(k, "etcd")
		const want = "is not started: --config-file of etcd is refused: a file would replace all flags"
		if p.Name != "etcd" || p.PID != 0 || p.LastExit != want || p.Log == "" || len(k.NotHonored()) != 1 {
			t.Errorf("%+v, %q", p, k.NotHonored())
		}
		if m := (hostapi.MachineStatus{ControlPlane: true, Boot: hostapi.BootStatus{Done: true}, Registered: true, Processes: k.pods.status()}); m.IsRunning() {
			t.Error("the machine counts as running")
		}
	}
	writeManifest(t, k, "etcd", "")
	syncPods(t, k)
	if all := k.pods.status(); len(all) > 0 {
		t.Errorf("it is gone, but there is %v", all)
	}
}

// Files that change while a pod waits for its start are looked at again.
func TestRefusedRightBeforeTheStart(t *testing.T) {
	p := &staticPod{manifest: manifest{pod: &corev1.Pod{}}, onChange: func() {}, recheck: func() error { return os.ErrPermission }}
	p.start(func() bool { return true })
	p.wg.Wait()
	if p.proc != nil || p.status().LastExit != "is not started: permission denied" {
		t.Errorf("%+v", p.status())
	}
}

func TestNodeClientRefusesPrograms(t *testing.T) {
	k := newConfinedKubelet(t)
	file := k.cfg.Dir.RootFS("/etc/kubernetes/kubelet.conf")
	for name, c := range map[string]struct{ user, server, want string }{
		"its own":             {"token: x", k.cfg.Address.String(), ""},
		"its own files":       {"client-certificate: " + k.cfg.Dir.RootFS("/var/lib/kubelet/pki/a.pem"), k.cfg.Address.String(), "unable to read"},
		"a program":           {"exec: {apiVersion: client.authentication.k8s.io/v1, command: /bin/sh}", k.cfg.Address.String(), "it would run a program"},
		"files outside":       {"client-certificate: /etc/passwd", k.cfg.Address.String(), "names a file that is not in"},
		"a server elsewhere ": {"token: x", "10.0.0.1", "not https://ADDRESS:PORT"},
	} {
		content := "apiVersion: v1\nkind: Config\ncurrent-context: c\ncontexts: [{name: c, context: {cluster: c, user: u}}]\n" +
			"clusters: [{name: c, cluster: {server: 'https://" + c.server + ":6443', certificate-authority-data: YQ==}}]\nusers: [{name: u, user: {" + c.user + "}}]\n"
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := k.newNodeClient(t.Context())
		if c.want == "" && err != nil && strings.Contains(err.Error(), "refused") || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A manifest cannot make the host ask another server.
func TestProbeAsksTheMachineOnly(t *testing.T) {
	for _, scheme := range []string{"HTTPS", "HTTP", "", "http://example.org/?x=", "file"} {
		pod := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{ReadinessProbe: &corev1.Probe{ProbeHandler: corev1.ProbeHandler{
			HTTPGet: &corev1.HTTPGetAction{Scheme: corev1.URIScheme(scheme), Host: "example.org", Path: "/readyz", Port: intstr.FromInt32(7)},
		}}}}}}
		want := "http://" + testAddress().String() + ":7/readyz"
		if scheme == "HTTPS" {
			want = strings.Replace(want, "http:", "https:", 1)
		}
		if got := newProbe(pod, testAddress()).url; got != want {
			t.Errorf("%q: %s, want %s", scheme, got, want)
		}
	}
}
