package connect

import (
	"cmp"
	"crypto/x509"
	"os"
	"strings"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/polder-kaas/polder/internal/cli/restplane"
	"github.com/polder-kaas/polder/internal/program/exit"
)

// serverFlags are those that name a REST API, and who one is there.
func serverFlags() []string { return []string{"server", "token-file", "certificate-authority"} }

func (g *Globals) hasServerFlags() bool {
	return g.server != "" || g.tokenFile != "" || g.authorityFile != ""
}

// loadServerConfig is how the REST API of --server is reached: with the login to it that a kubeconfig has, or a token
// from a file. No token that is for another server is used.
func (g *Globals) loadServerConfig(rules *clientcmd.ClientConfigLoadingRules, _ bool) (*rest.Config, string, error) {
	server := strings.TrimRight(g.server, "/")
	switch {
	case server == "":
		return nil, "", exit.Errorf(exit.Usage, "--token-file and --certificate-authority are for the REST API that --server names")
	case !restplane.IsURL(server):
		return nil, "", exit.Errorf(exit.Usage,
			"--server %q is no URL of a REST API; an example is https://polder.example.org/v1", g.server)
	}
	file, err := g.readKubeconfig(rules)
	if err == nil {
		err = g.checkContext(rules, file)
	}
	if err != nil {
		return nil, "", err
	}
	config, namespace := &rest.Config{Host: server}, "default"
	name, err := g.findContext(file, server)
	if err != nil {
		return nil, "", err
	}
	if name != "" {
		if config, namespace, err = clientConfig(rules, file, name); err != nil {
			return nil, "", err
		}
	}
	switch {
	case g.tokenFile != "":
		config = rest.AnonymousClientConfig(config)
		config.BearerTokenFile = g.tokenFile // which is read again when its token has ended
		if config.BearerToken, err = readToken(g.tokenFile); err != nil {
			return nil, "", err
		}
	case name == "":
		return nil, "", exit.Errorf(exit.Usage,
			"there is no login to %s here; log in with: polder login %s, or name a file with a token with --token-file", server, server)
	}
	if g.authorityFile != "" {
		if config.CAData, err = readAuthority(g.authorityFile); err != nil {
			return nil, "", err
		}
	}
	return config, namespace, nil
}

// readAuthority reads the certificates of who may vouch for a server.
func readAuthority(file string) ([]byte, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, exit.Errorf(exit.Usage, "--certificate-authority: %w", err)
	}
	if !x509.NewCertPool().AppendCertsFromPEM(b) {
		return nil, exit.Errorf(exit.Usage, "--certificate-authority: %s has no certificate", file)
	}
	return b, nil
}

// findContext returns the context of a kubeconfig that is for a server, or nothing if there is none: that of the flag
// --context, the current one, or the only one.
func (g *Globals) findContext(file *clientcmdapi.Config, server string) (string, error) {
	var found []string
	for _, name := range ContextNames(file) {
		c := file.Clusters[file.Contexts[name].Cluster]
		if c != nil && strings.TrimRight(c.Server, "/") == server {
			found = append(found, name)
		}
	}
	wanted := cmp.Or(g.contextName, file.CurrentContext)
	for _, name := range found {
		if name == wanted {
			return name, nil
		}
	}
	switch {
	case g.contextName != "":
		return "", exit.Errorf(exit.Usage, "context %q is for another server than %s; leave out one of them", g.contextName, server)
	case len(found) == 0:
		return "", nil
	case len(found) > 1 && g.tokenFile == "":
		return "", exit.Errorf(exit.Usage, "there are several logins to %s; choose one with --context: %s", server,
			strings.Join(found, ", "))
	}
	return found[0], nil
}

// maxToken is more than any token has.
const maxToken = 1 << 16

// readToken reads a token from a file. What is wrong with it never says what is in it.
func readToken(file string) (string, error) {
	info, err := os.Stat(file)
	if err != nil {
		return "", exit.Errorf(exit.Usage, "--token-file: %w", err)
	}
	if info.Size() > maxToken || info.IsDir() {
		return "", exit.Errorf(exit.Usage, "%s is no file with a token alone", file)
	}
	b, err := os.ReadFile(file)
	if err != nil {
		return "", exit.Errorf(exit.Usage, "--token-file: %w", err)
	}
	token := strings.TrimSpace(string(b))
	if token == "" || len(strings.Fields(token)) > 1 {
		return "", exit.Errorf(exit.Usage, "%s is no file with a token alone", file)
	}
	return token, nil
}
