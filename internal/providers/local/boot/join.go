package boot

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"k8s.io/apimachinery/pkg/types"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	kubeadmapi "k8s.io/kubernetes/cmd/kubeadm/app/apis/kubeadm"
	kubeadmv1beta4 "k8s.io/kubernetes/cmd/kubeadm/app/apis/kubeadm/v1beta4"
	"k8s.io/kubernetes/cmd/kubeadm/app/constants"
	"k8s.io/kubernetes/cmd/kubeadm/app/discovery"
	"k8s.io/kubernetes/cmd/kubeadm/app/phases/etcd"
	"k8s.io/kubernetes/cmd/kubeadm/app/phases/kubeconfig"
	configutil "k8s.io/kubernetes/cmd/kubeadm/app/util/config"
	kubeconfigutil "k8s.io/kubernetes/cmd/kubeadm/app/util/kubeconfig"
	"k8s.io/kubernetes/pkg/kubelet/certificate/bootstrap"

	"github.com/polder-kaas/polder/internal/files/atomicfile"
)

func (m *machine) planJoin(b []byte) ([]step, error) {
	if err := allowEmulatedVersions(); err != nil {
		return nil, err
	}
	b, err := m.prepareConfig(b)
	if err != nil {
		return nil, err
	}
	cfg, err := configutil.BytesToJoinConfiguration(b, configutil.LoadOrDefaultConfigurationOptions{SkipCRIDetect: true})
	if err != nil {
		return nil, fmt.Errorf("reading the kubeadm configuration: %w", err)
	}
	kubeadmapi.SetActiveTimeouts(cfg.Timeouts)
	m.kubeadm.join = cfg
	if err := errors.Join(m.checkJoinConfiguration(cfg), m.setPatches(cfg.Patches)); err != nil {
		return nil, err
	}
	if err := m.writeNodeRegistration(cfg.NodeRegistration); err != nil {
		return nil, err
	}
	if cfg.ControlPlane == nil {
		return []step{
			{"files", true, writeFiles},
			{"discovery", false, discoverCluster},
			{"kubelet-tls-bootstrap", true, bootstrapKubelet},
		}, nil
	}
	cfg.ControlPlane.LocalAPIEndpoint.AdvertiseAddress = m.address.String()
	if err := m.readClusterConfiguration(); err != nil {
		return nil, err
	}
	return m.removeSkippedPhases(cfg.SkipPhases, []step{
		{"files", true, writeFiles},
		{"discovery", false, discoverCluster},
		{"certs", true, writeCertificates},
		{"kubeconfig", true, writeJoinKubeconfigs},
		{"check-etcd", false, checkEtcd},
		{"etcd-join", true, joinEtcd},
		{"control-plane", true, writeManifests},
		{"mark-control-plane", true, markControlPlane},
		{"wait-control-plane", false, waitForControlPlane},
	}), nil
}

// readClusterConfiguration reads how the cluster is configured from what the plane has handed over. kubeadm would ask
// the workload cluster; but whoever administers that could write there any flags for a process of the plane's user.
func (m *machine) readClusterConfiguration() error {
	if len(m.ClusterConfiguration) == 0 {
		return errors.New("the plane has not handed over the cluster's kubeadm configuration yet; it does so if polderd is of this release or newer, and the Machine has a KubeadmConfig")
	}
	b, err := m.prepareConfig(m.ClusterConfiguration)
	if err != nil {
		return err
	}
	init := fmt.Sprintf("apiVersion: %s\nkind: InitConfiguration\n", kubeadmv1beta4.SchemeGroupVersion)
	own, err := m.prepareConfig([]byte(init))
	if err != nil {
		return err
	}
	// Timeouts and patches are those of the JoinConfiguration.
	cfg, err := configutil.BytesToInitConfiguration(slices.Concat(b, []byte("---\n"), own), true)
	if err != nil {
		return fmt.Errorf("reading the kubeadm configuration: %w", err)
	}
	kubeadmapi.SetActiveTimeouts(m.kubeadm.join.Timeouts)
	cfg.NodeRegistration = m.kubeadm.join.NodeRegistration
	cfg.LocalAPIEndpoint = m.kubeadm.join.ControlPlane.LocalAPIEndpoint
	m.kubeadm.config = cfg
	return m.checkClusterConfiguration(&cfg.ClusterConfiguration)
}

