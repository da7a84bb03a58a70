package plane

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	runtimehooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/polder-kaas/polder/internal/apply"
	"github.com/polder-kaas/polder/internal/operator"
	"github.com/polder-kaas/polder/internal/plane/install"
	"github.com/polder-kaas/polder/internal/plane/runtimehooks"
	"github.com/polder-kaas/polder/internal/releases"
	"github.com/polder-kaas/polder/internal/releases/shipped"
	"github.com/polder-kaas/polder/stack/registry"
	"github.com/polder-kaas/polder/stacks"
)

// Stacks is what an operator can choose about cluster stacks.
type Stacks struct {
	Source            string   // oci://… or a directory, for ClusterStacks that name none; empty if there is none
	SourceCA          string   // file with the authorities of its certificate; empty means the system's
	DockerConfig      string   // file with credentials for it; empty means none
	Directories       []string // NAME=DIR that ClusterStacks may name
	TrustedRegistries []string // HOST[:PORT] of registries with private addresses that ClusterStacks may name
	AllowedKinds      []string // GROUP/KIND that releases may bring into the plane, beside the usual ones
	OmitShipped       bool     // do not offer the stacks that are in the binary
}

// prepareShippedStacks writes the releases of the stacks in the binary to disk, and adds their directory to the
// operator's sources. The objects it returns offer them to all namespaces.
func (p *Plane) prepareShippedStacks(ctx context.Context, sources operator.Releases) ([]client.Object, error) {
	if p.cfg.Stacks.OmitShipped {
		return nil, nil
	}
	releases, err := shipped.BuildReleases(stacks.Files)
	if err != nil {
		return nil, fmt.Errorf("preparing the stacks in the binary: %w", err)
	}
	dir := p.dir.Path(shipped.Directory)
	if err := shipped.Write(ctx, dir, releases); err != nil {
		return nil, fmt.Errorf("preparing the stacks in the binary: %w", err)
	}
	sources.Directories[shipped.Directory] = dir
	return slices.Concat(shipped.Objects(releases), operator.CatalogueRoles()), nil
}

// releaseSources parses the settings. All that is wrong is reported at once.
func (s Stacks) releaseSources() (operator.Releases, error) {
	out := operator.Releases{Trusted: s.TrustedRegistries, Kinds: apply.DefaultKinds(), Directories: map[string]string{}}
	var errs []error
	if s.Source != "" {
		place, err := s.defaultSource()
		errs = append(errs, err)
		out.Default = place
	} else if s.SourceCA != "" || s.DockerConfig != "" {
		errs = append(errs, errors.New("--stack-source-ca and --stack-docker-config are for --stack-source, which is missing"))
	}
	for _, d := range s.Directories {
		name, path, ok := strings.Cut(d, "=")
		if !ok || name == "" || path == "" {
			errs = append(errs, fmt.Errorf("--stack-directory %q is not NAME=DIRECTORY", d))
			continue
		}
		path, err := filepath.Abs(path)
		errs = append(errs, err)
		out.Directories[name] = path
	}
	for _, k := range s.AllowedKinds {
		p, err := apply.ParseKindPattern(k)
		if err != nil {
			errs = append(errs, fmt.Errorf("--stack-kinds: %w", err))
			continue
		}
		out.Kinds = append(out.Kinds, p)
	}
	return out, errors.Join(errs...)
}

// defaultSource parses the source for ClusterStacks that name none.
func (s Stacks) defaultSource() (*releases.ConfiguredSource, error) {
	p := &releases.ConfiguredSource{Reference: s.Source, Options: registry.Options{DockerConfig: s.DockerConfig}}
	ref, err := registry.ParseReference(s.Source)
	if err != nil {
		return nil, fmt.Errorf("--stack-source: %w", err)
	}
	if ref.Tag != "" || ref.Digest != "" {
		return nil, fmt.Errorf("--stack-source %s is one release; name the place of all, %s", s.Source, ref.Location())
	}
	if ref.Directory != "" {
		if p.Reference, err = filepath.Abs(ref.Directory); err != nil {
			return nil, err
		}
	}
	if s.SourceCA != "" {
		b, err := os.ReadFile(s.SourceCA)
		if err != nil {
			return nil, fmt.Errorf("--stack-source-ca: %w", err)
		}
		p.Options.Roots = x509.NewCertPool()
		if !p.Options.Roots.AppendCertsFromPEM(b) {
			return nil, fmt.Errorf("--stack-source-ca %s has no certificates in PEM form", s.SourceCA)
		}
	}
	return p, nil
}

// newHoldUpgradeHandler returns a handler by which the operator holds back upgrades of Kubernetes while add-ons
// are applied.
func newHoldUpgradeHandler(o *operator.Operator) runtimehooks.Handler {
	return runtimehooks.Handler{
		Name: "hold-upgrade.polder",
		Hook: runtimehooksv1.BeforeClusterUpgrade,
		Func: func(ctx context.Context, _ client.Object, request runtimehooksv1.RequestObject,
			response runtimehooksv1.ResponseObject) error {
			req, ok := request.(*runtimehooksv1.BeforeClusterUpgradeRequest)
			resp, ok2 := response.(*runtimehooksv1.BeforeClusterUpgradeResponse)
			if !ok || !ok2 {
				return fmt.Errorf("asked with %T", request)
			}
			return o.HoldUpgrade(ctx, req, resp)
		},
	}
}

// registerWebhook applies a webhook configuration.
func registerWebhook(ctx context.Context, cfg *rest.Config, o client.Object) error {
	scheme := runtime.NewScheme()
	if err := admissionv1.AddToScheme(scheme); err != nil {
		return err
	}
	c, err := install.NewClient(cfg, scheme)
	if err != nil {
		return err
	}
	return install.Apply(ctx, c, o)
}
