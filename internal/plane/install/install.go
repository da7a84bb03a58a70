package install

import (
	"context"
	"errors"
	"fmt"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	csv1 "github.com/polder-kaas/polder/api/clusterstack/v1alpha1"
)

// Config says what to install. All fields are needed.
type Config struct {
	Client      func(userAgent string) *rest.Config
	Definitions Definitions
	Roles       []client.Object // of group rbac.authorization.k8s.io
	Objects     []client.Object // of our own kinds, namespaces and what is in them, policies
}

// Installer is a component that is ready once everything is installed, and then only waits.
type Installer struct {
	cfg   Config
	ready chan struct{}
}

// New prepares the component.
func New(cfg Config) *Installer { return &Installer{cfg: cfg, ready: make(chan struct{})} }

// Name is the component's name.
func (i *Installer) Name() string { return "crds" }

// Ready closes when all definitions are established and all roles and objects exist.
func (i *Installer) Ready() <-chan struct{} { return i.ready }

// Run installs everything and waits for ctx to end.
func (i *Installer) Run(ctx context.Context) error {
	if err := i.installRoles(ctx); err != nil {
		return fmt.Errorf("installing roles: %w", err)
	}
	if err := i.installCRDs(ctx); err != nil {
		return fmt.Errorf("installing custom resource definitions: %w", err)
	}
	if err := i.installObjects(ctx); err != nil {
		return fmt.Errorf("installing what the plane comes with: %w", err)
	}
	close(i.ready)
	<-ctx.Done()
	return nil
}

func (i *Installer) installObjects(ctx context.Context) error {
	if len(i.cfg.Objects) == 0 {
		return nil
	}
	scheme := runtime.NewScheme()
	if err := errors.Join(corev1.AddToScheme(scheme), rbacv1.AddToScheme(scheme), admissionv1.AddToScheme(scheme),
		flowcontrolv1.AddToScheme(scheme),
		csv1.AddToScheme(scheme)); err != nil {
		return err
	}
	c, err := NewClient(i.cfg.Client("polder-install"), scheme)
	if err != nil {
		return err
	}
	for _, o := range i.cfg.Objects {
		if err := i.installObject(ctx, c, o); err != nil {
			return err
		}
	}
	return nil
}

// installObject installs one object. Objects that people may change are only created, and then theirs.
func (i *Installer) installObject(ctx context.Context, c client.Client, o client.Object) error {
	switch o.(type) {
	case *corev1.Namespace, *csv1.ClusterStack:
		if err := client.IgnoreAlreadyExists(c.Create(ctx, o)); err != nil {
			return fmt.Errorf("making %s: %w", o.GetName(), err)
		}
		return nil
	}
	return Apply(ctx, c, o)
}

func (i *Installer) installRoles(ctx context.Context) error {
	scheme := runtime.NewScheme()
	if err := rbacv1.AddToScheme(scheme); err != nil {
		return err
	}
	c, err := NewClient(i.cfg.Client("polder-install"), scheme)
	if err != nil {
		return err
	}
	return Apply(ctx, c, i.cfg.Roles...)
}
