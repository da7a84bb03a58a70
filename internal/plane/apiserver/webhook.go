package apiserver

import (
	"context"
	"net"

	"k8s.io/apiserver/pkg/admission"
	webhookinit "k8s.io/apiserver/pkg/admission/plugin/webhook/initializer"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/util/webhook"
	"k8s.io/client-go/rest"
	controlplaneapiserver "k8s.io/kubernetes/pkg/controlplane/apiserver"
)

// newWebhookResolver connects to our own webhooks by our own dialer, so that they need no port others could call;
// all other webhooks are dialled as in any API server.
func (a *APIServer) newWebhookResolver(generic *genericapiserver.Config) webhook.AuthenticationInfoResolverWrapper {
	standard := webhook.NewDefaultAuthenticationInfoResolverWrapper(controlplaneapiserver.CreateProxyTransport(),
		generic.EgressSelector, generic.LoopbackClientConfig, generic.TracerProvider)
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
