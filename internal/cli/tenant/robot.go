package tenant

import (
	"context"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"
	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	coreclient "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/polder-kaas/polder/api/v1alpha1"
	"github.com/polder-kaas/polder/internal/cli/connect"
	"github.com/polder-kaas/polder/internal/program/cmdline"
	"github.com/polder-kaas/polder/internal/program/exit"
)

// robotOptions is one call of polder tenant robot.
type robotOptions struct {
	role      string
	lifetime  time.Duration
	tokenOnly bool
}

// Lifetimes of tokens that the API server gives and the plane lets customers have.
const (
	minTokenLife = 10 * time.Minute
	maxTokenLife = 90 * 24 * time.Hour
)

func newRobotCommand(g *connect.Globals) *cobra.Command {
	o := &robotOptions{}
	c := &cobra.Command{
		Use:   "robot NAME ROBOT",
		Short: "Get a kubeconfig with a token for a program",
		Long: `robot takes a robot into a tenant, if it is not there, and prints a kubeconfig for it with a token that ends. Tokens that it was given
before stay valid until they end, or the robot is taken out: polder tenant remove NAME robot:ROBOT.`,
		Example:           "  polder tenant robot acme ci --role editor --for 720h > ci.kubeconfig",
		Args:              cmdline.Args(2, 2, "the name of a tenant and that of a robot"),
		ValidArgsFunction: completeNames(g),
		RunE: func(c *cobra.Command, args []string) error {
			if o.lifetime < minTokenLife || o.lifetime > maxTokenLife {
				return exit.Errorf(exit.Usage, "--for %s does not fit; a token is valid for 10m to 2160h, which are 90 days", o.lifetime)
			}
			a, err := g.Connect(c)
			if err != nil {
				return err
			}
			return o.run(c, a, args[0], args[1])
		},
	}
	c.Flags().StringVar(&o.role, "role", "", "what it may do: editor or viewer (default for a new one: viewer)")
	c.Flags().DurationVar(&o.lifetime, "for", 24*time.Hour, "how long the token is valid")
	c.Flags().BoolVar(&o.tokenOnly, "token-only", false, "print the token alone")
	return c
}

// run takes the robot in, and prints its kubeconfig.
func (o *robotOptions) run(c *cobra.Command, a *connect.Access, tenant, robot string) error {
	namespace := ""
	err := o.ensure(c.Context(), a, tenant, robot, &namespace)
	if err != nil {
		return err
	}
	token, err := o.requestToken(c.Context(), a, namespace, robot)
	if err != nil {
		return err
	}
	if o.tokenOnly {
		_, err = fmt.Fprintln(c.OutOrStdout(), token.Status.Token)
		return err
	}
	k, err := newKubeconfig(a, tenant, namespace, robot, token.Status.Token)
	if err != nil {
		return err
	}
	if _, err := c.OutOrStdout().Write(k); err != nil {
		return err
	}
	_, err = fmt.Fprintf(c.ErrOrStderr(), "The token is valid until %s; keep it secret.\n",
		token.Status.ExpirationTimestamp.Format(time.RFC3339))
	return err
}

// ensure takes the robot in, or gives it another role, unless it is as wanted.
func (o *robotOptions) ensure(ctx context.Context, a *connect.Access, tenant, robot string, namespace *string) error {
	t, err := get(ctx, a, tenant)
	if err != nil {
		return err
	}
	*namespace = t.NamespaceName()
	i := slices.IndexFunc(t.Spec.Robots, func(r v1alpha1.TenantRobot) bool { return r.Name == robot })
	if i >= 0 && (o.role == "" || t.Spec.Robots[i].Role == v1alpha1.TenantRole(o.role)) {
		return nil
	}
	want := v1alpha1.TenantRobot{Name: robot, Role: v1alpha1.TenantViewer}
	if o.role != "" {
		want.Role = v1alpha1.TenantRole(o.role)
	}
	return change(ctx, a, tenant, func(s *v1alpha1.TenantSpec) error {
		i := slices.IndexFunc(s.Robots, func(r v1alpha1.TenantRobot) bool { return r.Name == robot })
		if i >= 0 {
			s.Robots[i] = want
			return nil
		}
		s.Robots = append(s.Robots, want)
		return nil
	})
}

// requestToken asks for a token until the account is there.
func (o *robotOptions) requestToken(ctx context.Context, a *connect.Access,
	namespace, robot string) (*authenticationv1.TokenRequest, error) {
	core, err := coreclient.NewForConfig(a.Config)
	if err != nil {
		return nil, err
	}
	seconds := int64(o.lifetime / time.Second)
	var token *authenticationv1.TokenRequest
	var last error
	err = wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, connect.RequestTimeout, true,
		func(ctx context.Context) (bool, error) {
			token, last = core.ServiceAccounts(namespace).CreateToken(ctx, v1alpha1.RobotAccountPrefix+robot,
				&authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &seconds}},
				metav1.CreateOptions{})
			if apierrors.IsNotFound(last) {
				return false, nil
			}
			return last == nil, last
		})
	if last != nil {
		err = last
	}
	return token, a.Explain(fmt.Sprintf("asking for a token of robot %q", robot), err)
}

// newKubeconfig returns a kubeconfig of the same plane with another's token.
func newKubeconfig(a *connect.Access, tenant, namespace, robot, token string) ([]byte, error) {
	ca := a.Config.CAData
	if len(ca) == 0 && a.Config.CAFile != "" {
		var err error
		if ca, err = os.ReadFile(a.Config.CAFile); err != nil {
			return nil, err
		}
	}
	name := tenant + "-" + robot
	k := clientcmdapi.NewConfig()
	k.Clusters[name] = &clientcmdapi.Cluster{
		Server: a.Config.Host, CertificateAuthorityData: ca, TLSServerName: a.Config.ServerName,
	}
	k.AuthInfos[name] = &clientcmdapi.AuthInfo{Token: token}
	k.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name, Namespace: namespace}
	k.CurrentContext = name
	return clientcmd.Write(*k)
}
