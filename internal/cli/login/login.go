// Package login has the commands with which people log in to a plane: login, logout, whoami, and the one that kubectl
// and polder call to get a token. A plane believes tokens of an OpenID Connect issuer; polder gets them in the browser
// or, where there is none, with a code that is typed elsewhere, and renews them by itself.
package login

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/polder-kaas/polder/internal/cli/connect"
	"github.com/polder-kaas/polder/internal/cli/kubeconfigfile"
	"github.com/polder-kaas/polder/internal/cli/output"
	"github.com/polder-kaas/polder/internal/cli/restplane"
	"github.com/polder-kaas/polder/internal/program/cmdline"
	"github.com/polder-kaas/polder/internal/program/exit"
)

// NewCommands are polder login, logout, whoami, and the hidden one that hands out tokens.
func NewCommands(g *connect.Globals) []*cobra.Command {
	return []*cobra.Command{newLoginCommand(g), newLogoutCommand(), newWhoAmICommand(g), newCredentialCommand(g)}
}

// loginOptions is one call of polder login.
type loginOptions struct {
	server    string
	name      string
	issuer    issuerConfig
	issuerCA  string // file
	ca        string // file
	namespace string
	device    bool
	noBrowser bool
	force     bool
	rules     *clientcmd.ClientConfigLoadingRules // of the kubeconfig
}

func newLoginCommand(g *connect.Globals) *cobra.Command {
	o := &loginOptions{}
	c := &cobra.Command{
		Use:   "login URL",
		Short: "Log in to a plane, for polder and kubectl",
		Long: `login gets you a token of the issuer that the plane at URL believes, in your browser or, with --device, with
a code that you type in a browser elsewhere. It adds a context to your kubeconfig and makes that the current one, so
that kubectl and all commands of polder on clusters work with it. The login is renewed by itself until the issuer ends
it, or polder logout does. It is kept in a file that only you can read; the kubeconfig holds no secret.

A URL that ends in /v1 is that of a REST API, which polder can use and kubectl cannot.

Who gave you the URL also knows --issuer and --client-id. The next login to the same plane needs neither.`,
		Example: `  polder login https://plane.example.org:7443 --issuer https://login.example.org --client-id polder
  polder login https://plane.example.org:7443 --device
  polder login https://plane.example.org/v1 -n acme`,
		Args: cmdline.Args(1, 1, "the URL of a plane"),
		RunE: func(c *cobra.Command, args []string) error {
			o.server, o.rules = args[0], loadingRules(c)
			return o.run(c, g)
		},
	}
	f := c.Flags()
	f.StringVar(&o.issuer.URL, "issuer", "", "`URL` of who vouches for you")
	f.StringVar(&o.issuer.ClientID, "client-id", "", "what the issuer calls polder")
	f.StringSliceVar(&o.issuer.Scopes, "scope", nil,
		"what the token should say beside your name, groups for example; may be repeated")
	f.StringVar(&o.issuerCA, "issuer-ca", "", "`FILE` with the certificates of who may vouch for the issuer (default the system's)")
	f.StringVar(&o.ca, "ca", "", "`FILE` with the certificates of who may vouch for the plane (default the system's)")
	f.StringVar(&o.name, "name", "", "of the login and its context (default: after the plane's address)")
	f.StringVarP(&o.namespace, "namespace", "n", "", "that commands mean if none is named")
	f.BoolVar(&o.device, "device", false, "log in with a browser elsewhere")
	f.BoolVar(&o.noBrowser, "no-browser", false, "print the address instead of opening the browser")
	f.BoolVar(&o.force, "force", false, "replace a context of the same name that is for another plane")
	return c
}

func (o *loginOptions) run(c *cobra.Command, g *connect.Globals) error {
	store, err := userSessions()
	if err != nil {
		return err
	}
	s, err := o.prepare(store)
	if err != nil {
		return err
	}
	i, err := discover(c.Context(), s.Issuer)
	if err != nil {
		return err
	}
	if o.device {
		err = i.onDevice(c.Context(), &s, func(address, code string) {
			fmt.Fprintf(c.ErrOrStderr(), "Open %s on any device, and type this code there: %s\n", address, code)
		})
	} else {
		err = i.inBrowser(c.Context(), &s, o.openBrowser(c))
	}
	if err != nil {
		return err
	}
	config, err := o.kubeconfig(s)
	if err != nil {
		return err
	}
	who, err := o.greet(c.Context(), config, s)
	if err != nil {
		return err
	}
	added, err := o.addContext(config)
	if err != nil {
		return err
	}
	if err := store.save(o.name, s); err != nil {
		return err
	}
	fmt.Fprintf(c.OutOrStdout(), "Logged in to %s as %s. ", s.Server, output.Sanitize(who))
	fmt.Fprintln(c.OutOrStdout(), added.describe(o.name))
	if added.isCurrent && g.MeansLocalPlane() {
		_, err = fmt.Fprintf(c.OutOrStdout(), "There is a plane on this computer, which polder means unless you say: polder --context %s\n", o.name)
	}
	return err
}

