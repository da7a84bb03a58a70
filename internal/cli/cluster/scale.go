package cluster

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/polder-kaas/polder/api/v1alpha1"
	"github.com/polder-kaas/polder/internal/cli/connect"
	"github.com/polder-kaas/polder/internal/program/cmdline"
	"github.com/polder-kaas/polder/internal/program/exit"
)

// scaleOptions is one call of polder scale.
type scaleOptions struct {
	controlPlanes int32
	workers       int32
	pools         []string
	wait          waitOptions

	isFlagSet func(flag string) bool
	changes   []string
}

// newScaleCommand is polder scale.
func newScaleCommand(g *connect.Globals) *cobra.Command {
	s := &scaleOptions{}
	c := &cobra.Command{
		Use:   "scale NAME",
		Short: "Change how many machines a cluster has",
		Long: `scale changes how many machines the control plane and the pools of workers have.

  polder scale demo --workers 5                    where there is one pool
  polder scale demo --pool a=5 --pool b=0 --wait
  polder scale demo --control-planes 3`,
		Args:              cmdline.Args(1, 1, "the name of a cluster"),
		ValidArgsFunction: completeNames(g, 1),
		RunE: func(c *cobra.Command, args []string) error {
			s.isFlagSet = c.Flags().Changed
			if err := s.check(); err != nil {
				return err
			}
			a, err := g.Connect(c)
			if err != nil {
				return err
			}
			changed, err := patchSpec(c.Context(), a, args[0], s.buildPatch)
			if err != nil {
				return err
			}
			text := "unchanged"
			if changed {
				text = "scaled: " + strings.Join(s.changes, ", ")
			}
			if _, err := fmt.Fprintf(c.OutOrStdout(), "workloadcluster/%s %s\n", args[0], text); err != nil || !s.wait.enabled {
				return err
			}
			return s.wait.run(c, a, args[0], readyGoal, true)
		},
	}
	addNamespaceFlag(c)
	c.Flags().Int32Var(&s.controlPlanes, "control-planes", 0, "`number` of machines of the control plane: 1, 3 or 5")
	c.Flags().Int32Var(&s.workers, "workers", 0, "`number` of machines of the only pool")
	c.Flags().StringArrayVar(&s.pools, "pool", nil, "`POOL=NUMBER` of machines of a pool; may be repeated")
	s.wait.addFlags(c, "wait until the cluster is ready")
	return c
}

// check refuses what can be known without the cluster; etcd needs an odd number of members.
func (s *scaleOptions) check() error {
	switch {
	case !s.isFlagSet("control-planes") && !s.isFlagSet("workers") && len(s.pools) == 0:
		return exit.Errorf(exit.Usage, "say what to scale, with --workers N, --pool POOL=N or --control-planes N")
	case s.isFlagSet("workers") && len(s.pools) > 0:
		return exit.Errorf(exit.Usage, "--workers and --pool contradict each other; give one of them")
	case s.isFlagSet("control-planes") && !slices.Contains([]int32{1, 3, 5}, s.controlPlanes):
		return exit.Errorf(exit.Usage, "--control-planes %d is not possible; choose 1, 3 or 5", s.controlPlanes)
	case s.workers < 0:
		return exit.Errorf(exit.Usage, "--workers %d is no number of machines", s.workers)
	}
	return nil
}

// wantedReplicas are the numbers of pools that are asked for.
func (s *scaleOptions) wantedReplicas(c *v1alpha1.WorkloadCluster) (map[string]int32, error) {
	var names []string
	for _, p := range c.Spec.Workers {
		names = append(names, p.Name)
	}
	have := "it has " + strings.Join(names, ", ")
	if len(names) == 0 {
		have = "it has none; add one to its file and use polder apply"
	}
	want := map[string]int32{}
	if s.isFlagSet("workers") {
		if len(names) != 1 {
			return nil, exit.Errorf(exit.Usage, "--workers is for clusters with one pool; say which with --pool POOL=%d: %s",
				s.workers, have)
		}
		want[names[0]] = s.workers
	}
	for _, text := range s.pools {
		name, number, _ := strings.Cut(text, "=")
		n, err := strconv.ParseUint(number, 10, 31)
		switch {
		case err != nil || name == "":
			return nil, exit.Errorf(exit.Usage, "--pool %q is not possible; write POOL=NUMBER, for example a=3", text)
		case !slices.Contains(names, name):
			return nil, exit.Errorf(exit.Usage, "cluster %q has no pool %q; %s", c.Name, name, have)
		}
		if _, twice := want[name]; twice {
			return nil, exit.Errorf(exit.Usage, "--pool names %q twice; say once how many machines it shall have", name)
		}
		want[name] = int32(n)
	}
	return want, nil
}

// buildPatch changes numbers only: all else of the pools stays, also what this polder does not know.
func (s *scaleOptions) buildPatch(c *v1alpha1.WorkloadCluster, u *unstructured.Unstructured) (map[string]any, error) {
	spec := map[string]any{}
	s.changes = nil
	if now := valueOrZero(c.Spec.ControlPlane.Replicas); s.isFlagSet("control-planes") && now != s.controlPlanes {
		spec["controlPlane"] = map[string]any{"replicas": s.controlPlanes}
		s.changes = append(s.changes, fmt.Sprintf("control plane %d to %d", now, s.controlPlanes))
	}
	want, err := s.wantedReplicas(c)
	if err != nil {
		return nil, err
	}
	pools, _, err := unstructured.NestedSlice(u.Object, "spec", "workers")
	if err != nil {
		return nil, err
	}
	changed := false
	for i, p := range c.Spec.Workers {
		n, ok := want[p.Name]
		pool, isMap := pools[i].(map[string]any)
		if !ok || !isMap || p.Replicas != nil && *p.Replicas == n {
			continue
		}
		pool["replicas"], changed = int64(n), true
		s.changes = append(s.changes, fmt.Sprintf("pool %s %d to %d", p.Name, valueOrZero(p.Replicas), n))
	}
	if changed {
		spec["workers"] = pools
	}
	return spec, nil
}
