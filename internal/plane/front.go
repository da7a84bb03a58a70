package plane

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/polder-kaas/polder/api/v1alpha1"
	"github.com/polder-kaas/polder/internal/files/certificate"
	"github.com/polder-kaas/polder/internal/front"
	"github.com/polder-kaas/polder/internal/front/inprocess"
	"github.com/polder-kaas/polder/internal/front/planeapi"
	"github.com/polder-kaas/polder/internal/plane/apiserver"
	"github.com/polder-kaas/polder/internal/plane/pki"
	"github.com/polder-kaas/polder/internal/plane/supervisor"
	"github.com/polder-kaas/polder/internal/program/buildinfo"
	"github.com/polder-kaas/polder/internal/program/exit"
	"github.com/polder-kaas/polder/internal/program/logging"
)

// appendFront adds the API for customers as the last stage, if it is served.
func (p *Plane) appendFront(stages []supervisor.Stage, api *apiserver.APIServer,
	certs *pki.PKI) ([]supervisor.Stage, error) {
	if p.rest == nil {
		return stages, nil
	}
	door, err := p.newFront(api, certs)
	if err != nil {
		return nil, exit.With(exit.Usage, err)
	}
	return append(stages, supervisor.Stage{door}), nil
}

// newFront prepares the API for customers.
func (p *Plane) newFront(api *apiserver.APIServer, certs *pki.PKI) (*front.Front, error) {
	get := certs.ServingCertificate
	if p.cfg.REST.Certificate != "" {
		file := &certificate.File{
			Certificate: p.cfg.REST.Certificate, Key: p.cfg.REST.Key, Clock: p.cfg.Clock,
			OnProblem: func(err error) {
				p.cfg.Log.Error("the new certificate of the REST API cannot be used, the old one stays", "error", err)
			},
		}
		if _, err := file.Get(); err != nil {
			return nil, fmt.Errorf("--rest-certificate: %w", err)
		}
		get = func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return file.Get() }
	}
	return front.New(front.Config{
		Listener: p.rest, Certificate: get, Namespace: p.namespaceOfTenant, Version: buildinfo.Get(), Clock: p.cfg.Clock,
		Log:      p.cfg.Log,
		Plane:    func() http.RoundTripper { return inprocess.Transport{Handler: api.Handler()} },
		ErrorLog: slog.NewLogLogger(logging.NewLibraryHandler(p.cfg.Log, "rest"), slog.LevelDebug), // of those who connect
	}), nil
}

// namespaceOfTenant reads the cache of the operator; nothing if it does not know the tenant yet.
func (p *Plane) namespaceOfTenant(name string) string {
	cache := p.quota.Cache()
	if cache == nil {
		return ""
	}
	t := &v1alpha1.Tenant{}
	if err := cache.Get(context.Background(), client.ObjectKey{Name: name}, t); err != nil { //nolint:forbidigo // from memory
		return ""
	}
	return t.NamespaceName()
}

// cacheReader reads a cache of the plane, once that is there.
type cacheReader func() client.Reader

var _ client.Reader = cacheReader(nil)

// Get reads one object.
func (r cacheReader) Get(ctx context.Context, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
	if c := r(); c != nil {
		return c.Get(ctx, key, o, opts...)
	}
	return fmt.Errorf("the plane is starting")
}

// List reads many.
func (r cacheReader) List(ctx context.Context, l client.ObjectList, opts ...client.ListOption) error {
	if c := r(); c != nil {
		return c.List(ctx, l, opts...)
	}
	return fmt.Errorf("the plane is starting")
}

// frontHandlers serve what the door for customers asks the plane.
func (p *Plane) frontHandlers() map[string]http.Handler {
	return planeapi.Handlers(planeapi.Config{
		Tenants: cacheReader(p.quota.Cache), Machines: cacheReader(func() client.Reader { return p.capi.Cache() }),
		DataDir: p.dir.Path(), PlaneOf: p.planeOfTenant, Status: func() (any, error) { return p.describe() },
	})
}

// planeOfTenant returns the data directory of a tenant's own plane, or nothing if it has none.
func (p *Plane) planeOfTenant(t *v1alpha1.Tenant) string {
	if !t.IsDedicated() || t.Status.NamespaceUID == "" {
		return ""
	}
	return p.tenants.DirOf(types.UID(t.Status.NamespaceUID))
}

// describe is the status with what is not written to the file of it, since it changes by itself.
func (p *Plane) describe() (map[string]any, error) {
	b, err := json.Marshal(p.reporter.get())
	if err != nil {
		return nil, err
	}
	out := map[string]any{}
	if err := json.Unmarshal(b, &out); err != nil {
		return nil, err
	}
	var disk unix.Statfs_t
	if err := unix.Statfs(p.dir.Path(), &disk); err == nil {
		unit := uint64(disk.Bsize) //nolint:gosec // a size
		out["disk"] = map[string]uint64{"totalBytes": disk.Blocks * unit, "freeBytes": disk.Bavail * unit}
	}
	out["warnings"] = append([]string{}, p.reporter.warnings()...)
	out["certificates"] = listCertificates(p.dir.Path("pki"))
	return out, nil
}

// certificateEnd is when a certificate of the plane ends.
type certificateEnd struct {
	File           string    `json:"file"`
	ExpirationTime time.Time `json:"expirationTime"`
}

func listCertificates(dir string) []certificateEnd {
	out := []certificateEnd{}
	files, _ := filepath.Glob(filepath.Join(dir, "*.pem")) // the pattern is right
	for _, file := range files {
		rest, err := os.ReadFile(file)
		for err == nil && len(rest) > 0 {
			var block *pem.Block
			if block, rest = pem.Decode(rest); block == nil {
				break
			}
			if c, err := x509.ParseCertificate(block.Bytes); err == nil && block.Type == "CERTIFICATE" {
				out = append(out, certificateEnd{File: filepath.Base(file), ExpirationTime: c.NotAfter})
			}
		}
	}
	return out
}
