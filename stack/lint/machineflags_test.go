package lint_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/polder-kaas/polder/stack/archive"
)

const controlPlane = "cluster-class/templates/control-plane.yaml"

// hostile is a control plane that asks for what machines refuse, each part with its finding.
const hostile = `apiVersion: controlplane.cluster.x-k8s.io/v1beta2
kind: KubeadmControlPlaneTemplate
metadata:
  name: {{ include "class" . }}
spec:
  template:
    spec:
      kubeadmConfigSpec:
        clusterConfiguration:
          certificatesDir: /etc/../../../pki
          controlPlaneEndpoint: 127.0.0.1:6443
          apiServer:
            extraArgs:
              - {name: audit-log-path, value: /logs/x}
              - {name: etcd-servers, value: "unix:///var/run/etcd.sock"}
              - {name: encryption-provider-config, value: /etc/kubernetes/kms.yaml}
              - {name: admission-control-config-file, value: /etc/kubernetes/missing.yaml}
              - {name: event-ttl, value: 2h}
              - {name: oidc-ca-file, value: /etc/ssl/certs/ca.pem}
            extraEnvs: [{name: HTTPS_PROXY, value: "http://x"}]
            extraVolumes:
              - {name: logs, hostPath: /etc/kubernetes, mountPath: /logs}
              - {name: up, hostPath: ../../outside, mountPath: /up}
          controllerManager:
            extraArgs:
              - {name: kubeconfig, value: /etc/kubernetes/evil.conf}
              - {name: flex-volume-plugin-dir, value: /opt}
          scheduler:
            extraArgs:
              - {name: kubeconfig, value: /etc/kubernetes/scheduler.conf}
          etcd:
            local:
              extraArgs: [{name: initial-cluster, value: "a=https://10.0.0.1:2380"}]
        joinConfiguration:
          discovery: {file: {kubeConfigPath: /etc/x}}
        files:
          - path: /etc/kubernetes/evil.conf
            content: |
              kind: Config
              users: [{name: u, user: {exec: {command: /bin/sh}}}]
          - path: /etc/kubernetes/kms.yaml
            content: |
              kind: EncryptionConfiguration
              resources: [{resources: [secrets], providers: [{kms: {name: a, endpoint: "unix:///x"}}]}]
          - path: /etc/kubernetes/admin.conf
            content: mine
          - path: /etc/kubernetes/manifests/evil.yaml
            content: |
              spec: {containers: [{name: x, command: [kube-scheduler, --kubeconfig=etc/kubernetes/evil.conf]}]}
`

func TestMachineFlags(t *testing.T) {
	files := clean(t, "local")
	files[controlPlane] = []byte(hostile)
	var got []string
	for _, f := range run(t, files).Errors() {
		if f.Rule != "local-machine-flag" || f.Line == 0 {
			t.Errorf("%v", f)
		}
		got = append(got, strings.TrimSpace(strings.Split(string(files[f.File]), "\n")[f.Line-1])+" => "+f.What)
	}
	for _, want := range []string{
		"certificatesDir: /etc/../../../pki => certificatesDir is refused: the path",
		"controlPlaneEndpoint: 127.0.0.1:6443 => controlPlaneEndpoint is refused",
		"- {name: audit-log-path, value: /logs/x} => --audit-log-path of kube-apiserver is refused: nothing is written to \"/etc/kubernetes/x\"",
		`- {name: etcd-servers, value: "unix:///var/run/etcd.sock"} => --etcd-servers of kube-apiserver is refused`,
		"- {name: encryption-provider-config, value: /etc/kubernetes/kms.yaml} => --encryption-provider-config of kube-apiserver is refused: in the file",
		`- {name: admission-control-config-file, value: /etc/kubernetes/missing.yaml} => --admission-control-config-file of kube-apiserver is refused: the file`,
		`extraEnvs: [{name: HTTPS_PROXY, value: "http://x"}] => the environment variable HTTPS_PROXY of kube-apiserver is refused`,
		"extraVolumes.hostPath is refused: the path \"../../outside\" is not absolute",
		"--kubeconfig of kube-controller-manager is refused: in the file \"/etc/kubernetes/evil.conf\" users[0].user.exec is refused: it would run a program",
		"- {name: flex-volume-plugin-dir, value: /opt} => --flex-volume-plugin-dir of kube-controller-manager is refused",
		`--initial-cluster of etcd is refused: "https://10.0.0.1:2380"`,
		"joinConfiguration.discovery is refused",
		"- path: /etc/kubernetes/admin.conf => the file /etc/kubernetes/admin.conf is refused: kubeadm makes it itself",
		"- path: /etc/kubernetes/manifests/evil.yaml => --kubeconfig of kube-scheduler is refused",
	} {
		found := false
		for i, g := range got {
			if strings.Contains(g, want) {
				got, found = append(got[:i:i], got[i+1:]...), true
				break
			}
		}
		if !found {
			t.Errorf("not found: %s", want)
		}
	}
	if len(got) > 0 {
		t.Errorf("more than expected:\n%s", strings.Join(got, "\n"))
	}
	other := clean(t, "openstack")
	other[controlPlane] = files[controlPlane]
	for _, f := range run(t, other) {
		if f.Rule == "local-machine-flag" {
			t.Errorf("a stack of another provider: %v", f)
		}
	}
}

// Flags that patches add are judged by their names; those that are written out by their values, too.
func TestMachineFlagsOfPatches(t *testing.T) {
	files := clean(t, "local")
	class := string(files[classYAML])
	i := strings.Index(class, "  patches:")
	if i < 0 {
		t.Fatal("the scaffold has no patches")
	}
	files[classYAML] = []byte(class[:i] + `  patches:
    - name: flags
      definitions:
        - selector: {apiVersion: controlplane.cluster.x-k8s.io/v1beta2, kind: KubeadmControlPlaneTemplate, matchResources: {controlPlane: true}}
          jsonPatches:
            - op: add
              path: /spec/template/spec/kubeadmConfigSpec/clusterConfiguration/apiServer/extraArgs
              value: [{name: audit-log-path, value: /etc/x}, {name: oidc-client-id, value: x}]
            - op: add
              path: /spec/template/spec/kubeadmConfigSpec/clusterConfiguration/scheduler/extraArgs
              valueFrom:
                template: |
                  - {name: config, value: {{ ` + "`{{ .builtin.cluster.name | quote }}`" + ` }}}
                  - {name: write-config-to, value: {{ ` + "`{{ .builtin.cluster.name | quote }}`" + ` }}}
`)
	var got []string
	for _, f := range run(t, files) {
		if f.Rule == "local-machine-flag" {
			got = append(got, f.What)
		}
	}
	if len(got) != 2 || !strings.Contains(strings.Join(got, "\n"), `patch "flags": --audit-log-path of kube-apiserver is refused`) ||
		!strings.Contains(strings.Join(got, "\n"), `patch "flags": --write-config-to of kube-scheduler is refused`) {
		t.Errorf("%q", got)
	}
}

// The stacks we ship ask for nothing that our machines refuse.
func TestShippedStacksAreClean(t *testing.T) {
	dir := filepath.Join("..", "..", "stacks", "local", "scs")
	files := archive.Tree{}
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, err := filepath.Rel(dir, p)
		if err != nil {
			return err
		}
		files[filepath.ToSlash(rel)], err = os.ReadFile(p)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if found := run(t, files); len(found) > 0 {
		t.Errorf("%v", found)
	}
}
