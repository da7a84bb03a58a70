//go:build !fault

package boot

import (
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/polder-kaas/polder/internal/providers/local/hostapi"
)

// injectCrash does nothing; binaries built with the tag fault have another.
func injectCrash(hostapi.MachineDir, string) error { return nil }

// injectClusterConfiguration does nothing; see above.
func injectClusterConfiguration(*machine, *clientcmdapi.Config) error { return nil }
