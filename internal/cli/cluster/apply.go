package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/util/csaupgrade"
	"k8s.io/client-go/util/retry"

	"github.com/polder-kaas/polder/api/v1alpha1"
	"github.com/polder-kaas/polder/internal/apierror"
	"github.com/polder-kaas/polder/internal/cli/connect"
	"github.com/polder-kaas/polder/internal/cli/objects"
	"github.com/polder-kaas/polder/internal/cli/output"
	"github.com/polder-kaas/polder/internal/program/cmdline"
	"github.com/polder-kaas/polder/internal/program/exit"
)

// newApplyCommand is polder apply: server-side apply, so that fields which others own are kept.
func newApplyCommand(g *connect.Globals) *cobra.Command {
	var file string
	var force bool
	var w waitOptions
	c := &cobra.Command{
		Use:   "apply -f FILE",
		Short: "Make a cluster as a file says, or change it so that it is",
		Long: `apply makes the cluster of a file if there is none, and else changes it so that it is as the file says. What others
have set stays, unless the file says otherwise and --force is given.`,
		Args: cmdline.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if file == "" {
				return exit.Errorf(exit.Usage, "say which file to apply: %s -f FILE", c.CommandPath())
			}
			cluster, err := readCluster(file, c.InOrStdin())
			if err != nil {
				return err
			}
			if cluster.Name == "" {
				return exit.Errorf(exit.Usage, "the cluster in %s has no name; write metadata.name", file)
			}
			a, err := g.Connect(c)
			if err != nil {
				return err
			}
			if err := resolveNamespace(a, c, cluster); err != nil {
				return err
			}
			outcome, err := applyCluster(c.Context(), a, cluster, force)
			if err != nil {
				return err
			}
			if _, err := fmt.Fprintf(c.OutOrStdout(), "workloadcluster/%s %s\n", cluster.Name, outcome); err != nil ||
				!w.enabled {
				return err
			}
			return w.run(c, a, cluster.Name, readyGoal, true)
		},
	}
	addNamespaceFlag(c)
	c.Flags().StringVarP(&file, "filename", "f", "", "`file` with a WorkloadCluster; - is the input")
	c.Flags().BoolVar(&force, "force", false, "change also what others have set")
	w.addFlags(c, "wait until the cluster is ready")
	return c
}

// applyCluster says what it did: created, configured or unchanged.
func applyCluster(ctx context.Context, a *connect.Access, cluster *v1alpha1.WorkloadCluster,
	force bool) (outcome string, err error) {
	ctx, cancel := context.WithTimeout(ctx, connect.RequestTimeout)
	defer cancel()
	doing := fmt.Sprintf("applying cluster %q", cluster.Name)
	// What was there before tells created, configured and unchanged apart: apply answers the same to all three.
	old, err := clusterClient(a).Get(ctx, cluster.Name, metav1.GetOptions{})
	if apierror.IgnoreObjectNotFound(err, clusterResource.Resource, cluster.Name) != nil {
		return "", a.Explain(doing, err)
	}
	if err == nil {
		if err := adoptManagedFields(ctx, a, old); err != nil {
			return "", a.Explain(doing, err)
		}
	}
	u, err := objects.ToUnstructured(cluster)
	if err != nil {
		return "", err
	}
	b, err := json.Marshal(u)
	if err != nil {
		return "", err
	}
	made, err := clusterClient(a).Patch(ctx, cluster.Name, types.ApplyPatchType, b, metav1.PatchOptions{
		FieldManager: fieldManager, Force: &force, FieldValidation: metav1.FieldValidationStrict,
	})
	switch {
	case apierrors.IsConflict(err):
		return "", exit.Errorf(exit.Failure, "%s: others have set %s; leave that out of the file, or change it with --force",
			doing, describeConflicts(err))
	case err != nil:
		return "", a.Explain(doing, err)
	case old == nil || old.GetUID() != made.GetUID():
		return "created", nil
	case old.GetResourceVersion() == made.GetResourceVersion():
		return "unchanged", nil
	}
	return "configured", nil
}

// adoptManagedFields makes what polder create, scale and upgrade have written belong to apply too: else what is no
// longer in the file would stay for ever, because somebody still seems to want it.
func adoptManagedFields(ctx context.Context, a *connect.Access, u *unstructured.Unstructured) error {
	return retry.RetryOnConflict(retry.DefaultBackoff, func() error { // the status of a cluster changes all the time
		patch, err := csaupgrade.UpgradeManagedFieldsPatch(u, sets.New(fieldManager), fieldManager)
		if err != nil || patch == nil {
			return err
		}
		changed, err := clusterClient(a).Patch(ctx, u.GetName(), types.JSONPatchType, patch, metav1.PatchOptions{})
		if err == nil {
			u.SetResourceVersion(changed.GetResourceVersion())
			return nil
		}
		if newest, read := clusterClient(a).Get(ctx, u.GetName(), metav1.GetOptions{}); read == nil {
			newest.DeepCopyInto(u)
		}
		return err
	})
}

// describeConflicts are the fields that others have set, and who they are.
func describeConflicts(err error) string {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Details == nil {
		return "some of it"
	}
	var texts []string
	for _, c := range status.Status().Details.Causes {
		who, _, _ := strings.Cut(strings.TrimPrefix(c.Message, "conflict with "), " using ")
		if text := strings.TrimPrefix(c.Field, ".") + " (" + strings.Trim(who, `"`) + ")"; !slices.Contains(texts, text) {
			texts = append(texts, text)
		}
	}
	if len(texts) == 0 {
		return "some of it"
	}
	return output.Sanitize(strings.Join(texts, ", "))
}
