package tenant

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/polder-kaas/polder/api/v1alpha1"
	"github.com/polder-kaas/polder/internal/cli/connect"
	"github.com/polder-kaas/polder/internal/cli/objects"
	"github.com/polder-kaas/polder/internal/cli/output"
	"github.com/polder-kaas/polder/internal/program/cmdline"
	"github.com/polder-kaas/polder/internal/program/exit"
)

// createOptions is one call of polder tenant create.
type createOptions struct {
	tenant       v1alpha1.Tenant
	members      memberFlags
	numbers      map[string]*int32
	memory, disk string
	plane        string
	timeout      time.Duration
}

func newCreateCommand(g *connect.Globals) *cobra.Command {
	o := &createOptions{}
	c := &cobra.Command{
		Use:   "create NAME",
		Short: "Make a tenant",
		Long: `create makes a tenant with a namespace of its own, and waits until its members can use it.
Where nothing is said, 20 clusters and 100 machines are allowed, of any size. What parameters of clusters may be is
written into the object: polder kubectl edit tenant NAME. Whether the tenant has a plane of its own is chosen now, and
cannot be changed later.`,
		Example: "  polder tenant create acme --admins group:acme-admins --editors user:bob --machines 30 --cpu 120",
		Args:    cmdline.Args(1, 1, "the name of a tenant"),
		RunE: func(c *cobra.Command, args []string) error {
			a, err := g.Connect(c)
			if err != nil {
				return err
			}
			return o.run(c, a, args[0])
		},
	}
	o.addFlags(c)
	return c
}

func (o *createOptions) addFlags(c *cobra.Command) {
	f := c.Flags()
	o.members.addFlags(c)
	f.StringVar(&o.tenant.Spec.Title, "title", "", "what people call it")
	f.StringVar(&o.plane, "plane", "shared", "shared: its clusters are beside those of others; dedicated: they are in a `plane` of their own, "+
		"a process of some 220 MB, behind the same address")
	f.StringVar(&o.tenant.Spec.Namespace, "namespace", "", "`namespace` with its clusters (default: that of its name)")
	o.numbers = map[string]*int32{}
	for name, what := range map[string]string{
		"clusters": "how many clusters it may have", "machines": "how many machines it may have",
		"control-planes": "how many of them for control planes", "cpu": "how many virtual CPUs they may have together",
	} {
		o.numbers[name] = f.Int32(name, 0, what)
	}
	f.StringVar(&o.memory, "memory", "", "how much memory machines may have together, for example 512Gi")
	f.StringVar(&o.disk, "disk", "", "how much disk machines may have together, for example 2T")
	f.StringSliceVar(&o.tenant.Spec.Allow.Providers, "allow-providers", nil, "`providers` that clusters may name (default: all)")
	f.StringSliceVar(&o.tenant.Spec.Allow.Stacks, "allow-stacks", nil, "`stacks` that clusters may be made of (default: all)")
	f.StringSliceVar(&o.tenant.Spec.Allow.MachineTypes, "allow-machine-types", nil, "`types` of machines that clusters may have (default: all)")
	f.DurationVar(&o.timeout, "timeout", 3*time.Minute, "how long to wait until members can use it")
}

// run makes the tenant, and waits.
func (o *createOptions) run(c *cobra.Command, a *connect.Access, name string) error {
	t := &o.tenant
	t.APIVersion, t.Kind, t.Name = v1alpha1.GroupVersion.String(), "Tenant", name
	var err error
	if t.Spec.Members, err = o.members.read(); err != nil {
		return err
	}
	if t.Spec.Plane, err = readPlane(o.plane); err != nil {
		return err
	}
	if err := o.readQuota(c); err != nil {
		return err
	}
	u, err := objects.ToUnstructured(t)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(c.Context(), connect.RequestTimeout)
	defer cancel()
	_, err = a.Client.Resource(tenantResource).Create(ctx, u, metav1.CreateOptions{FieldManager: "polder"})
	if apierrors.IsAlreadyExists(err) {
		return exit.Errorf(exit.Usage, "there is a tenant %q already; see: %s", name, a.Hint("tenant describe "+name))
	}
	if err != nil {
		return a.Explain(fmt.Sprintf("making tenant %q", name), err)
	}
	if err := o.await(c.Context(), a, name); err != nil {
		return err
	}
	_, err = fmt.Fprintf(c.OutOrStdout(), "tenant/%s is ready; its members use namespace %s, for example with: polder get -n %s\n", name,
		t.NamespaceName(), t.NamespaceName())
	if err == nil && len(t.Spec.Members) == 0 {
		_, err = fmt.Fprintf(c.OutOrStdout(), "It has no members yet; take some in with: %s\n",
			a.Hint("tenant add "+name+" --admins group:NAME"))
	}
	return err
}

// readPlane reads a kind of plane.
func readPlane(text string) (v1alpha1.PlaneKind, error) {
	for _, kind := range []v1alpha1.PlaneKind{v1alpha1.SharedPlane, v1alpha1.DedicatedPlane} {
		if strings.EqualFold(text, string(kind)) {
			return kind, nil
		}
	}
	return "", exit.Errorf(exit.Usage, "--plane %q is not known; choose shared or dedicated", text)
}

// amountPattern is what the plane takes for memory and disk.
var amountPattern = regexp.MustCompile(`^[0-9]{1,15}([KMGTP]i|[kMGTP])?$`)

// final are reasons that do not go away by waiting.
var final = []string{
	v1alpha1.ReasonNamespaceTaken, v1alpha1.ReasonNamespaceLost, v1alpha1.ReasonNamespaceReserved,
	v1alpha1.ReasonPlaneLost,
}

// readQuota reads those limits that were given: 0 is a limit, too.
func (o *createOptions) readQuota(c *cobra.Command) error {
	q := &o.tenant.Spec.Quota
	for flag, field := range map[string]**int32{
		"clusters": &q.Clusters, "machines": &q.Machines, "control-planes": &q.ControlPlanes, "cpu": &q.CPU,
	} {
		if c.Flags().Changed(flag) {
			*field = o.numbers[flag]
		}
	}
	for flag, field := range map[string]**resource.Quantity{"memory": &q.Memory, "disk": &q.Disk} {
		text := c.Flag(flag).Value.String()
		if text == "" {
			continue
		}
		amount, err := resource.ParseQuantity(text)
		if err != nil || !amountPattern.MatchString(text) {
			return exit.Errorf(exit.Usage, "--%s %q is no amount; write, for example, 512Gi", flag, text)
		}
		*field = &amount
	}
	return nil
}

// await waits until members can use a tenant, and says why they cannot.
func (o *createOptions) await(ctx context.Context, a *connect.Access, name string) error {
	message, refused := "nobody has looked at it yet", false
	isDone := func(ctx context.Context) (bool, error) {
		t, err := get(ctx, a, name)
		if err != nil {
			return false, err
		}
		r := meta.FindStatusCondition(t.Status.Conditions, v1alpha1.ConditionReady)
		if r == nil || r.ObservedGeneration != t.Generation {
			return false, nil
		}
		message, refused = r.Message, slices.Contains(final, r.Reason)
		return refused || r.Status == metav1.ConditionTrue, nil
	}
	err := wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, o.timeout, true, isDone)
	if refused || wait.Interrupted(err) && ctx.Err() == nil {
		return exit.Errorf(exit.NotReady, "tenant %q was made, and is not ready: %s", name, output.Sanitize(message))
	}
	return err
}
