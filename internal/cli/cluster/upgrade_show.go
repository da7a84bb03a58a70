package cluster

import (
	"cmp"
	"fmt"
	"io"

	"github.com/polder-kaas/polder/api/v1alpha1"
	"github.com/polder-kaas/polder/internal/cli/objects"
	"github.com/polder-kaas/polder/internal/cli/output"
)

// printUpdates says what runs, what is possible, and what can be undone.
func printUpdates(w io.Writer, c *v1alpha1.WorkloadCluster, hint func(string) string) error {
	v, ref := c.Status.Versions, c.Spec.Stack
	follows := "follows the newest release of channel " + cmp.Or(string(ref.Channel), string(v1alpha1.ChannelStable))
	if ref.Version != "" {
		follows = "stays at version " + ref.Version
	}
	fmt.Fprintf(w, "Cluster %s runs Kubernetes %s of release %s, and %s of stack %s.\n", c.Name,
		describeVersionChange(v.Kubernetes, v.WantedKubernetes, c.Status.Phase),
		describeVersionChange(v.Release, v.WantedRelease, c.Status.Phase), follows,
		ref.Name)
	if c.Status.Undo != "" {
		fmt.Fprintf(w, "Undo: %s\n", output.Sanitize(c.Status.Undo))
	}
	if len(c.Status.Updates) == 0 {
		_, err := fmt.Fprintln(w, "There is nothing newer.")
		return err
	}
	fmt.Fprintln(w)
	rows := [][]string{{"KUBERNETES", "VERSION", "EXACTLY", "TAKE IT WITH"}}
	for _, u := range c.Status.Updates {
		rows = append(rows, []string{u.KubernetesVersion, u.Version, u.Kubernetes, upgradeHint(c, u, hint)})
	}
	if err := (&table{}).print(w, rows); err != nil {
		return err
	}
	_, err := fmt.Fprintln(
		w, "\nKubernetes cannot be lowered afterwards: a version can be taken back with --version only as long as it has the same Kubernetes (EXACTLY).",
	)
	return err
}

// upgradeHint says how to get an update. Who follows a channel must not be told to pin what comes by itself.
func upgradeHint(c *v1alpha1.WorkloadCluster, u v1alpha1.Update, hint func(string) string) string {
	command, higher, pinned := "upgrade "+
		c.Name, objects.CompareMinors(u.KubernetesVersion, currentMinor(c)) > 0, c.Spec.Stack.Version != ""
	if !higher && !pinned {
		return "nothing: it comes by itself"
	}
	if higher {
		command += " --kubernetes " + u.KubernetesVersion
	}
	if pinned {
		command += " --version " + u.Version
	}
	return hint(command)
}
