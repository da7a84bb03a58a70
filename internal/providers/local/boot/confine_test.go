package boot

import (
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	"sigs.k8s.io/yaml"

	"github.com/polder-kaas/polder/internal/providers/local/rewrite"
)

const (
	clusterConfig = `apiVersion: kubeadm.k8s.io/v1beta4
kind: ClusterConfiguration
clusterName: c
controlPlaneEndpoint: 127.1.0.1:6443
kubernetesVersion: v1.36.6
networking: {podSubnet: 10.244.0.0/16, serviceSubnet: 10.96.0.0/12}
`
	initConfig = "---\napiVersion: kubeadm.k8s.io/v1beta4\nkind: InitConfiguration\n"
	joinConfig = `apiVersion: kubeadm.k8s.io/v1beta4
kind: JoinConfiguration
controlPlane: {}
discovery:
  bootstrapToken:
    apiServerEndpoint: 127.1.0.1:6443
    token: abcdef.0123456789abcdef
    caCertHashes: ["sha256:0000000000000000000000000000000000000000000000000000000000000000"]
`
)

// writeComponents does what a first control plane does before anything must run.
func writeComponents(t *testing.T, m *machine) {
	t.Helper()
	for _, run := range []func(context.Context, *machine) error{writeFiles, writeCertificates, writeKubeconfigs, writeEtcdManifest, writeManifests} {
		if err := run(t.Context(), m); err != nil {
			t.Fatal(err)
		}
	}
}

// components are the arguments of the static pods, by name, as a machine runs them.
func components(t *testing.T, m *machine) map[string][]string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(m.manifestDir(), "*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatal("no manifests", err)
	}
	out := map[string][]string{}
	for _, f := range files {
		b, err := os.ReadFile(f)
		var pod corev1.Pod
		if err != nil || yaml.Unmarshal(b, &pod) != nil {
			t.Fatal(f, err)
		}
		r, err := rewrite.Pod(&pod, rewrite.Machine{Root: m.dir.RootFS(), Address: m.address, Cluster: m.cluster.Addresses, EmulatedVersion: "1.36"})
		if err != nil {
			t.Fatalf("what kubeadm wrote is refused: %v", err)
		}
		out[pod.Name] = r.Args
	}
	return out
}

func init() { builtInKubernetes = func() string { return "v1.37.1" } }

// All that kubeadm writes is on the lists.
func TestKubeadmsOwnArgumentsAreAllowed(t *testing.T) {
	m := newMachine(t)
	if _, err := m.planInit([]byte(clusterConfig + initConfig)); err != nil {
		t.Fatal(err)
	}
	writeComponents(t, m)
	all := components(t, m)
	if len(all) != 4 || !slices.Contains(all["kube-apiserver"], "--etcd-servers=https://127.1.0.11:2379") {
		t.Errorf("%q", all)
	}
}

// A joining control plane is configured by what the plane has handed over.
func TestJoinTakesConfigurationOfThePlane(t *testing.T) {
	m := newMachine(t)
	if _, err := m.planJoin([]byte(joinConfig)); err == nil || !strings.Contains(err.Error(), "the plane has not handed over") {
		t.Errorf("without configuration: %v", err)
	}
	m.ClusterConfiguration = []byte(clusterConfig + "apiServer: {extraArgs: [{name: event-ttl, value: 2h}]}\n")
	steps, err := m.planJoin([]byte(joinConfig))
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range steps {
		if s.name == "discovery" && s.runOnce {
			t.Error("discovery is not repeated")
		}
	}
	writeComponents(t, m)
	args := components(t, m)["kube-apiserver"]
	for _, want := range []string{"--event-ttl=2h", "--etcd-servers=https://127.1.0.11:2379", "--service-cluster-ip-range=10.96.0.0/12"} {
		if !slices.Contains(args, want) {
			t.Errorf("%s is not in %q", want, args)
		}
	}
	if c := m.kubeadm.config; c.ClusterName != "c" || c.KubernetesVersion != "v1.36.6" || c.LocalAPIEndpoint.AdvertiseAddress != "127.1.0.11" || c.NodeRegistration.Name != "node-1" {
		t.Errorf("%+v", c)
	}
}

