package tenantplanes

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httputil"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	auditinternal "k8s.io/apiserver/pkg/apis/audit"
	"k8s.io/apiserver/pkg/audit"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/util/flowcontrol"
	"k8s.io/apiserver/pkg/warning"
	"k8s.io/client-go/transport"

	"github.com/polder-kaas/polder/api/v1alpha1"
	"github.com/polder-kaas/polder/internal/front/planepath"
	"github.com/polder-kaas/polder/internal/tenancy"
)

// Router hands requests on to the planes that they are for. It stands behind authentication, impersonation and
// authorisation: who has no right to a namespace does not learn whether it has a plane of its own.
type Router struct {
	Planes *Planes
	// Namespace returns a namespace of this plane, without an answer that is older than the namespace.
	Namespace func(ctx context.Context, name string) (*corev1.Namespace, error)
	// TenantNamespace returns the name of a tenant's namespace, or nothing.
	TenantNamespace func(tenant string) string
	// IsOwn reports whether a user is one of this plane's own controllers: what they ask for is here.
	IsOwn func(user.Info) bool
	// Next serves what is here.
	Next http.Handler
}

// slotPatience is how long a request waits for others of the same namespace.
const slotPatience = time.Second

// ServeHTTP serves one request.
func (r *Router) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	info, found := request.RequestInfoFrom(req.Context())
	who, known := request.UserFrom(req.Context())
	if !found || !known || r.IsOwn(who) {
		r.Next.ServeHTTP(w, req)
		return
	}
	name := r.namespaceOf(info, req.URL.Path)
	if name == "" {
		r.warn(req.Context(), info)
		r.Next.ServeHTTP(w, req)
		return
	}
	ns, err := r.Namespace(req.Context(), name)
	switch {
	case apierrors.IsNotFound(err), err == nil && !tenancy.HasOwnPlane(ns):
		r.Next.ServeHTTP(w, req)
	case err != nil:
		writeError(w, unavailable("it cannot be found out which plane has namespace %s: %v", name, err))
	default:
		r.handOn(w, req, ns, info, who)
	}
}

// namespaceOf returns the namespace whose plane may have to answer, or nothing if it is for this one. Who somebody is
// and what he may do is kept here: accounts, roles and bindings.
func (r *Router) namespaceOf(info *request.RequestInfo, path string) string {
	if rest, ok := strings.CutPrefix(path, planepath.Machines); ok && !info.IsResourceRequest {
		tenant, _, _ := strings.Cut(rest, "/")
		return r.TenantNamespace(tenant)
	}
	switch {
	case !info.IsResourceRequest, info.Resource == "namespaces" && info.APIGroup == corev1.GroupName:
		return ""
	case info.APIGroup == corev1.GroupName && info.Resource == "serviceaccounts":
		return ""
	case info.APIGroup == rbacv1.GroupName, info.APIGroup == "authorization.k8s.io":
		return ""
	}
	return info.Namespace
}

// warn tells who asks for the clusters of all namespaces which are not among them.
func (r *Router) warn(ctx context.Context, info *request.RequestInfo) {
	if !info.IsResourceRequest || info.APIGroup != v1alpha1.GroupVersion.Group || info.Resource != "workloadclusters" ||
		info.Verb != "list" && info.Verb != "watch" {
		return
	}
	if names := r.Planes.namespaces(); len(names) > 0 {
		warning.AddWarning(ctx, "", fmt.Sprintf("clusters of tenants with a plane of their own are not among these; ask for them by namespace: %s",
			strings.Join(names, ", ")))
	}
}

// handOn has the plane of a namespace answer.
func (r *Router) handOn(w http.ResponseWriter, req *http.Request, ns *corev1.Namespace, info *request.RequestInfo,
	who user.Info) {
	e, state := r.Planes.endpointOf(ns)
	if e == nil {
		refused := unavailable("the plane of namespace %s is not ready: %s", ns.Name, state.ForMembers())
		if state.Phase == tenancy.PlaneLost { // to try again is of no use
			refused.ErrStatus.Details = nil
		}
		writeError(w, refused)
		return
	}
	if info.Verb == "watch" {
		flowcontrol.RequestDelegated(req.Context()) // it holds no place here while it is open
	} else {
		leave := e.acquireSlot(req.Context())
		if leave == nil {
			writeError(w, apierrors.NewTooManyRequests("too many requests at once for namespace "+ns.Name+"; try again", retryAfter))
			return
		}
		defer leave()
	}
	already := w.Header()
	proxy := httputil.ReverseProxy{
		Transport: e.transport, FlushInterval: -1,
		Rewrite: func(pr *httputil.ProxyRequest) {
			pr.SetURL(e.url)
			pr.Out.Host = e.url.Host
			pr.SetXForwarded()
			setIdentity(pr.Out, who)
			if id, ok := audit.AuditIDFrom(req.Context()); ok { // both record it, and only the other what is in it
				pr.Out.Header.Set(auditinternal.HeaderAuditID, string(id))
			}
		},
		ModifyResponse: func(res *http.Response) error {
			for name := range already { // said once
				res.Header.Del(name)
			}
			return nil
		},
		ErrorHandler: func(w http.ResponseWriter, req *http.Request, err error) {
			if req.Context().Err() == nil {
				writeError(w, unavailable("the plane of namespace %s did not answer: %v", ns.Name, err))
			}
		},
	}
	defer func() {
		// The answer breaks off. Who asked sees that, unless it is he who left.
		if r := recover(); r != nil && (r != http.ErrAbortHandler || req.Context().Err() == nil) { //nolint:errorlint // as it is thrown
			panic(r) //nolint:forbidigo // it is not ours
		}
	}()
	proxy.ServeHTTP(w, req)
}

// setIdentity replaces what a request says of who makes it by who that is.
func setIdentity(out *http.Request, who user.Info) {
	for name := range out.Header {
		if strings.HasPrefix(name, "Impersonate-") || strings.HasPrefix(name, "X-Remote-") || name == "Authorization" {
			out.Header.Del(name)
		}
	}
	transport.SetAuthProxyHeaders(out, who.GetName(), who.GetUID(), who.GetGroups(), who.GetExtra())
}

// acquireSlot waits for a place among the requests of a plane, and returns how it is left; nil if none is free in time.
func (e *endpoint) acquireSlot(ctx context.Context) (leave func()) {
	ctx, cancel := context.WithTimeout(ctx, slotPatience)
	defer cancel()
	select {
	case e.slots <- struct{}{}:
		return func() { <-e.slots }
	case <-ctx.Done():
		return nil
	}
}

// retryAfter is when something may be tried again, in seconds.
const retryAfter = 1

func writeError(w http.ResponseWriter, err *apierrors.StatusError) {
	s := err.Status()
	s.APIVersion, s.Kind = "v1", "Status"
	if s.Details != nil && s.Details.RetryAfterSeconds > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(s.Details.RetryAfterSeconds)))
	}
	responsewriters.WriteRawJSON(int(s.Code), s, w)
}

func unavailable(format string, args ...any) *apierrors.StatusError {
	err := apierrors.NewServiceUnavailable(fmt.Sprintf(format, args...))
	err.ErrStatus.Details = &metav1.StatusDetails{RetryAfterSeconds: retryAfter}
	return err
}