// prepare makes a login of the flags and, for what they leave out, of the last one to the same plane.
func (o *loginOptions) prepare(store sessions) (session, error) {
	u, err := url.Parse(o.server)
	if err != nil || !isHTTPS(o.server) || strings.Trim(u.Path, "/") != "" && !restplane.IsURL(o.server) || u.RawQuery != "" || u.Fragment != "" {
		return session{}, exit.Errorf(exit.Usage, "%q is no URL of a plane; examples are https://plane.example.org:7443 and, of a REST API, https://plane.example.org/v1", o.server)
	}
	o.server = strings.TrimRight(o.server, "/")
	o.name = cmp.Or(o.name, "polder-"+strings.NewReplacer(":", "-", "[", "", "]", "").Replace(u.Host))
	before, err := store.load(o.name)
	if err != nil && !errors.Is(err, errNoSession) {
		return session{}, err
	}
	if before.Server != "" && before.Server != o.server {
		if !o.force {
			return session{}, exit.Errorf(exit.Usage,
				"login %s is to another plane, %s; name this one with --name, or replace that with --force", o.name, before.Server)
		}
		before = session{}
		// At once: the token of one plane must not be sent to the other.
		if err := store.remove(o.name); err != nil {
			return session{}, err
		}
	}
	s := session{Server: o.server, Issuer: o.issuer}
	if o.issuerCA != "" {
		b, err := os.ReadFile(o.issuerCA)
		if err != nil {
			return s, exit.Errorf(exit.Usage, "--issuer-ca: %w", err)
		}
		s.Issuer.CA = string(b)
	}
	if before.Server == o.server && (s.Issuer.URL == "" || s.Issuer.URL == before.Issuer.URL) {
		s.Issuer.URL = before.Issuer.URL
		s.Issuer.ClientID = cmp.Or(s.Issuer.ClientID, before.Issuer.ClientID)
		s.Issuer.CA = cmp.Or(s.Issuer.CA, before.Issuer.CA)
		if s.Issuer.Scopes == nil {
			s.Issuer.Scopes = before.Issuer.Scopes
		}
	}
	if s.Issuer.URL == "" {
		return s, exit.Errorf(exit.Usage,
			"you have not logged in to %s yet: name who vouches for you with --issuer and --client-id, which the plane's operator knows", o.server)
	}
	return s, nil
}

// openBrowser opens an address, and prints it for those whose browser does not open.
func (o *loginOptions) openBrowser(c *cobra.Command) func(string) {
	return func(address string) {
		fmt.Fprintf(c.ErrOrStderr(), "Log in at %s\n", address)
		if !o.noBrowser {
			openCommand(address)
		}
	}
}

// openCommand is what desktops have to open an address. Where there is none, people have read it.
func openCommand(address string) {
	name := "xdg-open"
	if runtime.GOOS == "darwin" {
		name = "open"
	}
	if path, err := exec.LookPath(name); err == nil {
		cmd := exec.Command(path, address) //nolint:gosec,forbidigo // the user's browser; no shell, and an https address
		if cmd.Start() == nil {
			go func() { _ = cmd.Wait() }()
		}
	}
}

