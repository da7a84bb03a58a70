package conformance

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/polder-kaas/polder/api/v1alpha1"
)

func tenantChecks() []check {
	return []check{
		{
			name: "tenants/read", run: checkTenant,
			shows: "GET /tenants lists the tenant of the caller, and GET /tenants/{t} answers it with an ETag",
		},
		{
			name: "tenants/quota", run: checkQuota,
			shows: "GET /tenants/{t}/quota says what the tenant may have and what it uses",
		},
		{
			name: "tenants/members", run: checkMembers, needs: []Role{Admin},
			shows: "the list of members is changed by admins alone, needs If-Match (428), and an older one is refused with 412",
		},
		{
			name: "tenants/robots", run: checkRobots, needs: []Role{Admin},
			shows: "an admin takes in a robot, whose token works until it is taken out; others are refused with 403",
		},
		{
			name: "tenants/audit", run: checkAudit, needs: []Role{Admin},
			shows: "admins, and nobody else of the tenant, read who did what in it, the newest first",
		},
	}
}

func checkTenant(ctx context.Context, s *session) error {
	token := ""
	for {
		var l struct {
			Items         []v1alpha1.Tenant
			NextPageToken string
		}
		q := request{op: "list-tenants"}
		if token != "" {
			q = q.ask("pageToken", token)
		}
		a, err := s.want(ctx, q, http.StatusOK)
		if err != nil {
			return err
		}
		if err := a.read(&l); err != nil {
			return err
		}
		if slices.ContainsFunc(l.Items, func(t v1alpha1.Tenant) bool { return t.Name == s.cfg.Tenant }) {
			break
		}
		if token = l.NextPageToken; token == "" {
			return fmt.Errorf("GET /tenants does not list %s for its editor", s.cfg.Tenant)
		}
	}
	a, err := s.want(ctx, request{op: "get-tenant"}, http.StatusOK)
	if err != nil {
		return err
	}
	var t v1alpha1.Tenant
	if err := a.read(&t); err != nil {
		return err
	}
	if t.Name != s.cfg.Tenant || a.header.Get("ETag") == "" {
		return fmt.Errorf("GET /tenants/%s answers a tenant %q with the ETag %q", s.cfg.Tenant, t.Name, a.header.Get("ETag"))
	}
	return nil
}

func checkQuota(ctx context.Context, s *session) error {
	return s.eventually(ctx, func(ctx context.Context) error { // of a new tenant it is counted a moment later
		_, err := s.want(ctx, request{op: "get-quota"}, http.StatusOK)
		return err
	})
}

func checkMembers(ctx context.Context, s *session) error {
	read, err := s.want(ctx, request{op: "list-members"}, http.StatusOK)
	if err != nil {
		return err
	}
	// The list stays as it is.
	same := request{op: "put-members", body: read.body, kind: typeJSON}
	if _, err := s.want(ctx, same.by(Admin), http.StatusPreconditionRequired); err != nil {
		return err
	}
	if _, err := s.want(ctx, same.by(Admin).with("If-Match", staleTag), http.StatusPreconditionFailed); err != nil {
		return err
	}
	tag := read.header.Get("ETag")
	if _, err := s.want(ctx, same.by(Editor).with("If-Match", tag), http.StatusForbidden); err != nil {
		return err
	}
	return s.eventually(ctx, func(ctx context.Context) error { // the tenant's status may change between both
		now, err := s.want(ctx, request{op: "list-members"}, http.StatusOK)
		if err != nil {
			return err
		}
		same.body = now.body
		_, err = s.want(ctx, same.by(Admin).with("If-Match", now.header.Get("ETag")), http.StatusOK)
		return err
	})
}

// newRobot is the name of one of this run, which is taken out at its end if it was taken in.
func (s *session) newRobot() string {
	name := fmt.Sprintf("%s-r%d", s.prefix, len(s.robots))
	s.robots = append(s.robots, name)
	return name
}

