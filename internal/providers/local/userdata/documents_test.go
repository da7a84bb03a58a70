package userdata

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var testMetadata = Metadata{Hostname: "cp-0", InstanceID: "i-1", Address: "127.0.0.7", Zone: "eu", ProviderID: "local:///eu/cp-0"}

func readTestdata(t testing.TB, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// fileText is File with content that can be read in a diff.
type fileText struct {
	Path, Mode, Owner, Content string
	Append                     bool
}

func fileTexts(files []File) []fileText {
	var out []fileText
	for _, f := range files {
		out = append(out, fileText{f.Path, f.Mode.String(), f.Owner, string(f.Content), f.Append})
	}
	return out
}

const rootOwner = "root:root"

var placeholderFile = fileText{"/run/cluster-api/placeholder", "-rw-r-----", rootOwner, "Makes its directory", false}

func TestTheFirstControlPlaneMachine(t *testing.T) {
	d, err := Parse(readTestdata(t, "init.yaml"), testMetadata)
	if err != nil {
		t.Fatal(err)
	}
	files := []fileText{
		{"/etc/kubernetes/pki/ca.crt", "-rw-r-----", rootOwner,
			"-----BEGIN CERTIFICATE-----\ncGxlYXNlIGlnbm9yZTogdGhpcyBpcyBubyBjZXJ0aWZpY2F0ZQ==\n-----END CERTIFICATE-----\n", false},
		{"/etc/kubernetes/pki/ca.key", "-rw-------", rootOwner, "stands for a private key\n", false},
		{"/etc/containerd/config.toml", "-rw-r--r--", rootOwner, "version = 2\n", false},
		{"/etc/audit/policy.yaml", "-rw-r--r--", "", "kind: Policy\n", false},
		{"/etc/hosts", "-rw-r--r--", rootOwner, "127.0.0.7 cp-0 # added\n", true},
		{"/usr/local/bin/list-images", "-rwxr-xr-x", "kube:kube", "#!/bin/sh\nexec ctr images ls --format '{{ .Name }}' \"$@\"\n", false},
		{"/run/kubeadm/kubeadm.yaml", "-rw-r-----", rootOwner, "---\napiVersion: kubeadm.k8s.io/v1beta4\nclusterName: dijk\ncontrolPlaneEndpoint: 127.0.0.1:16443\n" +
			"etcd:\n  local:\n    dataDir: /var/lib/etcd\nkind: ClusterConfiguration\nkubernetesVersion: v1.36.3\nnetworking:\n  podSubnet: 10.1.0.0/16\n\n" +
			"---\napiVersion: kubeadm.k8s.io/v1beta4\nkind: InitConfiguration\nlocalAPIEndpoint:\n  advertiseAddress: 127.0.0.7\n" +
			"nodeRegistration:\n  kubeletExtraArgs:\n  - name: provider-id\n    value: local:///eu/cp-0\n  name: 'cp-0'\n  taints: null\n", false},
		placeholderFile,
	}
	if diff := cmp.Diff(files, fileTexts(d.Files)); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
	commands := []Command{
		{"bootcmd", `cloud-init-per once data mkfs.ext4 -L "data" /dev/vdb`},
		{"runcmd", `hostname "cp-0"`},
		{"runcmd", `"set -e\nsystemctl restart containerd"`},
		{"runcmd", "kubeadm init --config /run/kubeadm/kubeadm.yaml --v 2 && echo success > /run/cluster-api/bootstrap-success.complete"},
		{"runcmd", "echo 'done: i-1'"},
	}
	if diff := cmp.Diff(commands, d.Commands); diff != "" {
		t.Errorf("commands (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"disk_setup", "fs_setup", "mounts", "ntp", "users"}, d.Ignored); diff != "" {
		t.Errorf("ignored (-want +got):\n%s", diff)
	}
}

func TestAMachineThatJoins(t *testing.T) {
	d, err := Parse(readTestdata(t, "join.yaml"), testMetadata)
	if err != nil {
		t.Fatal(err)
	}
	files := []fileText{
		{"/run/kubeadm/kubeadm-join-config.yaml", "-rw-r-----", rootOwner, "---\napiVersion: kubeadm.k8s.io/v1beta4\ndiscovery:\n  bootstrapToken:\n" +
			"    apiServerEndpoint: 127.0.0.1:16443\n    caCertHashes:\n    - sha256:0000000000000000000000000000000000000000000000000000000000000000\n" +
			"    token: abcdef.0123456789abcdef\nkind: JoinConfiguration\nnodeRegistration:\n  kubeletExtraArgs:\n  - name: node-labels\n" +
			"    value: zone=eu\n  name: 'cp-0'\n", false},
		placeholderFile,
	}
	if diff := cmp.Diff(files, fileTexts(d.Files)); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
	commands := []Command{{"runcmd", "kubeadm join --config /run/kubeadm/kubeadm-join-config.yaml  && echo success > /run/cluster-api/bootstrap-success.complete"}}
	if diff := cmp.Diff(commands, d.Commands); diff != "" {
		t.Errorf("commands (-want +got):\n%s", diff)
	}
	if len(d.Ignored) > 0 {
		t.Errorf("ignored: %v", d.Ignored)
	}
}
