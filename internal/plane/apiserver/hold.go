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
)

// holdFor is how long a request waits at most until it is known who may do what. That takes a second or two.
const holdFor = 15 * time.Second

// holdUntilKnown keeps requests waiting that come before roles, bindings and service accounts are read. To those an API
// server says that it does not know who asks, or that they have no rights, which clients take for final: every start
// would end somebody's controllers. Requests of this process need none of that, and reading it needs them.
func holdUntilKnown(c *genericapiserver.Config, f informers.SharedInformerFactory) {
	rbac, core := f.Rbac().V1(), f.Core().V1()
	h := &hold{token: c.LoopbackClientConfig.BearerToken, synced: []cache.InformerSynced{
		rbac.Roles().Informer().HasSynced, rbac.RoleBindings().Informer().HasSynced,
		rbac.ClusterRoles().Informer().HasSynced, rbac.ClusterRoleBindings().Informer().HasSynced,
		core.ServiceAccounts().Informer().HasSynced, core.Secrets().Informer().HasSynced,
	}}
	build := c.BuildHandlerChainFunc
	c.BuildHandlerChainFunc = func(next http.Handler, c *genericapiserver.Config) http.Handler {
		return h.before(build(next, c))
	}
}

// hold is the gate before a server.
type hold struct {
	token  string // of requests of this process
	synced []cache.InformerSynced
	open   atomic.Bool
}

func (h *hold) before(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if h.open.Load() || h.isOurs(r) || asksHowItIs(r.URL.Path) || h.opens(r.Context()) {
			next.ServeHTTP(w, r)
			return
		}
		w.Header().Set("Retry-After", "1")
		http.Error(w, "the plane is starting, and does not know yet who may do what; try again", http.StatusServiceUnavailable)
	})
}

// isOurs says that a request is of this process. Who asks is checked again behind the gate.
func (h *hold) isOurs(r *http.Request) bool {
	return subtle.ConstantTimeCompare([]byte(r.Header.Get("Authorization")), []byte("Bearer "+h.token)) == 1
}

// opens waits until all is known, and is false if that takes too long.
func (h *hold) opens(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, holdFor)
	defer cancel()
	if !cache.WaitForCacheSync(ctx.Done(), h.synced...) {
		return false
	}
	h.open.Store(true)
	return true
}

// asksHowItIs says that a request is one of those that anybody may make.
func asksHowItIs(path string) bool {
	return slices.ContainsFunc([]string{"/livez", "/readyz", "/version"}, func(p string) bool {
		return path == p || strings.HasPrefix(path, p+"/")
	})
}
