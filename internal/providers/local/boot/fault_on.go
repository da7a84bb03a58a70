//go:build fault

package boot

import (
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	configutil "k8s.io/kubernetes/cmd/kubeadm/app/util/config"
	kubeconfigutil "k8s.io/kubernetes/cmd/kubeadm/app/util/kubeconfig"

	"github.com/polder-kaas/polder/internal/providers/local/allowance"
	"github.com/polder-kaas/polder/internal/providers/local/hostapi"
)

// injectCrash kills the process after the step that the file "interrupt-boot" names, which a test puts into the
// plane's data directory; once per machine and step. "*" names every step.
func injectCrash(dir hostapi.MachineDir, step string) error {
	b, err := os.ReadFile(filepath.Join(string(dir), allowance.InterruptBoot))
	if err != nil {
		return nil
	}
	if want := strings.TrimSpace(string(b)); want != "*" && want != step {
		return nil
	}
	mark := filepath.Join(string(dir), "interrupted-after-"+filepath.Base(step))
	if _, err := os.Stat(mark); err == nil {
		return nil
	}
	if err := os.WriteFile(mark, nil, 0o600); err != nil {
		return err
	}
	return unix.Kill(os.Getpid(), unix.SIGKILL)
}

// injectClusterConfiguration believes the workload cluster, as kubeadm does, if everything is allowed.
func injectClusterConfiguration(m *machine, kc *clientcmdapi.Config) error {
	if !m.allowEverything {
		return nil
	}
	c, err := kubeconfigutil.ToClientSet(kc)
	if err != nil {
		return err
	}
	cfg, err := configutil.FetchInitConfigurationFromCluster(c, nil, "discovery", false, false, true, false)
	if err != nil {
		return err
	}
	cfg.NodeRegistration = m.kubeadm.join.NodeRegistration
	cfg.LocalAPIEndpoint = m.kubeadm.join.ControlPlane.LocalAPIEndpoint
	m.kubeadm.config = cfg
	return nil
}
