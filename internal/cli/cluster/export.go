package cluster

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/polder-kaas/polder/api/v1alpha1"
	"github.com/polder-kaas/polder/internal/cli/connect"
	"github.com/polder-kaas/polder/internal/cli/objects"
	"github.com/polder-kaas/polder/internal/cli/output"
	"github.com/polder-kaas/polder/internal/program/cmdline"
	"github.com/polder-kaas/polder/provider/machinetype"
)

// newExportCommand is polder export.
func newExportCommand(g *connect.Globals) *cobra.Command {
	var exact bool
	var out output.Flag
	c := &cobra.Command{
		Use:   "export NAME",
		Short: "Write a cluster as a file that another provider can take",
		Long: `export prints a cluster as a file for polder create elsewhere: without its state, and without what only its provider
knows. Names of machine types that are the provider's own become portable ones, or shapes; zones are left out. What
is lost is told beside the file. --exact keeps all of the spec, for polder apply on the same cluster, which would
otherwise lose that too.`,
		Args:              cmdline.Args(1, 1, "the name of a cluster"),
		ValidArgsFunction: completeNames(g, 1),
		RunE: func(c *cobra.Command, args []string) error {
			a, err := g.Connect(c)
			if err != nil {
				return err
			}
			cluster, err := getCluster(c.Context(), a, args[0])
			if err != nil {
				return err
			}
			clearForExport(cluster)
			if !exact {
				told := makePortable(cluster, knownProvider(c.Context(), a, cluster.Spec.Provider))
				for _, lost := range told {
					fmt.Fprintln(c.ErrOrStderr(), "warning:", output.Sanitize(lost))
				}
				if len(told) > 0 {
					fmt.Fprintf(c.ErrOrStderr(), "warning: polder apply of this file on %s itself would change its machines; for that, use --exact\n", cluster.Name)
				}
			}
			u, err := objects.ToUnstructured(cluster)
			if err != nil {
				return err
			}
			return out.PrintObject(c.OutOrStdout(), u)
		},
	}
	addNamespaceFlag(c)
	c.Flags().BoolVar(&exact, "exact", false, "keep all of the spec, also what only this provider knows")
	out.AddFlags(c, output.FormatYAML, output.FormatJSON)
	return c
}

// knownProvider is nil if nobody can say anything about it.
func knownProvider(ctx context.Context, a *connect.Access, name string) *v1alpha1.Provider {
	if name == "" {
		return nil
	}
	p, err := getProvider(ctx, a, name)
	if err != nil {
		return nil
	}
	return p
}

// clearForExport takes away state, the namespace, and what programs have written into labels and annotations.
func clearForExport(c *v1alpha1.WorkloadCluster) {
	clearServerFields(c)
	c.Namespace = ""
	for _, m := range []map[string]string{c.Labels, c.Annotations} {
		maps.DeleteFunc(m, func(key, _ string) bool { return isSystemKey(key) })
	}
}

// isSystemKey says that a label or annotation is some program's.
func isSystemKey(key string) bool {
	domain, _, found := strings.Cut(key, "/")
	if !found {
		return false
	}
	return slices.ContainsFunc([]string{"kubernetes.io", "k8s.io", "x-k8s.io", "polder.dev"}, func(d string) bool {
		return domain == d || strings.HasSuffix(domain, "."+d)
	})
}

// makePortable takes away what only one provider knows, and says what is lost by that. from is nil if it is not known.
func makePortable(c *v1alpha1.WorkloadCluster, from *v1alpha1.Provider) (lost []string) {
	lost = append(lost, makeMachinePortable("control plane", &c.Spec.ControlPlane.MachineSelection, from)...)
	for i := range c.Spec.Workers {
		p := &c.Spec.Workers[i]
		lost = append(lost, makeMachinePortable("pool "+p.Name, &p.MachineSelection, from)...)
		if len(p.Zones) > 0 {
			lost = append(lost, fmt.Sprintf("pool %s: its zones %s are left out; other providers have others", p.Name,
				strings.Join(p.Zones, ", ")))
			p.Zones = nil
		}
	}
	own := parametersOf(from)
	for _, name := range slices.Sorted(maps.Keys(c.Spec.Parameters)) {
		if own[name] {
			delete(c.Spec.Parameters, name)
			lost = append(lost, fmt.Sprintf("parameter %s is left out; it is one of provider %s", name, from.Name))
		}
	}
	// Where it goes is said by polder create --provider, or there is only one.
	c.Spec.Provider = ""
	return lost
}

// makeMachinePortable keeps machine types whose names mean the same everywhere, and replaces those that only this
// provider knows.
func makeMachinePortable(part string, s *v1alpha1.MachineSelection, from *v1alpha1.Provider) []string {
	if s.MachineType == "" {
		return nil
	}
	if _, err := machinetype.Parse(s.MachineType); err == nil {
		return nil
	}
	before := s.MachineType
	*s = v1alpha1.MachineSelection{}
	if others := equivalentSelections(v1alpha1.MachineSelection{MachineType: before}, from); len(others) > 0 {
		*s = others[0]
		return nil
	}
	return []string{
		fmt.Sprintf("%s: nobody knows what machines %s are, so it is left out and the provider's default is taken", part,
			before),
	}
}
