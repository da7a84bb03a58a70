package apiserver

import (
	"context"
	"crypto/subtle"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"

	"github.com/polder-kaas/polder/internal/plane/health"
)

// authSyncTimeout is how long a request waits at most until roles and accounts are read. That takes a second or
// two.
const authSyncTimeout = 15 * time.Second

// holdUntilAuthSynced makes requests wait that come before roles, bindings and service accounts are read. The API
// server would answer them that it does not know the user, or that the user has no rights, which clients take for
// final: every start would end somebody's controllers. Requests of this process need none of that, and reading it
// needs them. Behind authentication, names of health checks are hidden from who is no operator.
func holdUntilAuthSynced(c *genericapiserver.Config, f informers.SharedInformerFactory, warnings func() []string,
	route func(next http.Handler) http.Handler) {
	rbac, core := f.Rbac().V1(), f.Core().V1()
	h := &startupGate{token: c.LoopbackClientConfig.BearerToken, synced: []cache.InformerSynced{
		rbac.Roles().Informer().HasSynced, rbac.RoleBindings().Informer().HasSynced,
		rbac.ClusterRoles().Informer().HasSynced, rbac.ClusterRoleBindings().Informer().HasSynced,
		core.ServiceAccounts().Informer().HasSynced, core.Secrets().Informer().HasSynced,
		core.Namespaces().Informer().HasSynced, // which say what is to be handed on
	}}
	build := c.BuildHandlerChainFunc
	c.BuildHandlerChainFunc = func(next http.Handler, c *genericapiserver.Config) http.Handler {
		hidden := health.HideChecks(route(next), health.Config{Authorizer: c.Authorization.Authorizer, Warnings: warnings})
		return h.wrapHandler(build(hidden, c))
	}
}

// startupGate holds requests until the informers of authentication and authorisation are synced.
type startupGate struct {
	token  string // the bearer token of this process's own requests
	synced []cache.InformerSynced
	open   atomic.Bool
}

func (h *startupGate) wrapHandler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if h.open.Load() || h.isLoopback(r) || isHealthPath(r.URL.Path) || h.waitForSync(r.Context()) {
			next.ServeHTTP(w, r)
			return
		}
		w.Header().Set("Retry-After", "1")
		http.Error(w, "the plane is starting, and does not know yet who may do what; try again",
			http.StatusServiceUnavailable)
	})
}

// isLoopback says whether a request is of this process. The token is authenticated again behind the gate.
func (h *startupGate) isLoopback(r *http.Request) bool {
	return subtle.ConstantTimeCompare([]byte(r.Header.Get("Authorization")), []byte("Bearer "+h.token)) == 1
}

// waitForSync waits until all informers are synced, and returns false if that takes too long.
func (h *startupGate) waitForSync(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, authSyncTimeout)
	defer cancel()
	if !cache.WaitForCacheSync(ctx.Done(), h.synced...) {
		return false
	}
	h.open.Store(true)
	return true
}

// isHealthPath says whether a path is one of those that anonymous requests may use.
func isHealthPath(path string) bool {
	return slices.ContainsFunc([]string{"/livez", "/readyz", "/version"}, func(p string) bool {
		return path == p || strings.HasPrefix(path, p+"/")
	})
}
