package main

import (
	"context"
	"errors"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/polder-kaas/polder/internal/plane/capi/manifests"
	"github.com/polder-kaas/polder/internal/plane/install"
)

// install puts definitions and roles into the separate API server with the code polderd uses,
// for all three managers at the same time. Each converts its own kinds.
func (s *separate) install(ctx context.Context, a access) error {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	ended := make(chan error, len(managers))
	for _, m := range managers {
		i := install.New(install.Config{
			Client: func(agent string) *rest.Config { return withAgent(a.config, agent) },
			Definitions: install.Definitions{
				ClusterAPICRDs: s.definitions(m), ConversionURL: s.ports.url(m) + "/convert", ConversionCA: s.keys.ServerCA,
			},
			Roles: s.roles(m),
		})
		go func() { ended <- untilReady(ctx, i) }()
	}
	var errs []error
	for range managers {
		errs = append(errs, <-ended)
	}
	return errors.Join(errs...)
}

// untilReady runs the installer, which only waits once it is ready, until then.
func untilReady(ctx context.Context, i *install.Installer) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- i.Run(ctx) }()
	select {
	case err := <-ended:
		return errors.Join(err, ctx.Err())
	case <-i.Ready():
		cancel()
		return <-ended
	}
}

func withAgent(c *rest.Config, agent string) *rest.Config {
	c = rest.CopyConfig(c)
	c.UserAgent = agent
	return c
}

func (s *separate) definitions(manager string) []manifests.CRD {
	var out []manifests.CRD
	for _, c := range s.manifests.CRDs {
		if owner(c.Name, ".bootstrap.", ".controlplane.") == manager {
			out = append(out, c)
		}
	}
	return out
}

// owner says which manager something belongs to, by what its name holds.
func owner(name, ofBootstrap, ofControlPlane string) string {
	switch {
	case strings.Contains(name, ofBootstrap):
		return managerPrefix + "bootstrap"
	case strings.Contains(name, ofControlPlane):
		return managerPrefix + "control-plane"
	}
	return managerPrefix + "core"
}

// registerWebhooks registers the managers' webhooks with the separate API server.
func (s *separate) registerWebhooks(ctx context.Context, a access) error {
	scheme := runtime.NewScheme()
	if err := admissionv1.AddToScheme(scheme); err != nil {
		return err
	}
	c, err := install.NewClient(a.config, scheme)
	if err != nil {
		return err
	}
	all, err := s.webhookConfigurations()
	if err != nil {
		return err
	}
	return install.Apply(ctx, c, all...)
}

func (s *separate) webhookConfigurations() ([]client.Object, error) {
	ca, err := s.keys.ServerCA()
	if err != nil {
		return nil, err
	}
	point := func(configuration string, c *admissionv1.WebhookClientConfig) {
		manager := owner(configuration, "-bootstrap-", "-control-plane-")
		*c = admissionv1.WebhookClientConfig{URL: ptr.To(s.ports.url(manager) + *c.Service.Path), CABundle: ca}
	}
	var out []client.Object
	for _, w := range s.manifests.Mutating {
		for i := range w.Webhooks {
			point(w.Name, &w.Webhooks[i].ClientConfig)
		}
		out = append(out, &w)
	}
	for _, w := range s.manifests.Validating {
		for i := range w.Webhooks {
			point(w.Name, &w.Webhooks[i].ClientConfig)
		}
		out = append(out, &w)
	}
	return out, nil
}
