package stackauthor

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/polder-kaas/polder/internal/program/cmdline"
	"github.com/polder-kaas/polder/internal/program/exit"
	"github.com/polder-kaas/polder/stack/archive"
	"github.com/polder-kaas/polder/stack/scaffold"
	"github.com/polder-kaas/polder/stack/version"
)

// defaultKubernetes is what a new stack is for unless its author says otherwise.
const defaultKubernetes = "v1.37.1"

// newInitCommand is polder stack init.
func newInitCommand() *cobra.Command {
	var provider, name, kubernetes string
	c := &cobra.Command{
		Use:   "init DIR",
		Short: "Make a stack to begin with",
		Long: `init writes a small stack that lints clean into a new directory: a class of clusters with two parameters, one
add-on, and a README that says what each file is.`,
		Args: cmdline.Args(1, 1, "a new directory"),
		RunE: func(c *cobra.Command, args []string) error {
			if name == "" {
				// The tools that came before cannot read names with dashes.
				name = strings.ReplaceAll(strings.ToLower(filepath.Base(filepath.Clean(args[0]))), "-", "")
			}
			k, err := version.ParseKubernetes(kubernetes)
			if err != nil {
				return exit.With(exit.Usage, err)
			}
			if longest := (version.ReleaseName{ReleaseLine: version.ReleaseLine{Provider: provider, Name: name, Kubernetes: k},
				Version: version.Version{Word: "sha", ID: "0000000"}}); len(longest.Tag()) > version.MaxName {
				return exit.Errorf(exit.Usage,
					"the name of a release such as %s would have %d characters, and objects take at most %d; choose a shorter --name",
					longest, len(longest.Tag()), version.MaxName)
			}
			files, err := scaffold.New(version.ReleaseLine{Provider: provider, Name: name, Kubernetes: k})
			if err != nil {
				return exit.With(exit.Usage, err)
			}
			if err := os.MkdirAll(filepath.Dir(args[0]), 0o755); err != nil {
				return err
			}
			if err := archive.WriteDir(args[0], files); err != nil {
				return err
			}
			_, err = fmt.Fprintf(c.OutOrStdout(), "Made the stack %s/%s in %s. Go on with: polder stack lint %s\n", provider,
				name, args[0], args[0])
			return err
		},
	}
	c.Flags().StringVar(&provider, "provider", "local",
		"`provider` of machines: "+strings.Join(scaffold.Providers(), ", "))
	c.Flags().StringVar(&name, "name", "", "`name` of the stack (default: that of the directory, without dashes)")
	c.Flags().StringVar(&kubernetes, "kubernetes", defaultKubernetes, "exact `version` of Kubernetes")
	return c
}
