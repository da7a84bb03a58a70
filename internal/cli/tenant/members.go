package tenant

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/polder-kaas/polder/api/v1alpha1"
	"github.com/polder-kaas/polder/internal/cli/connect"
	"github.com/polder-kaas/polder/internal/program/cmdline"
	"github.com/polder-kaas/polder/internal/program/exit"
)

func newAddCommand(g *connect.Globals) *cobra.Command {
	var members memberFlags
	c := &cobra.Command{
		Use:               "add NAME",
		Short:             "Take people into a tenant, or give them another role",
		Example:           "  polder tenant add acme --editors group:acme-developers,user:bob",
		Args:              cmdline.Args(1, 1, "the name of a tenant"),
		ValidArgsFunction: completeNames(g),
		RunE: func(c *cobra.Command, args []string) error {
			add, err := members.read()
			if err != nil {
				return err
			}
			if len(add) == 0 {
				return exit.Errorf(exit.Usage, "say who, with --admins, --editors or --viewers, for example: --editors user:bob")
			}
			a, err := g.Connect(c)
			if err != nil {
				return err
			}
			err = change(c.Context(), a, args[0], func(s *v1alpha1.TenantSpec) error {
				for _, m := range add {
					if i := slices.IndexFunc(s.Members, isMember(m.Kind, m.Name)); i >= 0 {
						s.Members[i] = m
						continue
					}
					s.Members = append(s.Members, m)
				}
				return nil
			})
			if err != nil {
				return err
			}
			for _, m := range add {
				if _, err := fmt.Fprintf(c.OutOrStdout(), "%s is %s of tenant %s\n", formatMember(m), m.Role, args[0]); err != nil {
					return err
				}
			}
			return nil
		},
	}
	members.addFlags(c)
	return c
}

func isMember(kind v1alpha1.MemberKind, name string) func(v1alpha1.TenantMember) bool {
	return func(m v1alpha1.TenantMember) bool { return m.Kind == kind && m.Name == name }
}

func newRemoveCommand(g *connect.Globals) *cobra.Command {
	return &cobra.Command{
		Use:   "remove NAME MEMBER...",
		Short: "Take people and robots out of a tenant",
		Long: `remove takes members out of a tenant, and robots, whose tokens end at once. What they have made stays. Kubeconfigs of clusters that
they have got are valid until they end, eight hours at most.`,
		Example:           "  polder tenant remove acme user:bob robot:ci",
		ValidArgsFunction: completeNames(g),
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) < 2 {
				return exit.Errorf(exit.Usage, "%s takes the name of a tenant, and whom to take out, for example user:bob; see: %s --help",
					c.CommandPath(), c.CommandPath())
			}
			a, err := g.Connect(c)
			if err != nil {
				return err
			}
			err = change(c.Context(), a, args[0], func(s *v1alpha1.TenantSpec) error {
				for _, who := range args[1:] {
					if err := remove(s, args[0], who); err != nil {
						return err
					}
				}
				return nil
			})
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(c.OutOrStdout(), "tenant %s is without %s\n", args[0], strings.Join(args[1:], ", "))
			return err
		},
	}
}

// remove takes one member or robot out.
func remove(s *v1alpha1.TenantSpec, tenant, who string) error {
	members, robots := len(s.Members), len(s.Robots)
	if robot, ok := strings.CutPrefix(who, "robot:"); ok {
		s.Robots = slices.DeleteFunc(s.Robots, func(r v1alpha1.TenantRobot) bool { return r.Name == robot })
	} else {
		kind, name, err := parseMember(who)
		if err != nil {
			return exit.Errorf(exit.Usage, "%q is no member; write group:NAME, user:NAME or robot:NAME", who)
		}
		s.Members = slices.DeleteFunc(s.Members, isMember(kind, name))
	}
	if len(s.Members) == members && len(s.Robots) == robots {
		return exit.Errorf(exit.Usage, "%s is not in tenant %s; see who is with: polder tenant describe %s", who, tenant, tenant)
	}
	return nil
}
