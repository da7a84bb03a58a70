package stack

import (
	"errors"
	"fmt"

	"sigs.k8s.io/yaml"

	"github.com/polder-kaas/polder/stack/document"
	"github.com/polder-kaas/polder/stack/version"
)

// MetadataAPIVersion is the apiVersion of metadata.yaml.
const MetadataAPIVersion = "metadata.clusterstack.x-k8s.io/v1alpha1"

// Metadata is what metadata.yaml says about a release.
type Metadata struct {
	APIVersion string   `json:"apiVersion"`
	Versions   Versions `json:"versions"`
}

// Versions are those of a release and of its parts. The stack's number grows with every release, a part's only
// when that part has changed.
type Versions struct {
	ClusterStack version.Version `json:"clusterStack"`
	Kubernetes   string          `json:"kubernetes"` // exact, with a leading v
	Components   Components      `json:"components"`
}

// Components are the parts that have versions of their own.
type Components struct {
	ClusterAddon version.Version  `json:"clusterAddon"`
	NodeImage    *version.Version `json:"nodeImage,omitempty"`
}

// ParseMetadata reads metadata.yaml.
func ParseMetadata(b []byte) (Metadata, error) {
	var m Metadata
	d, err := document.ParseOne(metadataFile, b)
	if err != nil {
		return m, err
	}
	if err := d.Decode(&m); err != nil {
		return m, err
	}
	return m, m.check(d)
}

func (m Metadata) check(d document.Document) error {
	var errs []error
	at := func(reason string, keys ...string) {
		errs = append(errs, &document.Error{File: d.File(), Line: d.Line(keys...), Reason: reason})
	}
	if m.APIVersion != MetadataAPIVersion {
		at(fmt.Sprintf("apiVersion must be %s, not %q", MetadataAPIVersion, m.APIVersion), "apiVersion")
	}
	var zero version.Version
	if m.Versions.ClusterStack == zero {
		at("versions.clusterStack is missing or v0; it is the version of the release, for example v1", "versions",
			"clusterStack")
	}
	if m.Versions.Components.ClusterAddon == zero {
		at("versions.components.clusterAddon is missing or v0; it is the version of the add-ons, for example v1", "versions",
			"components", "clusterAddon")
	}
	if k, err := version.ParseKubernetes(m.Versions.Kubernetes); err != nil {
		at("versions.kubernetes: "+err.Error(), "versions", "kubernetes")
	} else if !k.HasPatch() {
		at(fmt.Sprintf("versions.kubernetes must be exact, for example v%s.0, not %q", k.MinorString(),
			m.Versions.Kubernetes), "versions", "kubernetes")
	}
	return errors.Join(errs...)
}

// KubernetesVersion is the exact version the release is made for.
func (m Metadata) KubernetesVersion() version.Kubernetes {
	k, _ := version.ParseKubernetes(m.Versions.Kubernetes) // check has parsed it
	return k
}

// Marshal writes metadata.yaml, always with the part nodeImage: other tools refuse a file without it.
func (m Metadata) Marshal() ([]byte, error) {
	m.APIVersion = MetadataAPIVersion
	if m.Versions.Components.NodeImage == nil {
		m.Versions.Components.NodeImage = &version.Version{Major: 1}
	}
	return yaml.Marshal(m)
}
