package restplane

import (
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/polder-kaas/polder/api/v1alpha1"
)

// request is what a client of Kubernetes asks for.
type request struct {
	verb      string // as RBAC has it
	group     string
	resource  string // with its subresource
	namespace string
	name      string
	patchType string
	query     url.Values
}

// namePattern is what names of tenants and clusters are like.
var namePattern = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`)

// parseRequest reads a path like /v1/apis/GROUP/VERSION/namespaces/NAMESPACE/RESOURCE/NAME/SUBRESOURCE, whose
// beginning is that of the server's URL.
func parseRequest(r *http.Request, path, server string) request {
	q := request{query: r.URL.Query(), patchType: r.Header.Get("Content-Type")}
	if u, err := url.Parse(server); err == nil {
		path = strings.TrimPrefix(path, u.Path)
	}
	parts := strings.Split(strings.Trim(path, "/"), "/")
	switch {
	case parts[0] == "apis" && len(parts) > 3:
		q.group, parts = parts[1], parts[3:]
	case parts[0] == "api" && len(parts) > 2:
		parts = parts[2:]
	default:
		q.resource = strings.Join(parts, "/")
		parts = nil
	}
	if len(parts) > 2 && parts[0] == "namespaces" {
		q.namespace, parts = parts[1], parts[2:]
	}
	for i, to := range []*string{&q.resource, &q.name} {
		if i < len(parts) {
			*to = parts[i]
		}
	}
	if len(parts) > 2 {
		q.resource += "/" + strings.Join(parts[2:], "/")
	}
	q.verb = verbOf(r.Method, q.name != "", q.query.Get("watch") == "true")
	return q
}

func verbOf(method string, named, watch bool) string {
	switch {
	case method == http.MethodGet && watch:
		return "watch"
	case method == http.MethodGet && named:
		return "get"
	case method == http.MethodGet:
		return "list"
	case method == http.MethodPost:
		return "create"
	case method == http.MethodPut:
		return "update"
	case method == http.MethodDelete && !named:
		return "deletecollection"
	}
	return strings.ToLower(method)
}

// needsTenant says that the resource is one of a namespace. The catalogue is a namespace for all.
func (q *request) needsTenant() bool {
	clusterScoped := []string{"tenants", "providers", "selfsubjectreviews"}
	return !slices.Contains(clusterScoped, q.resource) && q.namespace != v1alpha1.CatalogueNamespace
}

func (q *request) groupResource() schema.GroupResource {
	resource, _, _ := strings.Cut(q.resource, "/")
	return schema.GroupResource{Group: q.group, Resource: resource}
}

func (q *request) isDryRun() bool { return len(q.query["dryRun"]) > 0 }

// selectedName is the name that a list or a watch is limited to.
func (q *request) selectedName() string {
	name, _ := strings.CutPrefix(q.query.Get("fieldSelector"), "metadata.name=")
	return name
}
