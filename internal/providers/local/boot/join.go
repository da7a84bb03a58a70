package boot

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"k8s.io/apimachinery/pkg/types"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	kubeadmapi "k8s.io/kubernetes/cmd/kubeadm/app/apis/kubeadm"
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
	if cfg.Patches != nil {
		m.kubeadm.patches = m.dir.RootFS(cfg.Patches.Directory)
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

// discoverCluster finds the cluster by its bootstrap token and reads how it is configured.
func discoverCluster(ctx context.Context, m *machine) error {
	join := m.kubeadm.join
	waitForSignature(ctx, join.Discovery.BootstrapToken)
	kc, err := discovery.For(nil, join)
	if err != nil {
		return err
	}
	file := m.dir.RootFS(constants.KubernetesDir, constants.KubeletBootstrapKubeConfigFileName)
	if err := kubeconfigutil.WriteToDisk(file, kc); err != nil {
		return err
	}
	// A worker needs no more than the CA: only control planes need the cluster's configuration.
	if join.ControlPlane == nil {
		return m.writeCACertificate(kubeconfigutil.GetClusterFromKubeConfig(kc))
	}
	c, err := kubeconfigutil.ToClientSet(kc)
	if err != nil {
		return err
	}
	// Without node registration and endpoint: those are this machine's own, from its configuration.
	cfg, err := configutil.FetchInitConfigurationFromCluster(c, nil, "discovery", false, false, true, false)
	if err != nil {
		return err
	}
	cfg.NodeRegistration = join.NodeRegistration
	cfg.LocalAPIEndpoint = join.ControlPlane.LocalAPIEndpoint
	m.kubeadm.config = cfg
	return nil
}

// writeCACertificate stores the cluster's CA certificate where a kubelet looks for it.
func (m *machine) writeCACertificate(_ string, cluster *clientcmdapi.Cluster, err error) error {
	if err != nil {
		return err
	}
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
	return etcd.CheckLocalEtcdClusterStatus(c, m.configWithHostPaths().CertificatesDir)
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
	return etcd.CreateStackedEtcdStaticPodManifestFile(c, m.manifestDir(), m.kubeadm.patches, m.Node,
		&cfg.ClusterConfiguration, &cfg.LocalAPIEndpoint, false, m.configWithHostPaths().CertificatesDir)
}
