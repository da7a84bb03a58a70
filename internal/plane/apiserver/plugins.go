package apiserver

import (
	"context"
	"net"

	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/initializer"
	webhookinit "k8s.io/apiserver/pkg/admission/plugin/webhook/initializer"
	kubequota "k8s.io/apiserver/pkg/quota/v1"
	"k8s.io/apiserver/pkg/quota/v1/generic"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/util/webhook"
	"k8s.io/client-go/rest"
	controlplaneapiserver "k8s.io/kubernetes/pkg/controlplane/apiserver"
	quotainstall "k8s.io/kubernetes/pkg/quota/v1/install"

	"github.com/polder-kaas/polder/internal/plane/quotaevaluator"
)

// newWebhookResolver connects to our own webhooks by our own dialer, so that they need no port others could call;
// all other webhooks are dialled as in any API server.
func (a *APIServer) newWebhookResolver(server *genericapiserver.Config) webhook.AuthenticationInfoResolverWrapper {
	standard := webhook.NewDefaultAuthenticationInfoResolverWrapper(controlplaneapiserver.CreateProxyTransport(),
		server.EgressSelector, server.LoopbackClientConfig, server.TracerProvider)
	own := &rest.Config{Dial: func(ctx context.Context, _, _ string) (net.Conn, error) { return a.cfg.DialWebhook(ctx) }}
	return func(delegate webhook.AuthenticationInfoResolver) webhook.AuthenticationInfoResolver {
		next := standard(delegate)
		return &webhook.AuthenticationInfoResolverDelegator{
			ClientConfigForFunc: func(hostPort string) (*rest.Config, error) {
				if hostPort == a.cfg.WebhookHost {
					return own, nil
				}
				return next.ClientConfigFor(hostPort)
			},
			ClientConfigForServiceFunc: next.ClientConfigForService,
		}
	}
}

// webhookInitializer gives admission plugins our resolver. It runs after the standard initializers, so that its
// resolver is the one that stays.
type webhookInitializer struct {
	wrapper webhook.AuthenticationInfoResolverWrapper
}

var _ admission.PluginInitializer = webhookInitializer{}

func (i webhookInitializer) Initialize(p admission.Interface) {
	if w, ok := p.(webhookinit.WantsAuthenticationInfoResolverWrapper); ok {
		w.SetAuthenticationInfoResolverWrapper(i.wrapper)
	}
}

// quotaInitializer gives the plugin of quotas our evaluators. Those of Kubernetes are for kinds that are not here.
type quotaInitializer struct{ source *quotaevaluator.Source }

var _ admission.PluginInitializer = quotaInitializer{}

func (i quotaInitializer) Initialize(p admission.Interface) {
	if w, ok := p.(initializer.WantsQuotaConfiguration); ok {
		w.SetQuotaConfiguration(generic.NewConfiguration([]kubequota.Evaluator{quotaevaluator.New(i.source, nil)},
			quotainstall.DefaultIgnoredResources()))
	}
}
