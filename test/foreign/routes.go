package foreign

import (
	"net/http"
	"slices"
	"strings"
)

// operation is one that the server has.
type operation struct {
	method, path string
	role         string // that is needed in the tenant; empty is any
	queries      []string
	handle       func(*Server, *call) (*reply, *problem)
	public       bool
}

const oneCluster, oneRobot = "/tenants/{tenant}/clusters/{cluster}", "/tenants/{tenant}/robots/{robot}"

// operations are all that there are. Their number is small enough to be looked through.
func operations() []operation {
	paged := []string{"pageSize", "pageToken"}
	return []operation{
		{method: "GET", path: "/version", handle: (*Server).getVersion, public: true},
		{method: "GET", path: "/openapi.json", handle: (*Server).getDocument, public: true},
		{method: "GET", path: "/openapi-3.0.json", handle: (*Server).getOldDocument, public: true},
		{method: "GET", path: "/me", handle: (*Server).getSelf},
		{method: "GET", path: "/plane", handle: (*Server).refuseOperators},
		{method: "GET", path: "/releases", handle: (*Server).refuseOperators, queries: paged},
		{method: "GET", path: "/providers", handle: (*Server).listProviders, queries: paged},
		{method: "GET", path: "/stacks", handle: (*Server).listStacks, queries: append([]string{"tenant"}, paged...)},
		{method: "GET", path: "/stacks/{stack}/schema", handle: (*Server).getStackSchema, queries: []string{"tenant", "kubernetes"}},
		{method: "GET", path: "/tenants", handle: (*Server).listTenants, queries: paged},
		{method: "GET", path: "/tenants/{tenant}", handle: (*Server).getTenant},
		{method: "GET", path: "/tenants/{tenant}/quota", handle: (*Server).getQuota},
		{method: "GET", path: "/tenants/{tenant}/audit", handle: (*Server).listAudit, role: "admin", queries: []string{"limit"}},
		{method: "GET", path: "/tenants/{tenant}/members", handle: (*Server).listMembers},
		{method: "PUT", path: "/tenants/{tenant}/members", handle: (*Server).putMembers, role: "admin"},
		{method: "GET", path: "/tenants/{tenant}/robots", handle: (*Server).listRobots},
		{method: "PUT", path: oneRobot, handle: (*Server).putRobot, role: "admin"},
		{method: "DELETE", path: oneRobot, handle: (*Server).deleteRobot, role: "admin"},
		{method: "POST", path: oneRobot + "/tokens", handle: (*Server).createToken, role: "admin"},
		{method: "GET", path: "/tenants/{tenant}/clusters", handle: (*Server).listClusters, queries: paged},
		{method: "POST", path: "/tenants/{tenant}/clusters", handle: (*Server).createCluster, role: "editor", queries: []string{"dryRun"}},
		{method: "GET", path: "/tenants/{tenant}/clusters:watch", handle: (*Server).watchClusters},
		{method: "GET", path: oneCluster, handle: (*Server).getCluster},
		{method: "PUT", path: oneCluster, handle: (*Server).putCluster, role: "editor", queries: []string{"dryRun"}},
		{method: "PATCH", path: oneCluster, handle: (*Server).patchCluster, role: "editor", queries: []string{"dryRun"}},
		{method: "DELETE", path: oneCluster, handle: (*Server).deleteCluster, role: "editor", queries: []string{"dryRun", "uid"}},
		{method: "GET", path: oneCluster + "/events", handle: (*Server).listPart, queries: paged},
		{method: "GET", path: oneCluster + "/machines", handle: (*Server).listPart, queries: paged},
		{method: "GET", path: oneCluster + "/addons", handle: (*Server).listPart},
		{method: "GET", path: oneCluster + "/upgrades", handle: (*Server).listPart},
		{method: "POST", path: oneCluster + "/kubeconfig", handle: (*Server).createKubeconfig},
	}
}

// route finds the operation of a request.
func (s *Server) route(c *call) (operation, *problem) {
	allowed := []string{}
	for _, o := range operations() {
		vars, ok := match("/v1"+o.path, c.URL.Path)
		if !ok {
			continue
		}
		if o.method == c.Method {
			c.vars = vars
			return o, nil
		}
		allowed = append(allowed, o.method)
	}
	if len(allowed) == 0 {
		return operation{}, problemf(http.StatusNotFound, "there is no such path")
	}
	slices.Sort(allowed)
	p := problemf(http.StatusMethodNotAllowed, "this path takes other methods")
	p.allow = strings.Join(allowed, ", ")
	return operation{}, p
}

// match compares a path with a pattern, part by part.
func match(pattern, path string) (map[string]string, bool) {
	want, got := strings.Split(pattern, "/"), strings.Split(path, "/")
	if len(want) != len(got) {
		return nil, false
	}
	vars := map[string]string{}
	for i, part := range want {
		switch {
		case strings.HasPrefix(part, "{") && got[i] != "" && !strings.Contains(got[i], ":"):
			vars[strings.Trim(part, "{}")] = got[i]
		case part != got[i]:
			return nil, false
		}
	}
	return vars, true
}
