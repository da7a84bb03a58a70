package stackauthor

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/polder-kaas/polder/internal/program/cmdline"
	"github.com/polder-kaas/polder/internal/program/exit"
	"github.com/polder-kaas/polder/stack/registry"
)

// newPublishCommand is polder stack publish.
func newPublishCommand() *cobra.Command {
	var r registryFlags
	var overwrite bool
	c := &cobra.Command{
		Use:   "publish DIR TO",
		Short: "Put a release into a registry or a directory",
		Long: `publish puts the release in DIR, which polder stack build made, to oci://host/repository or into a directory.
Its tag there is its name. What is published is never overwritten: the same content again is fine, another
under the same name is refused, unless --overwrite is given. It prints the reference with its digest.`,
		Example: `  polder stack publish .release/local-scs-1-37-v1 oci://registry.example.org/stacks`,
		Args:    cmdline.Args(2, 2, "the directory of a release and where to put it"),
		RunE: func(c *cobra.Command, args []string) error {
			release, err := registry.LoadDir(args[0])
			if err != nil {
				return err
			}
			o, err := r.registryOptions(c.InOrStdin())
			if err != nil {
				return err
			}
			o.Overwrite = overwrite
			store, _, err := registry.Open(c.Context(), args[1], o)
			if err != nil {
				return exit.With(exit.Usage, err)
			}
			p, err := store.Publish(c.Context(), release)
			if err != nil {
				return err
			}
			if p.Existed {
				fmt.Fprintln(c.ErrOrStderr(), "It was published before, with the same content.")
			}
			_, err = fmt.Fprintln(c.OutOrStdout(), p.Reference)
			return err
		},
	}
	r.addFlags(c)
	c.Flags().BoolVar(&overwrite, "overwrite", false,
		"replace another content of the same name; whoever uses it may notice")
	return c
}

// newPullCommand is polder stack pull.
func newPullCommand() *cobra.Command {
	var r registryFlags
	c := &cobra.Command{
		Use:   "pull REF DIR",
		Short: "Get a published release",
		Long: `pull reads a release and writes it into DIR, as a directory of its name. REF is oci://host/repository:tag, or
DIRECTORY/NAME; with @sha256:… behind it, it must have that digest. Every digest is checked, and if anything is wrong
nothing is written.`,
		Args: cmdline.Args(2, 2, "a reference and a directory"),
		RunE: func(c *cobra.Command, args []string) error {
			store, ref, err := r.openStore(c.Context(), c.InOrStdin(), args[0])
			if err != nil {
				return err
			}
			p, err := store.Pull(c.Context(), ref)
			if err != nil {
				return err
			}
			to, _, err := registry.Open(c.Context(), directoryReference(args[1]), registry.Options{})
			if err != nil {
				return err
			}
			done, err := to.Publish(c.Context(), p.Release)
			if err != nil {
				return err
			}
			_, err = fmt.Fprintln(c.OutOrStdout(), done.Reference)
			return err
		},
	}
	r.addFlags(c)
	return c
}
