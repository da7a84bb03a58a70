package capi

import (
	"context"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/polder-kaas/polder/internal/plane/install"
)

// conversionPath is the path of the conversion webhook, which is for all kinds.
const conversionPath = "/convert"

// ConversionURL is the URL of the conversion webhook for CRDs; base is Webhooks.URL.
func ConversionURL(base string) string { return base + conversionPath }

// registerWebhooks points the API server at the webhooks in this process. What an earlier run registered is
// brought up to date, since authority and paths may have changed.
func (c *ClusterAPI) registerWebhooks(ctx context.Context) error {
	ca, err := c.cfg.Webhooks.CA()
	if err != nil {
		return err
	}
	scheme := runtime.NewScheme()
	if err := admissionv1.AddToScheme(scheme); err != nil {
		return err
	}
	cl, err := install.NewClient(c.cfg.Client("polder-webhook-registration"), scheme)
	if err != nil {
		return err
	}
	return install.Apply(ctx, cl, c.webhookConfigurations(ca)...)
}

func (c *ClusterAPI) webhookConfigurations(ca []byte) []client.Object {
	point := func(cc *admissionv1.WebhookClientConfig) {
		*cc = admissionv1.WebhookClientConfig{URL: ptr.To(c.cfg.Webhooks.URL + *cc.Service.Path), CABundle: ca}
	}
	var out []client.Object
	for _, w := range c.cfg.Manifests.Mutating {
		w := w.DeepCopy()
		for i := range w.Webhooks {
			point(&w.Webhooks[i].ClientConfig)
		}
		out = append(out, w)
	}
	for i, w := range c.cfg.Manifests.Validating {
		w := w.DeepCopy()
		for i := range w.Webhooks {
			point(&w.Webhooks[i].ClientConfig)
		}
		// In a registration of Cluster API's, not in one of its own: a polderd that does not have this webhook applies
		// its registrations without it. One that nobody answers would keep all clusters from being made.
		if i == 0 {
			w.Webhooks = append(w.Webhooks, clusterSecretWebhook(c.cfg.Webhooks.URL, ca))
		}
		out = append(out, w)
	}
	return out
}