// deleteRobots takes out those that are there still, and says which could not be.
func (s *session) deleteRobots(ctx context.Context) (left []string) {
	type robot struct{ Name string }
	there, err := listOf[robot](ctx, s, request{op: "list-robots"})
	for _, name := range s.robots {
		if err == nil && !slices.Contains(there, robot{name}) {
			continue
		}
		a, err := s.do(ctx, request{op: "delete-robot", robot: name, as: Admin})
		switch {
		case err != nil:
			left = append(left, fmt.Sprintf("robot %s may be there: %v", name, err))
		case a.status != http.StatusNoContent && a.status != http.StatusNotFound:
			left = append(left, fmt.Sprintf("robot %s may be there: %s", name, a.words()))
		}
	}
	return left
}

func checkRobots(ctx context.Context, s *session) error {
	name := s.newRobot()
	in := request{op: "put-robot", robot: name, body: []byte(`{"role":"viewer"}`), kind: typeJSON}
	tokens := request{op: "create-robot-token", robot: name, body: []byte(`{"expirationSeconds":600}`), kind: typeJSON}
	if _, err := s.want(ctx, in, http.StatusForbidden); err != nil {
		return err
	}
	if _, err := s.want(ctx, tokens.by(Admin), http.StatusNotFound); err != nil {
		return err
	}
	if _, err := s.want(ctx, in.by(Admin), http.StatusOK); err != nil {
		return err
	}
	type robot struct{ Name, Role string }
	all, err := listOf[robot](ctx, s, request{op: "list-robots"})
	if err != nil {
		return err
	}
	if !slices.Contains(all, robot{name, "viewer"}) {
		return fmt.Errorf("robot %s was taken in as a viewer, and is not in the list of robots: %v", name, all)
	}
	token, err := s.robotToken(ctx, tokens)
	if err != nil {
		return err
	}
	list := request{op: "list-clusters", token: token}
	err = s.eventually(ctx, func(ctx context.Context) error { // its rights may come a moment later
		_, err := s.want(ctx, list, http.StatusOK)
		return err
	})
	if err != nil {
		return fmt.Errorf("with the token of a robot: %w", err)
	}
	if _, err := s.want(ctx, request{op: "delete-robot", robot: name, as: Admin}, http.StatusNoContent); err != nil {
		return err
	}
	err = s.eventually(ctx, func(ctx context.Context) error {
		_, err := s.want(ctx, list, http.StatusUnauthorized)
		return err
	})
	if err != nil {
		return fmt.Errorf("with the token of a robot that was taken out: %w", err)
	}
	return nil
}

func (s *session) robotToken(ctx context.Context, q request) (string, error) {
	if _, err := s.want(ctx, q, http.StatusForbidden); err != nil {
		return "", err
	}
	a, err := s.want(ctx, q.by(Admin), http.StatusCreated)
	if err != nil {
		return "", err
	}
	var t struct{ Token string }
	if err := a.read(&t); err != nil {
		return "", err
	}
	if t.Token == "" {
		return "", errors.New("a robot has got an empty token")
	}
	return t.Token, nil
}

func checkAudit(ctx context.Context, s *session) error {
	if _, err := s.want(ctx, request{op: "list-audit"}, http.StatusForbidden); err != nil {
		return err
	}
	c, err := s.make(ctx)
	if err != nil {
		return err
	}
	type record struct {
		Time   time.Time
		Object string
	}
	all := request{op: "list-audit", as: Admin}.ask("limit", "1000")
	err = s.eventually(ctx, func(ctx context.Context) error {
		records, err := listOf[record](ctx, s, all)
		if err != nil {
			return err
		}
		if n := len(records); n > 0 && records[0].Time.Before(records[n-1].Time) {
			return errors.New("the record of the tenant does not begin with the newest")
		}
		if !slices.ContainsFunc(records, func(r record) bool { return strings.Contains(r.Object, c.Name) }) {
			return fmt.Errorf("the record of the tenant has nothing of cluster %s, which was just made", c.Name)
		}
		return nil
	})
	if err != nil {
		return err
	}
	one, err := listOf[record](ctx, s, all.ask("limit", "1"))
	if err == nil && len(one) != 1 {
		err = fmt.Errorf("with the limit 1 the record of the tenant has %d", len(one))
	}
	return err
}
