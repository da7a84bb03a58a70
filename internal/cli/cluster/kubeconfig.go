package cluster

import (
	"encoding/base64"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/polder-kaas/polder/api/v1alpha1"
	"github.com/polder-kaas/polder/internal/apierror"
	"github.com/polder-kaas/polder/internal/cli/connect"
	"github.com/polder-kaas/polder/internal/program/cmdline"
	"github.com/polder-kaas/polder/internal/program/exit"
)

// How long a certificate may be valid, as the plane says too.
const (
	minValidity = 10 * time.Minute
	maxValidity = 8 * time.Hour
)

// kubeconfigOptions is one call of polder kubeconfig.
type kubeconfigOptions struct {
	cluster  string
	role     string
	validity time.Duration
	timeout  time.Duration
	admin    bool

	file  string
	merge bool
	force bool
}

// newKubeconfigCommand is polder kubeconfig.
func newKubeconfigCommand(g *connect.Globals) *cobra.Command {
	r := &kubeconfigOptions{}
	c := &cobra.Command{
		Use:   "kubeconfig NAME",
		Short: "Get access to a cluster for some hours",
		Long: `kubeconfig makes a key, has the plane sign it for some hours, and prints a kubeconfig with it, writes that to
a file, or merges it into your own as context NAME. The key never leaves this machine, but in what is printed.

  polder kubeconfig demo --merge && kubectl --context demo get nodes
  polder kubeconfig demo --role viewer --for 1h > demo.kubeconfig

--admin reads Cluster API's own kubeconfig instead, which is valid for long and which only operators may read.`,
		Args:              cmdline.Args(1, 1, "the name of a cluster"),
		ValidArgsFunction: completeNames(g, 1),
		RunE: func(c *cobra.Command, args []string) error {
			r.cluster = args[0]
			if err := r.check(c); err != nil {
				return err
			}
			a, err := g.Connect(c)
			if err != nil {
				return err
			}
			k, err := r.get(c, a)
			if err != nil {
				return err
			}
			return r.deliver(c, k)
		},
	}
	addNamespaceFlag(c)
	f := c.Flags()
	f.StringVar(&r.role, "role", string(v1alpha1.RoleAdmin), "what the holder may do: `admin` or viewer")
	f.DurationVar(&r.validity, "for", maxValidity, "how long it is valid, from 10m to 8h")
	addTimeoutFlag(c, &r.timeout, connect.RequestTimeout, "how long to wait for the plane's signature")
	f.StringVar(&r.file, "output-file", "", "write it to a `file` that only you can read")
	f.BoolVar(&r.merge, "merge", false, "merge it into $KUBECONFIG or ~/.kube/config as context NAME, that of a viewer as NAME-viewer")
	f.BoolVar(&r.force, "force", false, "with --merge: replace a context of this name that is for another cluster")
	f.BoolVar(&r.admin, "admin", false, "read Cluster API's own kubeconfig, where you may")
	// the flag exists
	_ = c.RegisterFlagCompletionFunc("role",
		cobra.FixedCompletions([]string{"admin", "viewer"}, cobra.ShellCompDirectiveNoFileComp))
	return c
}

// check finds contradictions before the plane is asked, which would sign a certificate for nothing.
func (r *kubeconfigOptions) check(c *cobra.Command) error {
	role := v1alpha1.Role(r.role)
	switch {
	case role != v1alpha1.RoleAdmin && role != v1alpha1.RoleViewer:
		return exit.Errorf(exit.Usage, "there is no role %q; choose admin or viewer", r.role)
	case r.validity < minValidity || r.validity > maxValidity:
		return exit.Errorf(exit.Usage, "--for %s is not possible; choose from 10m to 8h", r.validity)
	case r.file != "" && r.merge:
		return exit.Errorf(exit.Usage, "--output-file and --merge contradict each other; give one of them")
	case r.admin && (c.Flags().Changed("role") || c.Flags().Changed("for")):
		return exit.Errorf(exit.Usage, "--admin is what Cluster API made: it takes neither --role nor --for")
	}
	return nil
}

// issuedKubeconfig is access to a cluster.
type issuedKubeconfig struct {
	config    *clientcmdapi.Config // with one context, which is current
	expiresAt time.Time            // zero if nobody says
}

// get is access of one's own that expires, unless Cluster API's is asked for, which does not and is for operators.
func (r *kubeconfigOptions) get(c *cobra.Command, a *connect.Access) (*issuedKubeconfig, error) {
	if r.admin {
		return r.readAdminKubeconfig(c, a)
	}
	return r.requestKubeconfig(c, a)
}

// newIssuedKubeconfig is one with all names made of the cluster's, so that it can be merged with others. Those of a
// viewer are others than an administrator's: neither replaces the other's access.
func newIssuedKubeconfig(namespace, name string, role v1alpha1.Role, cluster *clientcmdapi.Cluster,
	user *clientcmdapi.AuthInfo) *issuedKubeconfig {
	k := clientcmdapi.NewConfig()
	entry, suffix := "polder-"+namespace+"-"+name, ""
	if role == v1alpha1.RoleViewer {
		suffix = "-viewer"
	}
	k.Clusters[entry], k.AuthInfos[entry+suffix] = cluster, user
	k.Contexts[name+suffix] = &clientcmdapi.Context{Cluster: entry, AuthInfo: entry + suffix}
	k.CurrentContext = name + suffix
	return &issuedKubeconfig{config: k}
}

// readAdminKubeconfig reads the kubeconfig that Cluster API made.
func (r *kubeconfigOptions) readAdminKubeconfig(c *cobra.Command, a *connect.Access) (*issuedKubeconfig, error) {
	name := r.cluster + "-kubeconfig"
	u, err := a.Client.Resource(corev1.SchemeGroupVersion.WithResource("secrets")).Namespace(a.Namespace).Get(c.Context(),
		name, metav1.GetOptions{})
	switch {
	case apierrors.IsForbidden(err):
		return nil, fmt.Errorf(
			"you may not read Secret %s in namespace %s, which is for operators; leave out --admin to get access of your own for some hours", name, a.Namespace,
		)
	case apierror.IsObjectNotFound(err, "secrets", name):
		return nil, preferNotFound(c.Context(), a, r.cluster,
			fmt.Errorf("there is no Secret %s in namespace %s: the cluster has no control plane yet; see: %s", name, a.Namespace,
				a.Hint("describe "+r.cluster)))
	case err != nil:
		return nil, a.Explain("reading Secret "+name, err)
	}
	text, _, _ := unstructured.NestedString(u.Object, "data", "value")
	b, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return nil, fmt.Errorf("the value of Secret %s in namespace %s is no kubeconfig", name, a.Namespace)
	}
	k, err := clientcmd.Load(b)
	if err != nil || k.Contexts[k.CurrentContext] == nil {
		return nil, fmt.Errorf("the value of Secret %s in namespace %s is no kubeconfig", name, a.Namespace)
	}
	context := k.Contexts[k.CurrentContext]
	if k.Clusters[context.Cluster] == nil || k.AuthInfos[context.AuthInfo] == nil {
		return nil, fmt.Errorf("the kubeconfig in Secret %s in namespace %s lacks its cluster or user", name, a.Namespace)
	}
	return newIssuedKubeconfig(a.Namespace, r.cluster, v1alpha1.RoleAdmin, k.Clusters[context.Cluster],
		k.AuthInfos[context.AuthInfo]), nil
}
