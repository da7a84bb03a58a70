package connect

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/polder-kaas/polder/api/v1alpha1"
	"github.com/polder-kaas/polder/internal/cli/output"
	"github.com/polder-kaas/polder/internal/cli/restplane"
	"github.com/polder-kaas/polder/internal/program/exit"
)

// AdminKubeconfig is the file in a data directory with which its administrator reaches the plane.
const AdminKubeconfig = "admin.kubeconfig"

// RequestTimeout is how long the plane may take for one request, or for all parts of one list.
const RequestTimeout = 30 * time.Second

// Access is a plane as a customer sees it: an API, and a namespace that is meant. Globals.Connect makes one for a
// command.
type Access struct {
	Config           *rest.Config
	Client           dynamic.Interface
	RESTClient       rest.Interface // for WorkloadClusters only
	Namespace        string
	defaultNamespace string // the namespace that is meant where none is named
	Address          string
	Local            bool // it is that of the data directory
	IsREST           bool // only its REST API is there: namespaces are tenants
	Globals          *Globals
}

// Connect makes access to the plane that the flags, the environment and the files of this user mean, and to the
// namespace that the flag --namespace of c says, if c has it. It sends nothing, so a plane that does not answer is no
// error yet.
func (g *Globals) Connect(c *cobra.Command) (*Access, error) {
	rules, local := g.kubeconfigRules(clientcmd.NewDefaultClientConfigLoadingRules())
	load := g.loadConfig
	if g.hasServerFlags() {
		load = g.loadServerConfig
	}
	config, namespace, err := load(rules, local)
	if err != nil {
		return nil, err
	}
	restplane.Use(config)
	config.QPS = -1 // a few requests need no brake
	config.WarningHandler = warningPrinter{c.ErrOrStderr()}
	a := &Access{
		Config: config, Namespace: namespace, defaultNamespace: namespace, Address: config.Host, Local: local,
		IsREST: restplane.IsURL(config.Host), Globals: g,
	}
	if f := c.Flag("namespace"); f != nil && f.Value.String() != "" {
		a.Namespace = f.Value.String()
	}
	config.DisableCompression = local // to the same machine it only takes time
	if a.Client, err = dynamic.NewForConfig(config); err == nil {
		polderConfig := dynamic.ConfigFor(config)
		polderConfig.APIPath, polderConfig.GroupVersion = "/apis", &v1alpha1.GroupVersion
		a.RESTClient, err = rest.RESTClientFor(polderConfig)
	}
	if err != nil {
		return nil, fmt.Errorf("%s cannot be used: %w", KubeconfigPaths(rules), err)
	}
	return a, nil
}

// kubeconfigRules says which files have access to the plane; usual are those that kubectl takes. local says that it is
// the plane of the data directory.
func (g *Globals) kubeconfigRules(
	kubectlRules *clientcmd.ClientConfigLoadingRules,
) (rules *clientcmd.ClientConfigLoadingRules, local bool) {
	singleFile := func(file string) *clientcmd.ClientConfigLoadingRules {
		return &clientcmd.ClientConfigLoadingRules{Precedence: []string{file}}
	}
	fromEnvironment := kubectlRules.WarnIfAllMissing // which is how the rules say that $KUBECONFIG is set
	kubectlRules.WarnIfAllMissing = false            // we say it ourselves
	adminFile := filepath.Join(g.DataDir, AdminKubeconfig)
	switch {
	case g.kubeconfigFile != "":
		return singleFile(g.kubeconfigFile), false
	case g.hasServerFlags():
		return kubectlRules, false
	case g.isFlagSet("data-dir"):
		return singleFile(adminFile), true
	case g.Program == PluginName || fromEnvironment || g.DataDir == "":
		return kubectlRules, false
	case g.contextName != "" && !hasContext(adminFile, g.contextName):
		return kubectlRules, false // that of a login, for example
	}
	if _, err := os.Stat(adminFile); err == nil {
		return singleFile(adminFile), true
	}
	return kubectlRules, false
}

func hasContext(file, name string) bool {
	k, err := clientcmd.LoadFromFile(file)
	return err == nil && k.Contexts[name] != nil
}

// MeansLocalPlane says that commands without further flags mean the plane of the data directory.
func (g *Globals) MeansLocalPlane() bool {
	_, local := g.kubeconfigRules(clientcmd.NewDefaultClientConfigLoadingRules())
	return local
}

// isFlagSet is false for Globals that were not made by NewRoot, too: those have no flags.
func (g *Globals) isFlagSet(flag string) bool {
	return g.flags != nil && g.flags.Lookup(flag).Changed
}

