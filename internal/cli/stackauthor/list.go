package stackauthor

import (
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/polder-kaas/polder/internal/cli/output"
	"github.com/polder-kaas/polder/internal/program/cmdline"
	"github.com/polder-kaas/polder/stack/version"
)

// listedRelease is one release in the output of list.
type listedRelease struct {
	Name       string `json:"name"`
	Provider   string `json:"provider"`
	Stack      string `json:"stack"`
	Version    string `json:"version"`
	Kubernetes string `json:"kubernetes"`
	Digest     string `json:"digest"`
}

// newListCommand is polder stack list.
func newListCommand() *cobra.Command {
	var r registryFlags
	var out output.Format
	var provider, name, kubernetes string
	c := &cobra.Command{
		Use:   "list FROM",
		Short: "Show which releases there are",
		Long: `list shows the releases in oci://host/repository or in a directory: stacks, versions, versions of Kubernetes and
digests, the newest of each last. A tag that is no name of a release is a warning.`,
		Args: cmdline.Args(1, 1, "a registry or a directory"),
		RunE: func(c *cobra.Command, args []string) error {
			store, _, err := r.openStore(c.Context(), c.InOrStdin(), args[0])
			if err != nil {
				return err
			}
			found, err := store.List(c.Context(), func(v version.ReleaseName) bool {
				return (provider == "" || v.Provider == provider) && (name == "" || v.Name == name) &&
					(kubernetes == "" || v.Kubernetes.MinorString() == kubernetes)
			})
			if err != nil {
				return err
			}
			for _, w := range found.Warnings {
				fmt.Fprintln(c.ErrOrStderr(), "warning:", w)
			}
			all := make([]listedRelease, 0, len(found.Entries))
			for _, e := range found.Entries {
				all = append(all, listedRelease{
					Name: e.Release.Tag(), Provider: e.Release.Provider, Stack: e.Release.Name, Version: e.Release.Version.String(),
					Kubernetes: e.Kubernetes, Digest: e.Digest,
				})
			}
			if out.IsStructured() {
				return out.Print(c.OutOrStdout(), all)
			}
			if len(all) == 0 {
				_, err := fmt.Fprintf(c.ErrOrStderr(), "%s has no release%s.\n", args[0],
					describeFilter(provider, name, kubernetes))
				return err
			}
			t := tabwriter.NewWriter(c.OutOrStdout(), 0, 0, 3, ' ', 0)
			fmt.Fprintln(t, "PROVIDER\tSTACK\tVERSION\tKUBERNETES\tRELEASE\tDIGEST")
			for _, l := range all {
				fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\n", l.Provider, l.Stack, l.Version, l.Kubernetes, l.Name, l.Digest)
			}
			return t.Flush()
		},
	}
	r.addFlags(c)
	out.AddFlags(c)
	c.Flags().StringVar(&provider, "provider", "", "only releases for this `provider`")
	c.Flags().StringVar(&name, "name", "", "only releases of the stack with this `name`")
	c.Flags().StringVar(&kubernetes, "kubernetes", "", "only releases for this `minor` of Kubernetes, for example 1.36")
	return c
}

// describeFilter says what was asked for, where there is nothing of it.
func describeFilter(provider, name, kubernetes string) string {
	var of []string
	for flag, value := range map[string]string{"--provider": provider, "--name": name, "--kubernetes": kubernetes} {
		if value != "" {
			of = append(of, flag+" "+value)
		}
	}
	if len(of) == 0 {
		return ""
	}
	slices.Sort(of)
	return " for " + strings.Join(of, " ")
}
