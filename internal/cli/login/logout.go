package login

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/polder-kaas/polder/internal/cli/connect"
	"github.com/polder-kaas/polder/internal/cli/kubeconfigfile"
	"github.com/polder-kaas/polder/internal/program/cmdline"
	"github.com/polder-kaas/polder/internal/program/exit"
)

func newLogoutCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "logout [NAME]",
		Short: "End a login: give it back to its issuer, and forget it",
		Long: `logout ends the login NAME, or the only one there is: the issuer is told to take no renewal any more, the file with the
token is removed, and its context is taken out of your kubeconfig. A token that somebody copied is good until it
expires.`,
		Args: cmdline.Args(0, 1, "at most the name of a login"),
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			store, err := userSessions()
			if err != nil {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return store.names(), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(c *cobra.Command, args []string) error {
			store, err := userSessions()
			if err != nil {
				return err
			}
			name, err := store.choose(args)
			if err != nil {
				return err
			}
			return logout(c, store, name)
		},
	}
}

// names are those of all logins, in order.
func (s sessions) names() (all []string) {
	entries, _ := os.ReadDir(s.dir) // none, if nobody has ever logged in
	for _, e := range entries {
		if name, ok := strings.CutSuffix(e.Name(), ".json"); ok && validName.MatchString(name) {
			all = append(all, name)
		}
	}
	slices.Sort(all)
	return all
}

// choose is the login that is meant.
func (s sessions) choose(args []string) (string, error) {
	all := s.names()
	switch {
	case len(args) == 1 && slices.Contains(all, args[0]):
		return args[0], nil
	case len(all) == 0:
		return "", exit.Errorf(exit.Usage, "you are not logged in anywhere")
	case len(args) == 1:
		return "", exit.Errorf(exit.Usage, "you have no login %q; choose from: %s", args[0], strings.Join(all, ", "))
	case len(all) > 1:
		return "", exit.Errorf(exit.Usage, "you have several logins; choose from: %s", strings.Join(all, ", "))
	}
	return all[0], nil
}

func logout(c *cobra.Command, store sessions, name string) error {
	unlock, err := store.lock(c.Context(), name) // nobody renews it meanwhile
	if err != nil {
		return err
	}
	defer unlock()
	s, err := store.load(name)
	if errors.Is(err, errNoSession) {
		return exit.Errorf(exit.Usage, "you have no login %q", name)
	}
	if err == nil {
		err = giveBack(c.Context(), s)
	}
	if err != nil {
		fmt.Fprintf(c.ErrOrStderr(), "The issuer was not told, and may renew the login for who has a copy of it: %v\n", err)
	}
	if err := removeContext(loadingRules(c), name, s.Server); err != nil {
		return err
	}
	if err := store.remove(name); err != nil {
		return err
	}
	_, err = fmt.Fprintf(c.OutOrStdout(), "Logged out of %s.\n", name)
	return err
}

// giveBack tells the issuer that nobody will come back.
func giveBack(ctx context.Context, s session) error {
	ctx, cancel := context.WithTimeout(ctx, connect.RequestTimeout)
	defer cancel()
	i, err := discover(ctx, s.Issuer)
	if err != nil {
		return err
	}
	return i.revoke(ctx, &s)
}

// removeContext takes what polder login has added out of the kubeconfig, unless it is another's by now.
func removeContext(rules *clientcmd.ClientConfigLoadingRules, name, server string) error {
	whole, err := rules.Load()
	if err != nil {
		return nil //nolint:nilerr // nothing of ours can be in a file that nobody can read
	}
	c, u, cluster := whole.Contexts[name], whole.AuthInfos[name], whole.Clusters[name]
	if c == nil || u == nil || u.Exec == nil || cluster == nil || cluster.Server != server ||
		!slices.Equal(u.Exec.Args, []string{"credential", name}) {
		return nil
	}
	return kubeconfigfile.Remove(c.LocationOfOrigin, name)
}
