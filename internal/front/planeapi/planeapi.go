// Package planeapi has paths of the plane's API server that the door for customers needs and Kubernetes does not have.
// They are behind the plane's authentication and rights as all others, so that the door has no rights of its own.
package planeapi

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/polder-kaas/polder/api/v1alpha1"
	"github.com/polder-kaas/polder/internal/front/planepath"
)

// TenantPage is the answer of planepath.Tenants.
type TenantPage struct {
	Items    []v1alpha1.Tenant `json:"items"`
	Continue string            `json:"continue,omitempty"` // if there are more
}

// AuditEvent is one request that somebody made.
type AuditEvent struct {
	Time    time.Time `json:"time" doc:"When it was made."`
	User    string    `json:"user" doc:"Who made it."`
	As      string    `json:"as,omitempty" doc:"As whom, if that was another."`
	Verb    string    `json:"verb" doc:"What was to be done." example:"delete"`
	Object  string    `json:"object" doc:"To what." example:"workloadclusters.polder.dev/demo"`
	Details string    `json:"details,omitempty" doc:"Of a kubeconfig: its role and its cluster."`
	Status  int32     `json:"status" doc:"The answer's status." example:"200"`
	Refusal string    `json:"refusal,omitempty" doc:"Why it was refused."`
}

// AuditPage is the answer of planepath.Audit.
type AuditPage struct {
	Items []AuditEvent `json:"items"` // the newest first
	// Truncated says that older ones were not looked for: the record is large.
	Truncated bool `json:"truncated,omitempty"`
}

// Config is what the handlers read.
type Config struct {
	Tenants  client.Reader // a cache of all tenants, namespaces and WorkloadClusters
	Machines client.Reader // a cache of all machines
	DataDir  string        // with the record
	// PlaneOf returns the data directory of a tenant's own plane, or nothing if it has none.
	PlaneOf func(*v1alpha1.Tenant) string
	Status  func() (any, error) // how the plane is
}

// Handlers returns a handler for each path.
func Handlers(cfg Config) map[string]http.Handler {
	a := &auditReader{tenants: cfg.Tenants, dataDir: cfg.DataDir, planeOf: cfg.PlaneOf, turn: make(chan struct{}, 1)}
	return map[string]http.Handler{
		planepath.Tenants:  getOnly(func(w http.ResponseWriter, r *http.Request) { serveTenants(w, r, cfg.Tenants) }),
		planepath.Audit:    getOnly(a.serve),
		planepath.Machines: getOnly((&machineReader{tenants: cfg.Tenants, machines: cfg.Machines}).serve),
		planepath.Status: getOnly(func(w http.ResponseWriter, _ *http.Request) {
			s, err := cfg.Status()
			if err != nil {
				writeError(w, apierrors.NewInternalError(err))
				return
			}
			writeJSON(w, s)
		}),
	}
}

// Roles let everybody ask which tenants they belong to. The right to the record is given by each tenant, and that to
// the status by nobody but who has all rights.
func Roles() []client.Object {
	const name = "polder:own-tenants"
	return []client.Object{
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: []rbacv1.PolicyRule{
			{NonResourceURLs: []string{planepath.Tenants}, Verbs: []string{"get"}},
		}},
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: user.AllAuthenticated}},
		},
	}
}

func getOnly(h http.HandlerFunc) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet {
			w.Header().Set("Allow", http.MethodGet)
			http.Error(w, "it can only be read", http.StatusMethodNotAllowed)
			return
		}
		h(w, r)
	})
}

func writeJSON(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v) // the client may be gone
}

func writeError(w http.ResponseWriter, err *apierrors.StatusError) {
	s := err.Status()
	s.APIVersion, s.Kind = "v1", "Status"
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(int(s.Code))
	_ = json.NewEncoder(w).Encode(s) // the client may be gone
}

const maxPage = 1000

// readLimit reads how many are wanted at most.
func readLimit(r *http.Request, otherwise int) (int, *apierrors.StatusError) {
	text := r.URL.Query().Get("limit")
	if text == "" {
		return otherwise, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > maxPage {
		return 0, apierrors.NewBadRequest(fmt.Sprintf("limit is a number from 1 to %d", maxPage))
	}
	return n, nil
}

// serveTenants answers with the tenants that who asks belongs to, ordered by name.
func serveTenants(w http.ResponseWriter, r *http.Request, tenants client.Reader) {
	who, ok := request.UserFrom(r.Context())
	if !ok {
		writeError(w, apierrors.NewUnauthorized("nobody asks"))
		return
	}
	limit, bad := readLimit(r, maxPage)
	if bad != nil {
		writeError(w, bad)
		return
	}
	var l v1alpha1.TenantList
	if err := tenants.List(r.Context(), &l, client.UnsafeDisableDeepCopy); err != nil {
		writeError(w, apierrors.NewInternalError(err))
		return
	}
	after := r.URL.Query().Get("continue")
	out := TenantPage{Items: []v1alpha1.Tenant{}}
	for i := range l.Items {
		if t := &l.Items[i]; t.Name > after && Belongs(t, who.GetName(), who.GetGroups()) {
			out.Items = append(out.Items, *t)
		}
	}
	slices.SortFunc(out.Items, func(a, b v1alpha1.Tenant) int { return strings.Compare(a.Name, b.Name) })
	if len(out.Items) > limit {
		out.Items, out.Continue = out.Items[:limit], out.Items[limit-1].Name
	}
	for i := range out.Items {
		out.Items[i].APIVersion, out.Items[i].Kind = v1alpha1.GroupVersion.String(), "Tenant"
		out.Items[i].ManagedFields = nil
	}
	writeJSON(w, out)
}

// Belongs says whether somebody is a member or a robot of a tenant.
func Belongs(t *v1alpha1.Tenant, username string, groups []string) bool {
	for _, m := range t.Spec.Members {
		if m.Kind == v1alpha1.MemberUser && m.Name == username ||
			m.Kind == v1alpha1.MemberGroup && slices.Contains(groups, m.Name) {
			return true
		}
	}
	namespace, account, err := serviceaccount.SplitUsername(username)
	if err != nil || namespace != t.NamespaceName() {
		return false
	}
	return slices.ContainsFunc(t.Spec.Robots, func(r v1alpha1.TenantRobot) bool {
		return v1alpha1.RobotAccountPrefix+r.Name == account
	})
}
