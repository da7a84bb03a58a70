package cluster

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/polder-kaas/polder/api/v1alpha1"
	"github.com/polder-kaas/polder/internal/cli/connect"
	"github.com/polder-kaas/polder/internal/cli/objects"
	"github.com/polder-kaas/polder/internal/cli/output"
	"github.com/polder-kaas/polder/internal/program/cmdline"
	"github.com/polder-kaas/polder/internal/program/exit"
)

// createOptions is one call of polder create.
type createOptions struct {
	globals *connect.Globals
	flags   specFlags
	file    string
	dryRun  string
	force   bool
	out     output.Flag
	wait    waitOptions
}

// newCreateCommand is polder create. It makes and never changes: a cluster of the same name is an error, unlike with
// apply.
func newCreateCommand(g *connect.Globals) *cobra.Command {
	n := &createOptions{globals: g}
	c := &cobra.Command{
		Use:   "create [NAME]",
		Short: "Ask for a cluster",
		Long: `create asks for a cluster, from a file or from flags, and returns at once unless --wait is given.

  polder create demo --stack scs --workers 2 --wait
  polder create -f demo.yaml
  polder create -f demo.yaml --provider other    makes the same cluster elsewhere, and says what differs
  polder create demo --stack scs --dry-run > demo.yaml

A file has one WorkloadCluster; NAME gives it another name. What a file says cannot be said with flags too.`,
		Args: cmdline.Args(0, 1, "at most the name of the cluster"),
		RunE: func(c *cobra.Command, args []string) error { return n.run(c, args) },
	}
	addNamespaceFlag(c)
	n.flags.addFlags(c)
	c.Flags().StringVarP(&n.file, "filename", "f", "", "`file` with a WorkloadCluster; - is the input")
	c.Flags().StringVar(&n.dryRun, "dry-run", "",
		"only show the cluster: client asks nobody, server asks the plane whether it would take it")
	c.Flags().Lookup("dry-run").NoOptDefVal = "client"
	c.Flags().BoolVar(&n.force, "force", false, "with -f and --provider: leave out what that provider does not have")
	n.out.AddFlags(c, output.FormatText, output.FormatName, output.FormatJSON, output.FormatYAML)
	n.wait.addFlags(c, "wait until the cluster is ready")
	// the flag exists
	_ = c.RegisterFlagCompletionFunc("dry-run",
		cobra.FixedCompletions([]string{"client", "server"}, cobra.ShellCompDirectiveNoFileComp))
	return c
}

// run connects as late as it can: a dry run of the client must work where there is no plane, unless what another
// provider has must be known.
func (n *createOptions) run(c *cobra.Command, args []string) error {
	cluster, err := n.buildCluster(c, args)
	if err != nil {
		return err
	}
	// --provider beside a file means: the same cluster, elsewhere.
	moved := n.file != "" && n.flags.provider != "" && n.flags.provider != cluster.Spec.Provider
	if n.dryRun == "client" && !moved {
		return n.printDryRun(c.OutOrStdout(), cluster)
	}
	a, err := n.globals.Connect(c)
	if err != nil {
		return err
	}
	if err := resolveNamespace(a, c, cluster); err != nil {
		return err
	}
	if moved {
		if err := n.moveToProvider(c, a, cluster); err != nil {
			return err
		}
	}
	if n.dryRun == "client" {
		return n.printDryRun(c.OutOrStdout(), cluster)
	}
	made, err := createCluster(c.Context(), a, cluster, n.dryRun == "server")
	if err != nil {
		return err
	}
	return n.reportCreated(c, a, made)
}

// buildCluster is the cluster that is asked for, as the file or the flags say it.
func (n *createOptions) buildCluster(c *cobra.Command, args []string) (*v1alpha1.WorkloadCluster, error) {
	if !slices.Contains([]string{"", "client", "server"}, n.dryRun) {
		return nil, exit.Errorf(exit.Usage, "--dry-run=%s is not possible; choose client or server", n.dryRun)
	}
	cluster := &v1alpha1.WorkloadCluster{}
	var err error
	if n.file != "" {
		for _, flag := range flagsExcludedByFile {
			if c.Flags().Changed(flag) {
				return nil, exit.Errorf(exit.Usage, "give either -f or --%s: the file says it already", flag)
			}
		}
		cluster, err = readCluster(n.file, c.InOrStdin())
	} else {
		cluster.Spec, err = n.flags.buildSpec(c.Flags().Changed)
	}
	if err != nil {
		return nil, err
	}
	// It also sets apiVersion and kind, which a cluster made of flags has not.
	clearServerFields(cluster)
	if len(args) > 0 {
		cluster.Name = args[0]
	}
	if cluster.Name == "" {
		return nil, exit.Errorf(exit.Usage, "the cluster has no name; give it one: %s NAME", c.CommandPath())
	}
	return cluster, checkName(cluster.Name)
}

