package foreign

import (
	"crypto/rand"
	"net/http"
	"slices"
	"strconv"
	"time"
)

func (s *Server) presentTenant(t *tenant) map[string]any {
	return map[string]any{"kind": "Tenant", "metadata": map[string]any{"name": t.name, "resourceVersion": strconv.FormatInt(t.version, 10)}}
}

func (t *tenant) tag() string { return `"` + strconv.FormatInt(t.version, 10) + `"` }

func (s *Server) listTenants(c *call) (*reply, *problem) {
	all := []any{}
	for _, t := range s.tenants {
		if t.name == c.user.tenant || s.is(TenantsOfOthers) {
			all = append(all, s.presentTenant(t))
		}
	}
	return items(all), nil
}

func (s *Server) getTenant(c *call) (*reply, *problem) {
	return &reply{status: http.StatusOK, tag: c.tenant.tag(), body: s.presentTenant(c.tenant)}, nil
}

func (s *Server) getQuota(c *call) (*reply, *problem) {
	item := map[string]any{"name": "clusters", "limit": "100", "used": strconv.Itoa(len(c.tenant.clusters))}
	if s.is(RequiredMissing) {
		delete(item, "used")
	}
	return items([]any{item}), nil
}

func (s *Server) listAudit(c *call) (*reply, *problem) {
	limit := 100
	if n := c.query.Get("limit"); n != "" {
		limit, _ = strconv.Atoi(n)
	}
	all := append([]record{}, c.tenant.record...)
	slices.Reverse(all)
	return items(all[:min(limit, len(all))]), nil
}

func (s *Server) listMembers(c *call) (*reply, *problem) {
	a := items(c.tenant.members)
	a.tag = c.tenant.tag()
	return a, nil
}

func (s *Server) putMembers(c *call) (*reply, *problem) {
	var in struct {
		Items []member `json:"items"`
	}
	if p := readJSON(c, &in); p != nil {
		return nil, p
	}
	switch match := c.Header.Get("If-Match"); {
	case match == "" && !s.is(MembersWithoutTag):
		return nil, problemf(http.StatusPreconditionRequired, "this needs If-Match")
	case match != "" && match != c.tenant.tag():
		return nil, problemf(http.StatusPreconditionFailed, "the list was changed meanwhile")
	}
	c.tenant.members, c.tenant.version = in.Items, s.next()
	return s.listMembers(c)
}

func (s *Server) listRobots(c *call) (*reply, *problem) {
	all := []any{}
	for name, role := range c.tenant.robots {
		all = append(all, map[string]string{"name": name, "role": role})
	}
	return items(all), nil
}

func (s *Server) putRobot(c *call) (*reply, *problem) {
	var in struct {
		Role string `json:"role"`
	}
	if p := readJSON(c, &in); p != nil {
		return nil, p
	}
	if in.Role != "editor" && in.Role != "viewer" {
		return nil, wrongField("role", "write editor or viewer")
	}
	c.tenant.robots[c.vars["robot"]] = in.Role
	return &reply{status: http.StatusOK, body: map[string]string{"name": c.vars["robot"], "role": in.Role}}, nil
}

func (c *call) robotUser() user {
	return user{name: "robot:" + c.vars["robot"], tenant: c.tenant.name, role: c.tenant.robots[c.vars["robot"]]}
}

func (s *Server) deleteRobot(c *call) (*reply, *problem) {
	if c.tenant.robots[c.vars["robot"]] == "" {
		return nil, notFound("there is no such robot")
	}
	for token, u := range s.users {
		if u == c.robotUser() && !s.is(RobotStays) {
			delete(s.users, token)
		}
	}
	delete(c.tenant.robots, c.vars["robot"])
	return &reply{status: http.StatusNoContent}, nil
}

func (s *Server) createToken(c *call) (*reply, *problem) {
	var in struct {
		ExpirationSeconds int64 `json:"expirationSeconds"`
	}
	if p := readJSON(c, &in); p != nil {
		return nil, p
	}
	if c.tenant.robots[c.vars["robot"]] == "" {
		return nil, notFound("there is no such robot")
	}
	token := rand.Text()
	s.users[token] = c.robotUser()
	ends := time.Now().Add(time.Duration(in.ExpirationSeconds) * time.Second).UTC()
	return &reply{status: http.StatusCreated, body: map[string]any{"token": token, "expirationTime": ends}}, nil
}
