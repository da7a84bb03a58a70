// Package manifests embeds what Cluster API's release manifests hold beside programs: custom
// resource definitions, webhook configurations and roles.
package manifests

import (
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/polder-kaas/polder/internal/program/exit"
)

//go:embed *
var files embed.FS

const (
	dir       = "generated"
	indexFile = "index.json"
)

// Index lists what is embedded. CRDs are large and rarely needed, so they are read on demand.
type Index struct {
	ClusterAPI string                                       `json:"clusterAPI"` // version of the module
	CRDs       []CRD                                        `json:"crds"`
	Mutating   []admissionv1.MutatingWebhookConfiguration   `json:"mutating"`
	Validating []admissionv1.ValidatingWebhookConfiguration `json:"validating"`
	Roles      map[string]rbacv1.ClusterRole                `json:"roles"` // by manager
}

// CRD names one definition and its content.
type CRD struct {
	Name    string `json:"name"`    // plural and group, joined by a dot
	Version string `json:"version"` // in which objects are stored
	SHA256  string `json:"sha256"`
}

// Resource is the resource that c defines, in its stored version.
func (c CRD) Resource() schema.GroupVersionResource {
	plural, group, _ := strings.Cut(c.Name, ".")
	return schema.GroupVersionResource{Group: group, Version: c.Version, Resource: plural}
}

// Load reads the index. It fails in a binary that was built without manifests.
func Load() (Index, error) { return load(files) }

func load(fsys fs.FS) (Index, error) {
	var i Index
	b, err := fs.ReadFile(fsys, path.Join(dir, indexFile))
	if errors.Is(err, fs.ErrNotExist) {
		return i, exit.Errorf(exit.NoManifests,
			"this polderd was built without Cluster API's manifests; build it with: make build")
	}
	if err != nil {
		return i, fmt.Errorf("reading embedded manifests: %w", err)
	}
	if err := json.Unmarshal(b, &i); err != nil {
		return i, fmt.Errorf("reading embedded manifests: %w", err)
	}
	return i, nil
}

// Definition reads the whole definition.
func (c CRD) Definition() (*apiextensionsv1.CustomResourceDefinition, error) {
	b, err := files.ReadFile(path.Join(dir, c.Name+".json"))
	if err != nil {
		return nil, fmt.Errorf("reading embedded CRD %s: %w", c.Name, err)
	}
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := json.Unmarshal(b, crd); err != nil {
		return nil, fmt.Errorf("reading embedded CRD %s: %w", c.Name, err)
	}
	return crd, nil
}
