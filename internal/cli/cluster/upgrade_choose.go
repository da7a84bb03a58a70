package cluster

import (
	"slices"

	"github.com/polder-kaas/polder/api/v1alpha1"
	"github.com/polder-kaas/polder/internal/cli/objects"
	"github.com/polder-kaas/polder/internal/program/exit"
	"github.com/polder-kaas/polder/stack/version"
)

// chooseUpdate is what the flags ask for, where an empty field leaves what is.
func (q *upgradeOptions) chooseUpdate(c *v1alpha1.WorkloadCluster) (v1alpha1.Update, error) {
	to := v1alpha1.Update{KubernetesVersion: q.kubernetes, Version: q.version}
	pinned := c.Spec.Stack.Version != ""
	if q.latest {
		best := latestUpdateOf(c)
		if !pinned {
			best.Version = "" // it follows the newest by itself
		}
		return best, nil
	}
	if err := checkKubernetesUpgrade(c, q.kubernetes); err != nil {
		return to, err
	}
	if q.kubernetes == "" || !pinned || q.version != "" || q.kubernetes == c.Spec.Stack.KubernetesVersion {
		return to, nil
	}
	// The version that is pinned is one of the old minor, and says nothing about the new.
	for _, u := range c.Status.Updates {
		if u.KubernetesVersion == q.kubernetes {
			return u, nil
		}
	}
	return to, exit.Errorf(exit.Usage,
		"cluster %q stays at version %s of its stack; say which one of Kubernetes %s it shall have, with --version", c.Name,
		c.Spec.Stack.Version, q.kubernetes)
}

// latestUpdateOf is the first update to a higher minor, or else the first. It is empty if there is none.
func latestUpdateOf(c *v1alpha1.WorkloadCluster) (best v1alpha1.Update) {
	for _, u := range c.Status.Updates {
		if objects.CompareMinors(u.KubernetesVersion, currentMinor(c)) > 0 {
			return u
		}
	}
	if len(c.Status.Updates) > 0 {
		best = c.Status.Updates[0]
	}
	return best
}

// currentMinor is what runs: the spec may already name the next one, or none.
func currentMinor(c *v1alpha1.WorkloadCluster) string {
	if k, err := version.ParseKubernetes(c.Status.Versions.Kubernetes); err == nil {
		return k.MinorString()
	}
	return c.Spec.Stack.KubernetesVersion
}

// checkKubernetesUpgrade says at once what the plane would say later.
func checkKubernetesUpgrade(c *v1alpha1.WorkloadCluster, to string) error {
	is, badIs := version.ParseKubernetes(currentMinor(c))
	wanted, badTo := version.ParseKubernetes(to)
	switch {
	case badIs != nil || badTo != nil:
		return nil // the plane knows better
	case version.CompareKubernetes(wanted, is) < 0:
		return exit.Errorf(exit.Usage, "Kubernetes cannot be lowered: cluster %q runs %s", c.Name, is.MinorString())
	case wanted.Major == is.Major && wanted.Minor > is.Minor+1:
		next := version.Kubernetes{Major: is.Major, Minor: is.Minor + 1}.MinorString()
		if !offersMinor(c, next) {
			return exit.Errorf(exit.Usage,
				"Kubernetes is raised by one minor at a time: cluster %q runs %s, and its stack has no %s, so %s cannot be reached",
				c.Name, is.MinorString(), next, wanted.MinorString())
		}
		return exit.Errorf(exit.Usage, "Kubernetes is raised by one minor at a time: cluster %q runs %s, so take %s first",
			c.Name, is.MinorString(), next)
	}
	return nil
}

// offersMinor says that the cluster can be upgraded to a minor.
func offersMinor(c *v1alpha1.WorkloadCluster, minor string) bool {
	return slices.ContainsFunc(c.Status.Updates, func(u v1alpha1.Update) bool {
		k, err := version.ParseKubernetes(u.KubernetesVersion)
		return err == nil && k.MinorString() == minor
	})
}