func TestConfigurationThatLeadsOut(t *testing.T) {
	edit := func(config, from, to string) string { return strings.Replace(config, from, to, 1) }
	for name, c := range map[string]struct{ init, join, want string }{
		"certificates outside":  {init: clusterConfig + "certificatesDir: /etc/../../../pki\n" + initConfig, want: "certificatesDir: the path"},
		"certificates nowhere":  {init: clusterConfig + "certificatesDir: ../../pki\n" + initConfig, want: "is not absolute"},
		"store outside":         {init: clusterConfig + "etcd: {local: {dataDir: /var/../../x}}\n" + initConfig, want: "etcd.local.dataDir: the path"},
		"store elsewhere":       {init: clusterConfig + "etcd: {external: {endpoints: ['https://10.0.0.1:2379']}}\n" + initConfig, want: "etcd.external is not possible"},
		"endpoint elsewhere":    {init: edit(clusterConfig, "127.1.0.1:6443", "10.0.0.1:6443") + initConfig, want: "the endpoint of this cluster is 127.1.0.1:6443"},
		"patches outside":       {init: clusterConfig + initConfig + "patches: {directory: /etc/../../../x}\n", want: "patches.directory: the path"},
		"patches outside, join": {join: joinConfig + "patches: {directory: /etc/../../../x}\n", want: "patches.directory: the path"},
		"authority outside":     {join: joinConfig + "caCertPath: /etc/../../x\n", want: "caCertPath"},
		"discovery by a file": {
			join: strings.Split(joinConfig, "controlPlane")[0] + "discovery: {file: {kubeConfigPath: /x}, tlsBootstrapToken: abcdef.0123456789abcdef}\n",
			want: "discovery.file",
		},
		"discovery elsewhere":    {join: edit(joinConfig, "127.1.0.1:6443", "10.0.0.1:6443"), want: "discovery asks \"10.0.0.1:6443\""},
		"discovery of anybody":   {join: edit(joinConfig, "caCertHashes", "unsafeSkipCAVerification: true\n    caCertHashes"), want: "does not verify the cluster"},
		"configuration of a pod": {join: joinConfig, want: "the plane has not handed over"},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMachine(t)
			var err error
			if c.init != "" {
				_, err = m.planInit([]byte(c.init))
			} else {
				_, err = m.planJoin([]byte(c.join))
			}
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
}

func TestFilesThatKubeadmMakes(t *testing.T) {
	for _, file := range []string{"admin.conf", "kubelet.conf", "bootstrap-kubelet.conf"} {
		dir := newMachineDir(t, fmt.Sprintf("#cloud-config\nwrite_files:\n- {path: /etc/kubernetes/%s, content: x}\n", file))
		if err := Run(t.Context(), dir); err == nil || !strings.Contains(readBootStatus(t, dir).Problem, "which kubeadm makes itself") {
			t.Errorf("%s: %v", file, err)
		}
	}
}

func TestKubeconfigOfTheMachine(t *testing.T) {
	m := newMachine(t)
	file := filepath.Join(t.TempDir(), "x.conf")
	for name, c := range map[string]struct{ user, server, want string }{
		"its own":   {"token: x", "https://127.1.0.1:6443", ""},
		"a program": {"exec: {command: /bin/sh}", "https://127.1.0.1:6443", "it would run a program"},
		"elsewhere": {"token: x", "https://127.0.0.1:6443", "not https://ADDRESS:PORT"},
	} {
		write(t, file, []byte("clusters: [{name: c, cluster: {server: '"+c.server+"', certificate-authority-data: YQ==}}]\nusers: [{name: u, user: {"+c.user+"}}]\n"))
		if err := m.checkKubeconfig(file); (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestCheckMemberURL(t *testing.T) {
	block := netip.MustParsePrefix("127.1.0.0/20")
	for at, want := range map[string]bool{
		"https://127.1.0.11:2379": true, "https://127.1.15.11:2379": true, "http://127.1.0.11:2379": false, "unix:///x": false, "unix://127.1.0.11:2379": false,
		"https://127.1.0.11:2380": false, "https://127.2.0.11:2379": false, "https://10.0.0.1:2379": false, "https://127.1.0.11:2379/x": false, "": false,
		"https://x@127.1.0.11:2379": false, "https://127.1.0.11": false, "https://127.1.0.11:2379,http://x": false, "https://localhost:2379": false,
	} {
		if err := checkMemberURL(at, block, 2379); (err == nil) != want {
			t.Errorf("%q: %v", at, err)
		}
	}
}

// An administrator of the workload cluster can annotate pods; kubeadm connects to what they say.
func TestMembersOfPods(t *testing.T) {
	m := newMachine(t)
	for at, want := range map[string]bool{"https://127.1.0.12:2379": true, "unix:///data/etcd.sock": false, "http://127.0.0.1:2379": false, "none": true} {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "etcd-x", Namespace: "kube-system"}}
		if at != "none" {
			pod.Annotations = map[string]string{"kubeadm.kubernetes.io/etcd.advertise-client-urls": at}
		}
		c := m.memberClient(fake.NewClientset(pod))
		l, err := c.CoreV1().Pods("kube-system").List(t.Context(), metav1.ListOptions{})
		if (err == nil) != want || err == nil && len(l.Items) != 1 || err != nil && !strings.Contains(err.Error(), "kube-system/etcd-x names a member of etcd that is none") {
			t.Errorf("%s: %v", at, err)
		}
	}
}

// What an older polderd left is read.
func TestSpecOfAnOlderPolderd(t *testing.T) {
	content := strings.ReplaceAll(strings.TrimSpace(joinConfig), "\n", "\n    ")
	dir := newMachineDir(t, "#cloud-config\nwrite_files:\n- path: /run/kubeadm/kubeadm-join-config.yaml\n  content: |\n    "+content+"\n")
	if err := Run(t.Context(), dir); err == nil || !strings.Contains(readBootStatus(t, dir).Problem, "the plane has not handed over") {
		t.Errorf("%v", err)
	}
	m, err := loadMachine(dir)
	if err != nil {
		t.Fatal(err)
	}
	m.ClusterConfiguration = []byte(clusterConfig)
	b, _ := json.Marshal(m.MachineSpec)
	write(t, dir.SpecFile(), b)
	m, err = loadMachine(dir)
	if err != nil {
		t.Fatal(err)
	}
	if steps, err := m.planSteps(); err != nil || len(steps) == 0 {
		t.Errorf("handed over: %v, %v", steps, err)
	}
}
