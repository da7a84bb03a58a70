package login

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientauthv1 "k8s.io/client-go/pkg/apis/clientauthentication/v1"

	"github.com/polder-kaas/polder/internal/cli/connect"
	"github.com/polder-kaas/polder/internal/program/cmdline"
	"github.com/polder-kaas/polder/internal/program/exit"
)

// execVersion is how kubectl and polder speak of tokens.
const execVersion = "client.authentication.k8s.io/v1"

// minLife is what a token must have left to be handed out: a request with it takes time, and clocks differ.
const minLife = time.Minute

// newCredentialCommand is what kubeconfigs of polder login call.
func newCredentialCommand(g *connect.Globals) *cobra.Command {
	return &cobra.Command{
		Use:    "credential NAME",
		Short:  "Print the token of a login, for kubectl",
		Args:   cmdline.Args(1, 1, "the name of a login"),
		Hidden: true,
		RunE: func(c *cobra.Command, args []string) error {
			store, err := userSessions()
			if err != nil {
				return err
			}
			s, err := store.current(c.Context(), args[0], g.Now())
			if err != nil {
				return err
			}
			if err := s.checkServer(os.Getenv(execInfo)); err != nil { //nolint:forbidigo // so client-go hands it over
				return err
			}
			return json.NewEncoder(c.OutOrStdout()).Encode(clientauthv1.ExecCredential{
				TypeMeta: metav1.TypeMeta{APIVersion: execVersion, Kind: "ExecCredential"},
				Status: &clientauthv1.ExecCredentialStatus{
					Token: s.IDToken, ExpirationTimestamp: &metav1.Time{Time: s.Expiry.Add(-minLife)},
				},
			})
		},
	}
}

// execInfo is the variable in which client-go says for which cluster it wants a token.
const execInfo = "KUBERNETES_EXEC_INFO"

// checkServer keeps a token from a server that it is not for: somebody has changed the kubeconfig.
func (v session) checkServer(info string) error {
	if info == "" {
		return nil // called by hand
	}
	var asked clientauthv1.ExecCredential
	if err := json.Unmarshal([]byte(info), &asked); err != nil {
		return fmt.Errorf("%s cannot be read: %w", execInfo, err)
	}
	if c := asked.Spec.Cluster; c == nil || c.Server != v.Server {
		return exit.Errorf(exit.Failure, "this login is to %s; its token is not sent to another server", v.Server)
	}
	return nil
}

// current is a login with a token that is good for a while, renewed if it must be.
func (s sessions) current(ctx context.Context, name string, now time.Time) (session, error) {
	v, err := s.load(name)
	if errors.Is(err, errNoSession) {
		return v, exit.Errorf(exit.Failure, "you have logged out of %s; log in again with: polder login URL --name %s", name, name)
	}
	if err != nil || v.isGood(now) {
		return v, err
	}
	unlock, err := s.lock(ctx, name)
	if err != nil {
		return v, err
	}
	defer unlock()
	if v, err = s.load(name); err != nil || v.isGood(now) {
		return v, err // another has renewed it meanwhile
	}
	if v.RefreshToken == "" {
		return v, v.ended(name)
	}
	i, err := discover(ctx, v.Issuer)
	if err != nil {
		return v, err
	}
	err = i.refresh(ctx, &v)
	if refused := (*refusedError)(nil); errors.As(err, &refused) && refused.code == "invalid_grant" {
		return v, v.ended(name)
	}
	if err != nil {
		return v, err
	}
	return v, s.save(name, v)
}

func (v session) isGood(now time.Time) bool { return v.Expiry.Sub(now) > minLife }

// ended says that only a person can go on.
func (v session) ended(name string) error {
	return exit.Errorf(exit.Failure, "your login to %s has ended; log in again with: polder login %s --name %s", v.Server,
		v.Server, name)
}
