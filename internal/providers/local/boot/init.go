package boot

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	bootstraptokenv1 "k8s.io/kubernetes/cmd/kubeadm/app/apis/bootstraptoken/v1"
	kubeadmapi "k8s.io/kubernetes/cmd/kubeadm/app/apis/kubeadm"
	"k8s.io/kubernetes/cmd/kubeadm/app/constants"
	"k8s.io/kubernetes/cmd/kubeadm/app/phases/addons/dns"
	"k8s.io/kubernetes/cmd/kubeadm/app/phases/addons/proxy"
	"k8s.io/kubernetes/cmd/kubeadm/app/phases/bootstraptoken/clusterinfo"
	"k8s.io/kubernetes/cmd/kubeadm/app/phases/bootstraptoken/node"
	"k8s.io/kubernetes/cmd/kubeadm/app/phases/certs"
	"k8s.io/kubernetes/cmd/kubeadm/app/phases/controlplane"
	"k8s.io/kubernetes/cmd/kubeadm/app/phases/etcd"
	"k8s.io/kubernetes/cmd/kubeadm/app/phases/kubeconfig"
	"k8s.io/kubernetes/cmd/kubeadm/app/phases/kubelet"
	"k8s.io/kubernetes/cmd/kubeadm/app/phases/uploadconfig"
	configutil "k8s.io/kubernetes/cmd/kubeadm/app/util/config"
	kubeconfigutil "k8s.io/kubernetes/cmd/kubeadm/app/util/kubeconfig"

	"github.com/polder-kaas/polder/internal/program/buildinfo"
	"github.com/polder-kaas/polder/internal/providers/local/kubeversion"
)

// kubeadmState is what kubeadm knows about the machine.
type kubeadmState struct {
	config  *kubeadmapi.InitConfiguration // as the stack wrote it; manifests and uploads are made from it
	join    *kubeadmapi.JoinConfiguration // of a joining machine
	patches string                        // folder of kubeadm's patches, or empty
	client  kubernetes.Interface          // with the rights of admin.conf; made when it is first needed
}

// configWithHostPaths is the configuration with paths below the machine's root, for what is written there.
func (m *machine) configWithHostPaths() *kubeadmapi.InitConfiguration {
	c := m.kubeadm.config.DeepCopy()
	c.CertificatesDir = m.dir.RootFS(c.CertificatesDir)
	return c
}

func (m *machine) kubernetesDir() string { return m.dir.RootFS(constants.KubernetesDir) }
func (m *machine) manifestDir() string   { return m.dir.RootFS(constants.GetStaticPodDirectory()) }

// builtInKubernetes is the version in this program. Binaries of tests do not know theirs.
var builtInKubernetes = func() string { return buildinfo.Get().Kubernetes }

// allowEmulatedVersions lets kubeadm deploy every minor the built-in Kubernetes can emulate; alone it
// would only take its own and the one before.
func allowEmulatedVersions() error {
	r, err := kubeversion.NewRange(builtInKubernetes())
	if err != nil {
		return err
	}
	constants.MinimumControlPlaneVersion, err = version.ParseSemantic(fmt.Sprintf("v%d.%d.0", r.BuiltIn.Major(),
		r.OldestMinor))
	return err
}

func (m *machine) planInit(b []byte) ([]step, error) {
	if err := allowEmulatedVersions(); err != nil {
		return nil, err
	}
	b, err := m.prepareConfig(b)
	if err != nil {
		return nil, err
	}
	// true: there is no container runtime that could be detected.
	cfg, err := configutil.BytesToInitConfiguration(b, true)
	if err != nil {
		return nil, fmt.Errorf("reading the kubeadm configuration: %w", err)
	}
	// kubeadm's phases take their timeouts from a global variable.
	kubeadmapi.SetActiveTimeouts(cfg.Timeouts)
	cfg.LocalAPIEndpoint.AdvertiseAddress = m.address.String()
	m.kubeadm.config = cfg
	if err := errors.Join(m.checkClusterConfiguration(&cfg.ClusterConfiguration), m.setPatches(cfg.Patches)); err != nil {
		return nil, err
	}
	if err := m.writeNodeRegistration(cfg.NodeRegistration); err != nil {
		return nil, err
	}
	return m.removeSkippedPhases(cfg.SkipPhases, []step{
		{"files", true, writeFiles},
		{"certs", true, writeCertificates},
		{"kubeconfig", true, writeKubeconfigs},
		{"etcd", true, writeEtcdManifest},
		{"control-plane", true, writeManifests},
		{"wait-control-plane", false, waitForControlPlane},
		{"admin-rights", true, grantAdminRights},
		{"upload-config", true, uploadConfig},
		{"bootstrap-token", true, createBootstrapTokens},
		{"mark-control-plane", true, markControlPlane},
		{"addon/coredns", true, addDNS},
		{"addon/kube-proxy", true, addKubeProxy},
	}), nil
}

// removeSkippedPhases leaves out the phases the configuration skips. Those that make the machine
// cannot be skipped, because here nobody else does their work.
func (m *machine) removeSkippedPhases(skip []string, steps []step) []step {
	skippable := []string{"upload-config", "bootstrap-token", "mark-control-plane", "addon/coredns", "addon/kube-proxy"}
	var remaining []step
	for _, s := range steps {
		if !slices.ContainsFunc(skip, func(p string) bool {
			return (s.name == p || strings.HasPrefix(s.name, p+"/")) && slices.Contains(skippable, s.name)
		}) {
			remaining = append(remaining, s)
		}
	}
	for _, p := range skip {
		known := p == "preflight" || p == "kubelet-start" || p == "addon" || slices.Contains(skippable, p)
		if !known {
			m.recordNotHonored("skipPhases: %s is not skipped", p)
		}
	}
	return remaining
}

