package stackauthor

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/polder-kaas/polder/internal/program/cmdline"
	"github.com/polder-kaas/polder/internal/program/exit"
	"github.com/polder-kaas/polder/stack"
	"github.com/polder-kaas/polder/stack/lint"
	"github.com/polder-kaas/polder/stack/registry"
	"github.com/polder-kaas/polder/stack/render"
)

// newPublishCommand is polder stack publish.
func newPublishCommand() *cobra.Command {
	var r registryFlags
	var overwrite bool
	c := &cobra.Command{
		Use:        "publish DIR TO",
		Short:      "Put a release into a registry or a directory",
		SuggestFor: []string{"push", "upload"},
		Long: `publish puts the release in DIR, which polder stack build made, to oci://host/repository or into a directory.
Its tag there is its name. What is published is never overwritten: the same content again is fine, another
under the same name is refused, unless --overwrite is given. A release that a plane would refuse is not published:
stages with an unknown hook or action, CEL that does not compile or costs too much, a class that does not render.
It prints the reference with its digest.`,
		Example: `  polder stack publish .release/local-scs-1-37-v1 oci://registry.example.org/stacks`,
		Args:    cmdline.Args(2, 2, "the directory of a release and where to put it"),
		RunE: func(c *cobra.Command, args []string) error {
			release, err := registry.LoadDir(args[0])
			if err != nil {
				return err
			}
			if err := checkRelease(c.Context(), release); err != nil {
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

// checkRelease refuses what the operator of a plane would refuse: whoever built it, it helps nobody.
func checkRelease(ctx context.Context, r *stack.Release) error {
	class, found, err := r.RenderClass(ctx, new(render.Renderer), "default")
	if err != nil {
		return err
	}
	if class != nil {
		found = append(found, lint.CheckRelease(ctx, r, class)...)
	} else {
		found = append(found, r.CheckStages()...)
	}
	if errs := found.Errors().Sorted(); len(errs) > 0 {
		return wrapDirError(r.Name.Tag(), fmt.Errorf("it is not sound, so nothing was published\n%w", errs))
	}
	return nil
}

// newPullCommand is polder stack pull.
func newPullCommand() *cobra.Command {
	var r registryFlags
	c := &cobra.Command{
		Use:        "pull REF DIR",
		Short:      "Get a published release",
		SuggestFor: []string{"download", "fetch", "get"},
		Long: `pull reads a release and writes it into DIR, as a directory of its name. REF is oci://host/repository:tag, or
DIRECTORY/NAME; with @sha256:… behind it, it must have that digest. Every digest is checked, and if anything is wrong
nothing is written. The release keeps its digest, which is printed: the one that polder stack list shows.`,
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
			done, err := registry.WriteDir(directoryReference(args[1]), p)
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
