package rewrite

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

var machine = Machine{
	Root: "/data/m", Address: netip.MustParseAddr("127.3.16.11"), Cluster: netip.MustParsePrefix("127.3.16.0/20"), EmulatedVersion: "1.35",
}

// pod is a static pod with the mounts kubeadm gives it.
func pod(command ...string) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: command[0]}}
	p.Spec.Containers = []corev1.Container{{Name: command[0], Command: command}}
	for inside, outside := range map[string]string{
		"/etc/kubernetes/pki": "/etc/kubernetes/pki", "/etc/ssl/certs": "/etc/ssl/certs", "/audit": "/etc/audit",
		"/etc/kubernetes/scheduler.conf": "/etc/kubernetes/scheduler.conf",
	} {
		name := strings.ReplaceAll(inside, "/", "-")
		p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{
			Name: name, VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: outside, Type: ptr.To(corev1.HostPathDirectoryOrCreate)}},
		})
		p.Spec.Containers[0].VolumeMounts = append(p.Spec.Containers[0].VolumeMounts, corev1.VolumeMount{Name: name, MountPath: inside})
	}
	return p
}

func TestArguments(t *testing.T) {
	for name, c := range map[string]struct {
		program, in, want string
	}{
		"path below a mount":             {"kube-apiserver", "--client-ca-file=/etc/kubernetes/pki/ca.crt", "--client-ca-file=/data/m/etc/kubernetes/pki/ca.crt"},
		"mount is a file":                {"kube-scheduler", "--tls-cert-file=/etc/kubernetes/scheduler.conf", "--tls-cert-file=/data/m/etc/kubernetes/scheduler.conf"},
		"mount has another name outside": {"kube-apiserver", "--audit-policy-file=/audit/policy.yaml", "--audit-policy-file=/data/m/etc/audit/policy.yaml"},
		"path that only looks mounted":   {"kube-apiserver", "--audit-policy-file=/auditors/policy.yaml", "--audit-policy-file=/data/m/auditors/policy.yaml"},
		"folder shared by all":           {"kube-apiserver", "--oidc-ca-file=/etc/ssl/certs/ca.pem", "--oidc-ca-file=/etc/ssl/certs/ca.pem"},
		"list of paths": {"kube-apiserver", "--tls-sni-cert-key=/etc/kubernetes/pki/a.crt,/etc/kubernetes/pki/a.key",
			"--tls-sni-cert-key=/data/m/etc/kubernetes/pki/a.crt,/data/m/etc/kubernetes/pki/a.key"},
		"own store":                {"kube-apiserver", "--etcd-servers=https://127.0.0.1:2379", "--etcd-servers=https://127.3.16.11:2379"},
		"every address":            {"kube-controller-manager", "--bind-address=0.0.0.0", "--bind-address=127.3.16.11"},
		"every address, version 6": {"kube-controller-manager", "--bind-address=::", "--bind-address=127.3.16.11"},
		"issuer on this computer":  {"kube-apiserver", "--oidc-issuer-url=https://127.0.0.1:5556/dex", "--oidc-issuer-url=https://127.0.0.1:5556/dex"},
		"doubled listener": {"etcd", "--listen-client-urls=https://127.0.0.1:2379,https://127.3.16.11:2379",
			"--listen-client-urls=https://127.3.16.11:2379"},
		"member list": {"etcd", "--initial-cluster=a=https://127.3.16.11:2380,b=https://127.3.16.12:2380",
			"--initial-cluster=a=https://127.3.16.11:2380,b=https://127.3.16.12:2380"},
		"plain metrics":            {"etcd", "--listen-metrics-urls=http://127.0.0.1:2381", "--listen-metrics-urls=http://127.3.16.11:2381"},
		"advertised":               {"kube-apiserver", "--advertise-address=127.3.16.11", "--advertise-address=198.18.16.11"},
		"another machine's store":  {"kube-apiserver", "--etcd-servers=https://127.3.16.12:2379", "--etcd-servers=https://127.3.16.12:2379"},
		"switch":                   {"kube-apiserver", "--profiling", "--profiling=true"},
		"one dash":                 {"etcd", "-snapshot-count=5", "--snapshot-count=5"},
		"a letter":                 {"kube-apiserver", "-v4", "--v=4"},
		"underscores":              {"kube-apiserver", "--event_ttl=1h", "--event-ttl=1h"},
		"upwards stays below":      {"kube-apiserver", "--client-ca-file=../../../../ca.crt", "--client-ca-file=/data/m/ca.crt"},
		"upwards out of a mount":   {"kube-apiserver", "--client-ca-file=/audit/../../../ca.crt", "--client-ca-file=/data/m/ca.crt"},
		"upwards out of a shared":  {"kube-apiserver", "--oidc-ca-file=/etc/ssl/certs/../private/x", "--oidc-ca-file=/data/m/etc/ssl/private/x"},
		"a key in a shared folder": {"kube-apiserver", "--tls-private-key-file=/etc/ssl/certs/x", "--tls-private-key-file=/data/m/etc/ssl/certs/x"},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := Pod(pod(c.program, c.in), machine)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, r.Args[1]); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			from := len(r.Rewrites) > 0 && r.Rewrites[0].From != ""
			if _, value, _ := strings.Cut(c.in, "="); strings.HasPrefix(c.in, "--") && from != (value != "" && !strings.HasSuffix(c.want, "="+value)) {
				changed := from
				t.Errorf("recorded as changed: %v; %v", changed, r.Rewrites)
			}
		})
	}
}

