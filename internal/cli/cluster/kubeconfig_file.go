package cluster

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/polder-kaas/polder/internal/cli/connect"
	"github.com/polder-kaas/polder/internal/cli/kubeconfigfile"
	"github.com/polder-kaas/polder/internal/files/atomicfile"
	"github.com/polder-kaas/polder/internal/program/exit"
)

// deliver prints the kubeconfig, or puts it where it is wanted.
func (r *kubeconfigOptions) deliver(c *cobra.Command, k *issuedKubeconfig) error {
	valid := ""
	if !k.expiresAt.IsZero() {
		valid = ", valid until " + k.expiresAt.Local().Format(time.RFC3339)
	}
	switch {
	case r.file != "":
		if err := writeKubeconfig(r.file, k.config); err != nil {
			return err
		}
		_, err := fmt.Fprintf(c.OutOrStdout(), "Wrote %s%s. Use it with: kubectl --kubeconfig %s get nodes\n", r.file, valid,
			r.file)
		return err
	case r.merge:
		rules := clientcmd.NewDefaultClientConfigLoadingRules()
		rules.WarnIfAllMissing = false // then the file is made
		file := kubeconfigfile.MergeTarget(rules, r.cluster)
		use := "kubectl --context " + r.cluster
		if !slices.Contains(rules.Precedence, file) {
			use = "kubectl --kubeconfig " + file + " --context " + r.cluster
			rules = &clientcmd.ClientConfigLoadingRules{Precedence: []string{file}}
		}
		if err := kubeconfigfile.Merge(file, rules, k.config, kubeconfigfile.Options{Force: r.force}); err != nil {
			return err
		}
		_, err := fmt.Fprintf(c.OutOrStdout(), "Merged context %s into %s%s. Use it with: %s get nodes\n", r.cluster, file,
			valid, use)
		return err
	}
	b, err := clientcmd.Write(*k.config)
	if err != nil {
		return err
	}
	_, err = c.OutOrStdout().Write(b)
	return err
}

// writeKubeconfig replaces a file only if nothing but what polder wrote is lost.
func writeKubeconfig(file string, k *clientcmdapi.Config) error {
	b, err := os.ReadFile(file)
	switch {
	case errors.Is(err, os.ErrNotExist):
	case err != nil:
		return exit.Errorf(exit.Usage, "--output-file: %w; name a file", err)
	case !kubeconfigfile.IsKubeconfig(b):
		return exit.Errorf(exit.Usage, "%s is no kubeconfig, so it is not overwritten; name another file", file)
	default:
		old, err := clientcmd.Load(b)
		if err != nil {
			return exit.Errorf(exit.Usage, "%s is no kubeconfig, so it is not overwritten; name another file", file)
		}
		others := slices.DeleteFunc(connect.ContextNames(old), func(name string) bool { return name == k.CurrentContext })
		if len(others) > 0 {
			return exit.Errorf(exit.Usage, "%s has other contexts (%s), which would be lost; name another file, or use --merge",
				file, strings.Join(others, ", "))
		}
	}
	text, err := clientcmd.Write(*k)
	if err != nil {
		return err
	}
	return atomicfile.Write(kubeconfigfile.ResolveLink(file), text, 0o600)
}