// kubeconfig has one context, whose user asks polder for a token.
func (o *loginOptions) kubeconfig(s session) (*clientcmdapi.Config, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cluster := &clientcmdapi.Cluster{Server: s.Server}
	if o.ca != "" {
		if cluster.CertificateAuthorityData, err = os.ReadFile(o.ca); err != nil {
			return nil, exit.Errorf(exit.Usage, "--ca: %w", err)
		}
	} else {
		cluster.CertificateAuthorityData = knownAuthority(o.rules, s.Server)
	}
	k := clientcmdapi.NewConfig()
	k.CurrentContext = o.name
	k.Clusters[o.name] = cluster
	k.Contexts[o.name] = &clientcmdapi.Context{Cluster: o.name, AuthInfo: o.name, Namespace: o.namespace}
	k.AuthInfos[o.name] = &clientcmdapi.AuthInfo{Exec: &clientcmdapi.ExecConfig{
		APIVersion: execVersion, Command: self, Args: []string{"credential", o.name},
		InteractiveMode: clientcmdapi.NeverExecInteractiveMode, ProvideClusterInfo: true,
		InstallHint: "polder hands out the token of your login; it has been moved since: log in again with it",
	}}
	return k, nil
}

// knownAuthority is what the kubeconfig has for the same plane already.
func knownAuthority(rules *clientcmd.ClientConfigLoadingRules, server string) []byte {
	whole, err := rules.Load()
	if err != nil {
		return nil // it is said when the context is added
	}
	for _, c := range whole.Clusters {
		if c.Server == server && len(c.CertificateAuthorityData) > 0 {
			return c.CertificateAuthorityData
		}
	}
	return nil
}

// loadingRules say which files are the kubeconfig: that of the flag --kubeconfig, or those that kubectl takes.
func loadingRules(c *cobra.Command) *clientcmd.ClientConfigLoadingRules {
	if f := c.Flag("kubeconfig"); f != nil && f.Value.String() != "" {
		return &clientcmd.ClientConfigLoadingRules{Precedence: []string{f.Value.String()}}
	}
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.WarnIfAllMissing = false // then the file is made
	return rules
}

// greet asks the plane who we are for it, before anything is written.
func (o *loginOptions) greet(ctx context.Context, k *clientcmdapi.Config, s session) (string, error) {
	cfg, err := clientcmd.NewDefaultClientConfig(*k, &clientcmd.ConfigOverrides{}).ClientConfig()
	if err != nil {
		return "", err
	}
	cfg = rest.AnonymousClientConfig(cfg)
	cfg.BearerToken, cfg.Timeout = s.IDToken, 30*time.Second
	restplane.Use(cfg)
	who, err := reviewSelf(ctx, cfg)
	switch {
	case apierrors.IsUnauthorized(err):
		return "", exit.Errorf(exit.Failure,
			"issuer %s has let you in, but the plane at %s does not believe its tokens for client %s; ask the plane's operator (polder status says why)",
			s.Issuer.URL, s.Server, s.Issuer.ClientID)
	case err != nil && strings.Contains(err.Error(), "certificate signed by unknown authority"):
		return "", exit.Errorf(exit.Failure, "nobody whom this computer trusts vouches for %s; name who does with --ca", s.Server)
	case err != nil:
		return "", fmt.Errorf("asking %s who you are: %w", s.Server, unwrapURLError(err))
	}
	return who.Username, nil
}

// addedContext is where the context of a login is.
type addedContext struct {
	file      string
	isCurrent bool   // for whoever names no other
	before    string // the current one until now
}

func (a addedContext) describe(name string) string {
	switch {
	case !a.isCurrent: // $KUBECONFIG means other files, or one of them says which is current
		return fmt.Sprintf("Context %s is in %s; use it with --kubeconfig %s --context %s.", name, a.file, a.file, name)
	case a.before != "" && a.before != name:
		return fmt.Sprintf("Context %s in %s is the current one; it was %s.", name, a.file, output.Sanitize(a.before))
	}
	return fmt.Sprintf("Context %s in %s is the current one.", name, a.file)
}

// addContext adds the context to the kubeconfig, and makes it the current one of its file.
func (o *loginOptions) addContext(k *clientcmdapi.Config) (a addedContext, err error) {
	a.file = kubeconfigfile.MergeTarget(o.rules, o.name)
	if whole, err := o.rules.Load(); err == nil {
		a.before = whole.CurrentContext
	}
	rules := o.rules
	if !slices.Contains(rules.Precedence, a.file) {
		rules = &clientcmd.ClientConfigLoadingRules{Precedence: []string{a.file}}
	}
	if err := kubeconfigfile.Merge(a.file, rules, k, kubeconfigfile.Options{Force: o.force, Use: true}); err != nil {
		return a, err
	}
	whole, err := o.rules.Load()
	a.isCurrent = err == nil && whole.CurrentContext == o.name
	return a, nil
}