func writeCertificates(_ context.Context, m *machine) error {
	return certs.CreatePKIAssets(m.configWithHostPaths())
}

func writeKubeconfigs(_ context.Context, m *machine) error {
	files := []string{
		constants.AdminKubeConfigFileName, constants.SuperAdminKubeConfigFileName,
		constants.ControllerManagerKubeConfigFileName, constants.SchedulerKubeConfigFileName,
		constants.KubeletKubeConfigFileName,
	}
	for _, f := range files {
		if err := kubeconfig.CreateKubeConfigFile(f, m.kubernetesDir(), m.configWithHostPaths()); err != nil {
			return err
		}
	}
	return nil
}

func writeEtcdManifest(_ context.Context, m *machine) error {
	cfg := m.kubeadm.config
	if cfg.Etcd.External != nil {
		return nil
	}
	if err := os.MkdirAll(m.manifestDir(), 0o700); err != nil {
		return err
	}
	return etcd.CreateLocalEtcdStaticPodManifestFile(m.manifestDir(), m.kubeadm.patches, m.Node, &cfg.ClusterConfiguration,
		&cfg.LocalAPIEndpoint, false)
}

func writeManifests(_ context.Context, m *machine) error {
	cfg := m.kubeadm.config
	if err := os.MkdirAll(m.manifestDir(), 0o700); err != nil {
		return err
	}
	return controlplane.CreateStaticPodFiles(m.manifestDir(), m.kubeadm.patches, &cfg.ClusterConfiguration,
		&cfg.LocalAPIEndpoint, false,
		constants.KubeAPIServer, constants.KubeControllerManager, constants.KubeScheduler)
}

// grantAdminRights gives admin.conf its rights, with super-admin.conf, which needs none to be granted.
func grantAdminRights(_ context.Context, m *machine) error {
	_, err := kubeconfig.EnsureAdminClusterRoleBinding(m.kubernetesDir(), &m.kubeadm.config.LocalAPIEndpoint, nil)
	return err
}

// adminClient is a client with the rights of admin.conf, which kubeadm points to the cluster's endpoint.
func (m *machine) adminClient() (kubernetes.Interface, error) {
	if m.kubeadm.client != nil {
		return m.kubeadm.client, nil
	}
	file := m.dir.RootFS(constants.KubernetesDir, constants.AdminKubeConfigFileName)
	if err := m.checkKubeconfig(file); err != nil {
		return nil, err
	}
	c, err := kubeconfigutil.ClientSetFromFile(file)
	m.kubeadm.client = c
	return c, err
}

func uploadConfig(_ context.Context, m *machine) error {
	c, err := m.adminClient()
	if err != nil {
		return err
	}
	if err := uploadconfig.UploadConfiguration(m.kubeadm.config, c); err != nil {
		return err
	}
	return kubelet.CreateConfigMap(&m.kubeadm.config.ClusterConfiguration, c)
}

// wantedTokens are the tokens that the class asks for. Where it asks for none, kubeadm adds one that is good for a day.
// Nobody knows it: machines join with tokens of Cluster API's, which live a quarter of an hour. One of the class that
// says neither how long it is good nor what for looks the same, and goes with it.
func wantedTokens(all []bootstraptokenv1.BootstrapToken) []bootstraptokenv1.BootstrapToken {
	return slices.DeleteFunc(slices.Clone(all), func(t bootstraptokenv1.BootstrapToken) bool {
		return t.Description == "" && t.Expires == nil && t.TTL != nil &&
			t.TTL.Duration == bootstraptokenv1.DefaultTokenDuration
	})
}

func createBootstrapTokens(_ context.Context, m *machine) error {
	c, err := m.adminClient()
	if err != nil {
		return err
	}
	if err := node.UpdateOrCreateTokens(c, false, wantedTokens(m.kubeadm.config.BootstrapTokens)); err != nil {
		return err
	}
	for _, allow := range []func(kubernetes.Interface) error{
		node.AllowBootstrapTokensToGetNodes, node.AllowBootstrapTokensToPostCSRs, node.AutoApproveNodeBootstrapTokens,
		node.AutoApproveNodeCertificateRotation, node.AllowAPIServerToAccessKubeletAPI,
	} {
		if err := allow(c); err != nil {
			return err
		}
	}
	kc, err := clientcmd.LoadFromFile(m.dir.RootFS(constants.KubernetesDir, constants.AdminKubeConfigFileName))
	if err != nil {
		return err
	}
	if err := clusterinfo.CreateBootstrapConfigMapIfNotExists(c, kc); err != nil {
		return err
	}
	return clusterinfo.CreateClusterInfoRBACRules(c)
}

func addDNS(_ context.Context, m *machine) error {
	c, err := m.adminClient()
	if err != nil {
		return err
	}
	return dns.EnsureDNSAddon(&m.kubeadm.config.ClusterConfiguration, c, m.kubeadm.patches, io.Discard, false)
}

func addKubeProxy(_ context.Context, m *machine) error {
	c, err := m.adminClient()
	if err != nil {
		return err
	}
	return proxy.EnsureProxyAddon(&m.kubeadm.config.ClusterConfiguration, &m.kubeadm.config.LocalAPIEndpoint, c,
		m.kubeadm.patches, io.Discard, false)
}
