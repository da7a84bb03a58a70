package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/polder-kaas/polder/api/v1alpha1"
	"github.com/polder-kaas/polder/internal/program/exit"
)

// adminKubeconfig is the file in a data directory with which its administrator reaches the plane.
const adminKubeconfig = "admin.kubeconfig"

// access is a plane as a customer sees it: an API, and a namespace that is meant.
type access struct {
	client           dynamic.Interface
	restClient       rest.Interface // for WorkloadClusters only
	namespace        string
	defaultNamespace string // the namespace that is meant where none is named
	address          string
	local            bool // it is that of the data directory
	globals          *globals
}

// connect reaches the plane that the flags, the environment and the files of this user mean. It sends nothing.
func (g *globals) connect(c *cobra.Command) (*access, error) {
	rules, local := g.kubeconfigRules(clientcmd.NewDefaultClientConfigLoadingRules())
	config, namespace, err := g.loadConfig(rules, local)
	if err != nil {
		return nil, err
	}
	config.QPS = -1 // a few requests need no brake
	config.WarningHandler = warningPrinter{c.ErrOrStderr()}
	a := &access{namespace: namespace, defaultNamespace: namespace, address: config.Host, local: local, globals: g}
	if f := c.Flag("namespace"); f != nil && f.Value.String() != "" {
		a.namespace = f.Value.String()
	}
	config.DisableCompression = local // to the same machine it only takes time
	if a.client, err = dynamic.NewForConfig(config); err == nil {
		polderConfig := dynamic.ConfigFor(config)
		polderConfig.APIPath, polderConfig.GroupVersion = "/apis", &v1alpha1.GroupVersion
		a.restClient, err = rest.RESTClientFor(polderConfig)
	}
	if err != nil {
		return nil, fmt.Errorf("%s cannot be used: %w", kubeconfigPaths(rules), err)
	}
	return a, nil
}

// kubeconfigRules says which files have access to the plane; usual are those that kubectl takes. local says that it is the
// plane of the data directory.
func (g *globals) kubeconfigRules(kubectlRules *clientcmd.ClientConfigLoadingRules) (rules *clientcmd.ClientConfigLoadingRules, local bool) {
	singleFile := func(file string) *clientcmd.ClientConfigLoadingRules {
		return &clientcmd.ClientConfigLoadingRules{Precedence: []string{file}}
	}
	fromEnvironment := kubectlRules.WarnIfAllMissing // which is how the rules say that $KUBECONFIG is set
	kubectlRules.WarnIfAllMissing = false            // we say it ourselves
	adminFile := filepath.Join(g.dataDir, adminKubeconfig)
	switch {
	case g.kubeconfigFile != "":
		return singleFile(g.kubeconfigFile), false
	case g.isFlagSet("data-dir"):
		return singleFile(adminFile), true
	case g.program == pluginName || fromEnvironment || g.dataDir == "":
		return kubectlRules, false
	}
	if _, err := os.Stat(adminFile); err == nil {
		return singleFile(adminFile), true
	}
	return kubectlRules, false
}

func (g *globals) isFlagSet(flag string) bool {
	return g.flags != nil && g.flags.Lookup(flag).Changed
}

func (g *globals) loadConfig(rules *clientcmd.ClientConfigLoadingRules, local bool) (*rest.Config, string, error) {
	if g.kubeconfigFile != "" {
		if _, err := os.Stat(g.kubeconfigFile); errors.Is(err, os.ErrNotExist) {
			return nil, "", exit.Errorf(exit.Usage, "there is no file %s; name a kubeconfig with --kubeconfig", g.kubeconfigFile)
		}
	}
	file, err := rules.Load()
	if err != nil {
		return nil, "", fmt.Errorf("%s cannot be read as a kubeconfig: %w", kubeconfigPaths(rules), err)
	}
	switch {
	case len(file.Contexts) == 0 && len(file.Clusters) == 0 && local:
		return nil, "", exit.Errorf(exit.Failure, "there is no plane in %s yet; start one with: %s", g.dataDir, g.hint("up"))
	case len(file.Contexts) == 0 && len(file.Clusters) == 0:
		return nil, "", exit.Errorf(exit.Failure, "no plane is known here: start one on this machine with: polder up, or name the kubeconfig of another with --kubeconfig or $KUBECONFIG")
	case g.contextName != "" && file.Contexts[g.contextName] == nil:
		return nil, "", exit.Errorf(exit.Usage, "%s has no context %q; choose from: %s", kubeconfigPaths(rules), g.contextName, strings.Join(contextNames(file), ", "))
	}
	loaded := clientcmd.NewDefaultClientConfig(*file, &clientcmd.ConfigOverrides{CurrentContext: g.contextName})
	config, err := loaded.ClientConfig()
	if err != nil {
		return nil, "", fmt.Errorf("%s cannot be used: %w", kubeconfigPaths(rules), err)
	}
	namespace, _, err := loaded.Namespace()
	return config, namespace, err
}

func kubeconfigPaths(rules *clientcmd.ClientConfigLoadingRules) string {
	return strings.Join(rules.Precedence, ", ")
}

func contextNames(c *clientcmdapi.Config) []string {
	var names []string
	for name := range c.Contexts {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// hint is a command on clusters for people to copy, with the flags that make it mean the same plane and namespace.
func (a *access) hint(command string) string {
	text := a.globals.program + " " + command
	if a.namespace != a.defaultNamespace {
		text += " -n " + a.namespace
	}
	return a.appendGivenFlags(text, "context", "kubeconfig", "data-dir")
}

// kubectlHint is how people call it for the same plane.
func (a *access) kubectlHint() string {
	if a.local {
		return a.globals.kubectlHint()
	}
	return a.appendGivenFlags("kubectl", "context", "kubeconfig")
}

// appendGivenFlags adds those that were given to a command.
func (a *access) appendGivenFlags(command string, names ...string) string {
	for _, name := range names {
		if a.globals.isFlagSet(name) {
			command += " --" + name + " " + a.globals.flags.Lookup(name).Value.String()
		}
	}
	return command
}

// warningPrinter prints those of the plane, for example of fields that are not needed any more.
type warningPrinter struct{ w io.Writer }

var _ rest.WarningHandler = warningPrinter{}

// HandleWarningHeader takes only the code that means a warning for people.
func (p warningPrinter) HandleWarningHeader(code int, _, text string) {
	if code == 299 && text != "" {
		fmt.Fprintln(p.w, "warning:", sanitize(text))
	}
}