// checkName says in plain words what the plane says with a regular expression.
func checkName(name string) error {
	if len(validation.IsDNS1123Label(name)) == 0 {
		return nil
	}
	hint := ""
	if lower := strings.ToLower(name); lower != name && len(validation.IsDNS1123Label(lower)) == 0 {
		hint = ", such as " + lower
	}
	return exit.Errorf(exit.Usage,
		"%q is no name for a cluster; write lower case letters, digits and dashes%s, with a letter or digit at both ends and at most 63 in all",
		name, hint)
}

// createCluster has the plane refuse unknown fields: an older one would drop them without a word, and make another
// cluster than was asked for.
func createCluster(ctx context.Context, a *connect.Access, cluster *v1alpha1.WorkloadCluster,
	dryRun bool) (*unstructured.Unstructured, error) {
	ctx, cancel := context.WithTimeout(ctx, connect.RequestTimeout)
	defer cancel()
	u, err := objects.ToUnstructured(cluster)
	if err != nil {
		return nil, err
	}
	o := metav1.CreateOptions{FieldManager: fieldManager, FieldValidation: metav1.FieldValidationStrict}
	if dryRun {
		o.DryRun = []string{metav1.DryRunAll}
	}
	made, err := clusterClient(a).Create(ctx, u, o)
	if err != nil {
		if existing := existsError(ctx, a, cluster.Name); existing != nil {
			return nil, existing
		}
	}
	return made, a.Explain(fmt.Sprintf("making cluster %q", cluster.Name), err)
}

// existsError says that there is a cluster of this name; nil if there is none, or that is not known. The plane may
// refuse a cluster for what another of its name is.
func existsError(ctx context.Context, a *connect.Access, name string) error {
	u, err := clusterClient(a).Get(ctx, name, metav1.GetOptions{})
	switch {
	case err != nil:
		return nil //nolint:nilerr // what the plane said of the creation is said
	case u.GetDeletionTimestamp() != nil:
		return exit.Errorf(exit.Failure,
			"cluster %q in namespace %s is being deleted; wait until it is gone with: %s, then make it again, or choose another name",
			name, a.Namespace, a.Hint("wait "+name+" --for deleted"))
	}
	return exit.Errorf(exit.Failure,
		"there is a cluster %q in namespace %s already; change it with: %s, or choose another name", name, a.Namespace,
		a.Hint("apply -f FILE"))
}

// printDryRun prints a cluster that nobody was asked for.
func (n *createOptions) printDryRun(w io.Writer, cluster *v1alpha1.WorkloadCluster) error {
	u, err := objects.ToUnstructured(cluster)
	if err != nil {
		return err
	}
	out := n.out
	if out.Format == output.FormatText {
		out.Format = output.FormatYAML
	}
	return out.PrintObject(w, u)
}

// reportCreated says what was made, and waits for it if that is wanted.
func (n *createOptions) reportCreated(c *cobra.Command, a *connect.Access, made *unstructured.Unstructured) error {
	var err error
	if n.out.IsHumanReadable() {
		text := "created"
		if n.dryRun != "" {
			text = "would be created"
		}
		_, err = fmt.Fprintf(c.OutOrStdout(), "%s %s\n", output.KindAndName(made), text)
	} else {
		err = n.out.PrintObject(c.OutOrStdout(), made)
	}
	if err != nil || n.dryRun != "" {
		return err
	}
	if !n.wait.enabled {
		if n.out.IsHumanReadable() {
			_, err = fmt.Fprintf(c.ErrOrStderr(), "It is being made. Wait for it with: %s\n", a.Hint("wait "+made.GetName()))
		}
		return err
	}
	return n.wait.run(c, a, made.GetName(), readyGoal, n.out.IsHumanReadable())
}
