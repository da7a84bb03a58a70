package plane

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/clientcmd"

	csv1 "github.com/polder-kaas/polder/api/clusterstack/v1alpha1"
	"github.com/polder-kaas/polder/api/v1alpha1"
	"github.com/polder-kaas/polder/internal/cli/connect"
	"github.com/polder-kaas/polder/internal/cli/objects"
	"github.com/polder-kaas/polder/internal/plane/lifecycle"
	"github.com/polder-kaas/polder/internal/releases/shipped"
)

// shippedStacksTimeout is how long polder up waits for the shipped stacks once the plane is ready. It takes seconds.
const shippedStacksTimeout = 30 * time.Second

// waitForShippedStacks waits until the stacks that are in the binary are installed, so that whoever comes next can make
// a cluster, and is told what is wrong with it. The plane itself is ready without them, so that one is not is only
// said.
func waitForShippedStacks(c *cobra.Command, g *connect.Globals, p *lifecycle.Plane, elapsed func() time.Duration) {
	tell := c.ErrOrStderr()
	config, err := clientcmd.BuildConfigFromFlags("", p.Kubeconfig())
	a := &connect.Access{Local: true, Globals: g}
	if err == nil {
		a.Address, config.QPS = config.Host, -1 // a few requests need no brake
		a.Client, err = dynamic.NewForConfig(config)
	}
	if err != nil {
		fmt.Fprintf(tell, "The stacks were not looked at: %v\n", err)
		return
	}
	told := map[string]bool{}
	var missing []csv1.ClusterStack
	err = wait.PollUntilContextTimeout(c.Context(), 100*time.Millisecond, shippedStacksTimeout, true,
		func(ctx context.Context) (bool, error) {
			all, problems := objects.ListStacks(ctx, a, v1alpha1.CatalogueNamespace)
			if len(problems) > 0 {
				return false, problems[0]
			}
			missing = printReadyStacks(tell, all, told, elapsed)
			return len(missing) == 0, nil
		})
	switch {
	case err == nil:
		return
	case c.Context().Err() == nil && wait.Interrupted(err):
		err = fmt.Errorf("they take longer than %s", shippedStacksTimeout)
	}
	fmt.Fprintf(tell, "The stacks that come with Polder are not all installed: %v; see: %s\n", err, a.Hint("stack status"))
	for _, s := range missing {
		why := "nobody has looked at it yet"
		if c := meta.FindStatusCondition(s.Status.Conditions, csv1.ConditionReady); c != nil {
			why = c.Message
		}
		fmt.Fprintf(tell, "  %s: %s\n", s.Name, why)
	}
}

// printReadyStacks prints a line for each shipped stack that has become ready, and returns those that have not.
func printReadyStacks(w io.Writer, all []csv1.ClusterStack, told map[string]bool,
	elapsed func() time.Duration) (missing []csv1.ClusterStack) {
	for _, s := range all {
		switch {
		case s.Spec.Source == nil || s.Spec.Source.Directory != shipped.Directory:
		case !meta.IsStatusConditionTrue(s.Status.Conditions, csv1.ConditionReady):
			missing = append(missing, s)
		case !told[s.Name]:
			told[s.Name] = true
			fmt.Fprintf(w, "  %5.1fs  %-18s installed\n", elapsed().Seconds(), s.Name)
		}
	}
	return missing
}
