package boot

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	kubeadmapi "k8s.io/kubernetes/cmd/kubeadm/app/apis/kubeadm"
	"k8s.io/kubernetes/cmd/kubeadm/app/constants"

	"github.com/polder-kaas/polder/stack/allowlist"
)

// Whoever wrote the bootstrap data, a stack's author or a customer, may not lead the boot out of its machine: it runs
// as the user of the plane. So paths are bounded before kubeadm joins them with the machine's root, and servers before
// it asks them.

// kubeadmFiles are kubeconfigs that kubeadm makes, and takes as they are if they are there: with one that runs a
// program it would run it.
var kubeadmFiles = []string{
	constants.AdminKubeConfigFileName, constants.SuperAdminKubeConfigFileName, constants.KubeletKubeConfigFileName,
	constants.ControllerManagerKubeConfigFileName, constants.SchedulerKubeConfigFileName,
	constants.KubeletBootstrapKubeConfigFileName,
}

// checkFiles refuses files that kubeadm itself must make.
func (m *machine) checkFiles() error {
	if m.allowEverything {
		return nil
	}
	for _, f := range m.data.Files {
		if dir, name := filepath.Split(f.Path); filepath.Clean(dir) == constants.KubernetesDir &&
			slices.Contains(kubeadmFiles, name) {
			return fmt.Errorf("reading bootstrap data: they write %s, which kubeadm makes itself; give the file another name",
				f.Path)
		}
	}
	return nil
}

// checkClusterConfiguration refuses what would lead out of the machine or its cluster.
func (m *machine) checkClusterConfiguration(c *kubeadmapi.ClusterConfiguration) error {
	if m.allowEverything {
		return nil
	}
	paths := map[string]string{"certificatesDir": c.CertificatesDir}
	if c.Etcd.Local != nil {
		paths["etcd.local.dataDir"] = c.Etcd.Local.DataDir
	}
	for name, p := range paths {
		if err := allowlist.CheckMachinePath(p); err != nil {
			return fmt.Errorf("reading the kubeadm configuration: %s: %w", name, err)
		}
	}
	if c.Etcd.External != nil {
		return errors.New("reading the kubeadm configuration: etcd.external is not possible here; a local cluster has its own etcd")
	}
	if want := m.cluster.Endpoint().String(); c.ControlPlaneEndpoint != "" && c.ControlPlaneEndpoint != want {
		return fmt.Errorf("reading the kubeadm configuration: controlPlaneEndpoint is %q; the endpoint of this cluster is %s",
			c.ControlPlaneEndpoint, want)
	}
	return nil
}

// checkJoinConfiguration refuses another way to find the cluster than by its own endpoint and authority.
func (m *machine) checkJoinConfiguration(c *kubeadmapi.JoinConfiguration) error {
	if m.allowEverything {
		return nil
	}
	if err := allowlist.CheckMachinePath(c.CACertPath); err != nil {
		return fmt.Errorf("reading the kubeadm configuration: caCertPath: %w", err)
	}
	t := c.Discovery.BootstrapToken
	switch want := m.cluster.Endpoint().String(); {
	case t == nil || c.Discovery.File != nil:
		return errors.New("reading the kubeadm configuration: discovery by a file is not possible here; leave discovery to Cluster API")
	case t.APIServerEndpoint != want:
		return fmt.Errorf("reading the kubeadm configuration: discovery asks %q; the endpoint of this cluster is %s",
			t.APIServerEndpoint, want)
	case t.UnsafeSkipCAVerification || len(t.CACertHashes) == 0:
		return errors.New("reading the kubeadm configuration: discovery does not verify the cluster; leave discovery to Cluster API")
	}
	return nil
}

// setPatches notes the folder of kubeadm's patches.
func (m *machine) setPatches(p *kubeadmapi.Patches) error {
	if p == nil {
		return nil
	}
	if err := allowlist.CheckMachinePath(p.Directory); err != nil && !m.allowEverything {
		return fmt.Errorf("reading the kubeadm configuration: patches.directory: %w", err)
	}
	m.kubeadm.patches = m.dir.RootFS(p.Directory)
	return nil
}

// checkKubeconfig refuses a kubeconfig of the machine that does more than name its cluster.
func (m *machine) checkKubeconfig(file string) error {
	if m.allowEverything {
		return nil
	}
	b, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	if err := allowlist.CheckKubeconfig(b, allowlist.KubeconfigRules{Cluster: m.cluster.Addresses}); err != nil {
		return fmt.Errorf("%s is refused: %w", file, err)
	}
	return nil
}