// discoverCluster finds the cluster by its bootstrap token.
func discoverCluster(ctx context.Context, m *machine) error {
	join := m.kubeadm.join
	waitForSignature(ctx, join.Discovery.BootstrapToken)
	kc, err := discovery.For(nil, join)
	if err != nil {
		return err
	}
	_, cluster, err := kubeconfigutil.GetClusterFromKubeConfig(kc)
	if err != nil {
		return err
	}
	// The workload cluster signed where it is, and its administrator can let it sign anything; the plane knows better.
	if !m.allowEverything {
		cluster.Server = "https://" + m.cluster.Endpoint().String()
	}
	file := m.dir.RootFS(constants.KubernetesDir, constants.KubeletBootstrapKubeConfigFileName)
	if err := kubeconfigutil.WriteToDisk(file, kc); err != nil {
		return err
	}
	if join.ControlPlane == nil {
		return m.writeCACertificate(cluster)
	}
	return injectClusterConfiguration(m, kc)
}

// writeCACertificate stores the cluster's CA certificate where a kubelet looks for it.
func (m *machine) writeCACertificate(cluster *clientcmdapi.Cluster) error {
	file := m.dir.RootFS(m.kubeadm.join.CACertPath)
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return err
	}
	return atomicfile.Write(file, cluster.CertificateAuthorityData, 0o600)
}

// bootstrapKubelet asks for a certificate with the bootstrap token, as a kubelet does.
func bootstrapKubelet(ctx context.Context, m *machine) error {
	return bootstrap.LoadClientCert(ctx,
		m.dir.RootFS(constants.KubernetesDir, constants.KubeletKubeConfigFileName),
		m.dir.RootFS(constants.KubernetesDir, constants.KubeletBootstrapKubeConfigFileName),
		m.dir.RootFS("/var/lib/kubelet/pki"), types.NodeName(m.Node))
}

// writeJoinKubeconfigs writes the kubelet's kubeconfig as well: the CA's key is on this machine, so there is no need to
// ask for a certificate.
func writeJoinKubeconfigs(_ context.Context, m *machine) error {
	if err := kubeconfig.CreateJoinControlPlaneKubeConfigFiles(m.kubernetesDir(), m.configWithHostPaths()); err != nil {
		return err
	}
	return kubeconfig.CreateKubeConfigFile(constants.KubeletKubeConfigFileName, m.kubernetesDir(), m.configWithHostPaths())
}

// checkEtcd refuses to join an etcd cluster that is not healthy.
func checkEtcd(_ context.Context, m *machine) error {
	c, err := m.adminClient()
	if err != nil || m.kubeadm.config.Etcd.External != nil {
		return err
	}
	members, err := m.checkMembers(c)
	if err != nil {
		return err
	}
	if err := members.CheckClusterHealth(); err != nil {
		return fmt.Errorf("etcd is not healthy: %w", err)
	}
	return nil
}

// joinEtcd adds a member and writes its manifest; the host starts it while this waits for it to catch up.
func joinEtcd(_ context.Context, m *machine) error {
	c, err := m.adminClient()
	cfg := m.kubeadm.config
	if err != nil || cfg.Etcd.External != nil {
		return err
	}
	if err := os.MkdirAll(m.manifestDir(), 0o700); err != nil {
		return err
	}
	return etcd.CreateStackedEtcdStaticPodManifestFile(m.memberClient(c), m.manifestDir(), m.kubeadm.patches, m.Node,
		&cfg.ClusterConfiguration, &cfg.LocalAPIEndpoint, false, m.configWithHostPaths().CertificatesDir)
}
