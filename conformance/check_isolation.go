package conformance

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"github.com/polder-kaas/polder/api/v1alpha1"
)

func isolationChecks() []check {
	return []check{
		{
			name: "isolation/same 404", run: checkSame404, needs: []Role{Other},
			shows: "what another tenant has, and what nobody has, are the same 404, for every operation",
		},
		{
			name: "isolation/list", run: checkIsolatedList, needs: []Role{Other},
			shows: "the list of tenants shows none that the caller does not belong to",
		},
		{
			name: "isolation/missing", run: checkMissing,
			shows: "a tenant and a cluster that are not there are 404, reason NotFound",
		},
		{
			name: "isolation/viewer", run: checkViewer, needs: []Role{Viewer},
			shows: "viewers read all of their tenant, and whatever they would change is refused with 403",
		},
	}
}

// ofTenant says that an operation is about one tenant.
func (o operation) ofTenant() bool { return strings.Contains(o.path, "{tenant}") }

func checkSame404(ctx context.Context, s *session) error {
	c, err := s.make(ctx)
	if err != nil {
		return err
	}
	none := s.prefix + "-none"
	questions := map[string][2]request{}
	for _, o := range s.document.operations {
		if o.ofTenant() {
			questions[o.id] = [2]request{s.harmless(o.id, s.cfg.Tenant, c.Name), s.harmless(o.id, none, c.Name)}
		}
	}
	for _, op := range []string{"list-stacks", "get-stack-schema"} {
		q := request{op: op, stack: "scs"}
		questions[op] = [2]request{q.ask("tenant", s.cfg.Tenant), q.ask("tenant", none)}
	}
	for _, q := range questions {
		there, err := s.want(ctx, q[0].by(Other), http.StatusNotFound)
		if err != nil {
			return err
		}
		missing, err := s.want(ctx, q[1].by(Other), http.StatusNotFound)
		if err != nil {
			return err
		}
		a := strings.ReplaceAll(string(there.body), s.cfg.Tenant, "TENANT")
		b := strings.ReplaceAll(string(missing.body), none, "TENANT")
		if a != b {
			return fmt.Errorf("to a member of another tenant, %s of one that is there and of one that is not differ: %s and %s",
				q[0].op, there.words(), missing.words())
		}
	}
	return s.wantSame(ctx, c)
}

func checkIsolatedList(ctx context.Context, s *session) error {
	tenants, err := listOf[v1alpha1.Tenant](ctx, s, request{op: "list-tenants", as: Other}.ask("pageSize", "500"))
	if err != nil {
		return err
	}
	for _, t := range tenants {
		if t.Name == s.cfg.Tenant {
			return fmt.Errorf("a member of another tenant sees %s in the list of tenants", t.Name)
		}
	}
	return nil
}

func checkMissing(ctx context.Context, s *session) error {
	none := s.prefix + "-none"
	for _, q := range []request{{op: "get-tenant", tenant: none}, {op: "list-clusters", tenant: none}, get(none)} {
		a, err := s.want(ctx, q, http.StatusNotFound)
		if err != nil {
			return err
		}
		if err := a.wantReason("NotFound"); err != nil {
			return err
		}
	}
	return nil
}

func checkViewer(ctx context.Context, s *session) error {
	c, err := s.make(ctx)
	if err != nil {
		return err
	}
	for _, q := range []request{
		get(c.Name), {op: "list-clusters"}, {op: "get-tenant"}, {op: "list-members"}, {op: "list-robots"},
		{op: "list-events", cluster: c.Name},
	} {
		if _, err := s.want(ctx, q.by(Viewer), http.StatusOK); err != nil {
			return err
		}
	}
	for _, q := range []request{
		post(s.file(s.newName())), put(c.Name, s.file(c.Name)), patch(c.Name, `{"metadata":{"labels":{"conformance":"x"}}}`),
		{op: "delete-cluster", cluster: c.Name}, {op: "list-audit"},
	} {
		if _, err := s.want(ctx, q.by(Viewer), http.StatusForbidden); err != nil {
			return err
		}
	}
	return s.wantSame(ctx, c)
}
