package plane

import (
	"context"
	"net/http"
	"runtime"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apimachineryruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authentication/user"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	csv1 "github.com/polder-kaas/polder/api/clusterstack/v1alpha1"
	"github.com/polder-kaas/polder/api/v1alpha1"
	"github.com/polder-kaas/polder/internal/operator"
	"github.com/polder-kaas/polder/internal/plane/capi"
	"github.com/polder-kaas/polder/internal/plane/pki"
	"github.com/polder-kaas/polder/internal/plane/tenantplanes"
	"github.com/polder-kaas/polder/internal/plane/watchlimit"
	"github.com/polder-kaas/polder/internal/providers/local"
)

// ownProgram is the running polderd, also where its file was replaced: planes of tenants are of the same version.
const ownProgram = "/proc/self/exe"

// ownUsers are those that controllers of the plane act as.
func ownUsers() []string {
	return append(capi.Users(), local.User, operator.User, operator.TenantUser)
}

// newTenantPlanes prepares the planes of tenants that have one of their own.
func (p *Plane) newTenantPlanes() (*tenantplanes.Planes, error) {
	scheme := apimachineryruntime.NewScheme()
	for _, add := range []func(*apimachineryruntime.Scheme) error{
		clientgoscheme.AddToScheme, csv1.AddToScheme, v1alpha1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			return nil, err
		}
	}
	seats := customerSeats(runtime.GOMAXPROCS(0))
	return tenantplanes.New(tenantplanes.Config{
		Dir: p.dir.Path(), Program: ownProgram, Args: p.cfg.TenantArgs, BackupDir: p.cfg.Backups.Dir,
		// One that hangs leaves others half of all places, until it is known to hang.
		Requests: seats / 2, //nolint:mnd // as above
		NewClient: func(kubeconfig string) (client.Client, error) {
			rc, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
			if err != nil {
				return nil, err
			}
			rc.UserAgent = "polder-tenant-planes"
			return client.New(rc, client.Options{Scheme: scheme})
		},
		Clock: p.cfg.Clock, Log: p.cfg.Log, Report: p.reporter.setTenantPlanes,
	})
}

// route hands requests on to the planes of tenants, and bounds how many watches are open.
func (p *Plane) route(next http.Handler,
	namespace func(context.Context, string) (*corev1.Namespace, error)) http.Handler {
	router := &tenantplanes.Router{
		Planes: p.tenants, Namespace: namespace, TenantNamespace: p.namespaceOfTenant, IsOwn: isOwn, Next: next,
	}
	return &watchlimit.Handler{Next: router, IsExempt: func(who user.Info) bool {
		return isOwn(who) || strings.HasPrefix(who.GetName(), providerAccounts) ||
			slices.Contains(who.GetGroups(), pki.AdminGroup) || slices.Contains(who.GetGroups(), user.SystemPrivilegedGroup)
	}}
}

// providerAccounts is how names of providers' users begin; no customer may take up their watches.
const providerAccounts = "system:serviceaccount:" + v1alpha1.ProvidersNamespace + ":"

// isOwn reports whether a user is one of this plane's controllers. No other has such a name.
func isOwn(who user.Info) bool {
	name := who.GetName()
	return name == user.APIServerUser || strings.HasPrefix(name, "system:serviceaccount:kube-system:") ||
		slices.Contains(ownUsers(), name)
}