func TestAddRequiredFlags(t *testing.T) {
	for name, c := range map[string]struct {
		command []string
		want    []string
	}{
		"server": {[]string{"kube-apiserver", "--tls-cert-file=/a"}, []string{
			"kube-apiserver", "--tls-cert-file=/data/m/a", "--bind-address=127.3.16.11", "--emulated-version=1.35",
		}},
		"server without certificate": {[]string{"kube-apiserver"}, []string{
			"kube-apiserver", "--cert-dir=/data/m/var/run/kubernetes", "--bind-address=127.3.16.11", "--emulated-version=1.35",
		}},
		"server with address of own": {[]string{"kube-apiserver", "--cert-dir=/var/run/k", "--bind-address=0.0.0.0", "--emulated-version=1.34"}, []string{
			"kube-apiserver", "--cert-dir=/data/m/var/run/k", "--bind-address=127.3.16.11", "--emulated-version=1.34",
		}},
		"controllers": {[]string{"kube-controller-manager"}, []string{
			"kube-controller-manager", "--bind-address=127.3.16.11", "--kube-api-qps=200", "--kube-api-burst=400", "--emulated-version=1.35",
		}},
		"controllers with limits": {[]string{"kube-controller-manager", "--kube-api-qps=5"}, []string{
			"kube-controller-manager", "--kube-api-qps=5", "--bind-address=127.3.16.11", "--emulated-version=1.35",
		}},
		"etcd":      {[]string{"etcd"}, []string{"etcd"}},
		"with path": {[]string{"/usr/local/bin/etcd"}, []string{"etcd"}},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := Pod(pod(c.command...), machine)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, r.Args); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestRefused(t *testing.T) {
	two := pod("etcd")
	two.Spec.Containers = append(two.Spec.Containers, two.Spec.Containers[0])
	prepared := pod("etcd")
	prepared.Spec.InitContainers = two.Spec.Containers
	for name, p := range map[string]*corev1.Pod{"two containers": two, "init containers": prepared, "another program": pod("kube-vip", "manager")} {
		if r, err := Pod(p, machine); err == nil {
			t.Errorf("%s: accepted as %v", name, r.Args)
		}
	}
}

func TestDirs(t *testing.T) {
	r, err := Pod(pod("etcd"), machine)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range r.Dirs {
		if !strings.HasPrefix(d, "/etc/") {
			t.Errorf("%s is no folder of the machine", d)
		}
	}
	if len(r.Dirs) != 3 {
		t.Errorf("folders to make: %v, want the three that are the machine's own", r.Dirs)
	}
}