// loadConfig checks before client-go does, which would fall back to localhost where nothing is configured and
// complain about that.
func (g *Globals) loadConfig(rules *clientcmd.ClientConfigLoadingRules, local bool) (*rest.Config, string, error) {
	file, err := g.readKubeconfig(rules)
	if err != nil {
		return nil, "", err
	}
	switch {
	case len(file.Contexts) == 0 && len(file.Clusters) == 0 && local:
		return nil, "", exit.Errorf(exit.Failure, "there is no plane in %s yet; start one with: %s", g.DataDir, g.Hint("up"))
	case len(file.Contexts) == 0 && len(file.Clusters) == 0:
		return nil, "", exit.Errorf(exit.Failure,
			"no plane is known here: start one on this machine with: polder up, or name the kubeconfig of another with --kubeconfig or $KUBECONFIG")
	}
	if err := g.checkContext(rules, file); err != nil {
		return nil, "", err
	}
	return clientConfig(rules, file, g.contextName)
}

// clientConfig is how one context of a kubeconfig reaches its plane.
func clientConfig(rules *clientcmd.ClientConfigLoadingRules, file *clientcmdapi.Config,
	name string) (*rest.Config, string, error) {
	loaded := clientcmd.NewDefaultClientConfig(*file, &clientcmd.ConfigOverrides{CurrentContext: name})
	config, err := loaded.ClientConfig()
	if err != nil {
		return nil, "", fmt.Errorf("%s cannot be used: %w", KubeconfigPaths(rules), err)
	}
	namespace, _, err := loaded.Namespace()
	return config, namespace, err
}

// readKubeconfig reads the files that rules name. There may be none, unless one was named.
func (g *Globals) readKubeconfig(rules *clientcmd.ClientConfigLoadingRules) (*clientcmdapi.Config, error) {
	if g.kubeconfigFile != "" {
		if _, err := os.Stat(g.kubeconfigFile); errors.Is(err, os.ErrNotExist) {
			return nil, exit.Errorf(exit.Usage, "there is no file %s; name a kubeconfig with --kubeconfig", g.kubeconfigFile)
		}
	}
	file, err := rules.Load()
	switch {
	case err != nil && strings.Contains(err.Error(), "couldn't get version/kind"): // client-go has no type for it
		return nil, exit.Errorf(exit.Usage, "%s is no kubeconfig; name one with --kubeconfig or $KUBECONFIG",
			KubeconfigPaths(rules))
	case err != nil:
		return nil, fmt.Errorf("%s cannot be read as a kubeconfig: %w", KubeconfigPaths(rules), err)
	}
	return file, nil
}

// checkContext is an error if a context was named that is not there.
func (g *Globals) checkContext(rules *clientcmd.ClientConfigLoadingRules, file *clientcmdapi.Config) error {
	if g.contextName == "" || file.Contexts[g.contextName] != nil {
		return nil
	}
	return exit.Errorf(exit.Usage, "%s has no context %q; choose from: %s", KubeconfigPaths(rules), g.contextName,
		strings.Join(ContextNames(file), ", "))
}

// KubeconfigPaths are the files that rules name, for a sentence; they need not exist.
func KubeconfigPaths(rules *clientcmd.ClientConfigLoadingRules) string {
	return strings.Join(rules.Precedence, ", ")
}

// ContextNames are those of a kubeconfig, in order.
func ContextNames(c *clientcmdapi.Config) []string {
	var names []string
	for name := range c.Contexts {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// Hint is a command on clusters for people to copy, with the flags that make it mean the same plane and namespace.
func (a *Access) Hint(command string) string {
	text := a.Globals.Program + " " + command
	if a.Namespace != a.defaultNamespace {
		text += " -n " + a.Namespace
	}
	return a.appendGivenFlags(text, append([]string{"context", "kubeconfig", "data-dir"}, serverFlags()...)...)
}

// KubectlHint is how people call kubectl on the same plane; its arguments may follow.
func (a *Access) KubectlHint() string {
	if a.Local {
		return a.Globals.KubectlHint()
	}
	return a.appendGivenFlags("kubectl", "context", "kubeconfig")
}

// appendGivenFlags adds those that were given to a command.
func (a *Access) appendGivenFlags(command string, names ...string) string {
	for _, name := range names {
		if a.Globals.isFlagSet(name) {
			command += " --" + name + " " + a.Globals.flags.Lookup(name).Value.String()
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
		fmt.Fprintln(p.w, "warning:", output.Sanitize(text))
	}
}
