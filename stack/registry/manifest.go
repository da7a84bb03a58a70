package registry

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/polder-kaas/polder/stack"
	"github.com/polder-kaas/polder/stack/archive"
	"github.com/polder-kaas/polder/stack/version"
)

// parseManifest reads the manifest of a release that anybody may have written. It takes no layer
// that is not a plain file, and no more of them than the limits allow.
func parseManifest(b []byte) (ocispec.Manifest, error) {
	var m ocispec.Manifest
	if err := json.Unmarshal(b, &m); err != nil {
		return m, fmt.Errorf("the manifest is no JSON of a manifest: %w", err)
	}
	if m.SchemaVersion != 2 || m.MediaType != "" && m.MediaType != ocispec.MediaTypeImageManifest {
		return m, fmt.Errorf("this is no image manifest, but %.80q", m.MediaType)
	}
	if m.ArtifactType != artifactType && m.ArtifactType != nextArtifactType {
		return m, fmt.Errorf("this is no release of a cluster stack: its artifact type is %.80q, not %s", m.ArtifactType,
			artifactType)
	}
	if len(m.Layers) > maxFiles {
		return m, fmt.Errorf("the manifest has %d layers; at most %d are taken", len(m.Layers), maxFiles)
	}
	return m, checkLayers(m.Layers)
}

func checkLayers(layers []ocispec.Descriptor) error {
	seen := fileNames{}
	var total int64
	for i, l := range layers {
		if err := seen.add(l.Annotations[ocispec.AnnotationTitle]); err != nil {
			return fmt.Errorf("layer %d: its title %w", i+1, err)
		}
		if !digestPattern.MatchString(l.Digest.String()) {
			return fmt.Errorf("layer %d: %.80q is no digest of sha256", i+1, l.Digest)
		}
		if l.Size < 0 || l.Size > archive.DefaultLimits.Packed {
			return fmt.Errorf("layer %d has %d bytes; at most %d are taken", i+1, l.Size, archive.DefaultLimits.Packed)
		}
		if total += l.Size; total > archive.DefaultLimits.Packed {
			return fmt.Errorf("the layers have more than the %d bytes that are taken", archive.DefaultLimits.Packed)
		}
	}
	return nil
}

// Verify says whether a manifest has a digest and describes these files: all of them, and no others.
// If not, the error is ErrDigest, or ErrInvalid for a manifest that no release has.
func Verify(want string, manifest []byte, files archive.Tree) error {
	if digest.FromBytes(manifest).String() != want {
		return fmt.Errorf("manifest: %w: %s", ErrDigest, want)
	}
	m, err := parseManifest(manifest)
	if err != nil {
		return invalidReleaseError{err}
	}
	// No two layers have one name, so every file is found below unless there are more files than layers.
	if len(files) > len(m.Layers) {
		return fmt.Errorf("%w: there are %d files, and the manifest has %d", ErrDigest, len(files), len(m.Layers))
	}
	for _, l := range m.Layers {
		name := l.Annotations[ocispec.AnnotationTitle]
		b, ok := files[name]
		if !ok {
			return fmt.Errorf("%w: %s is missing", ErrDigest, name)
		}
		if int64(len(b)) != l.Size || digest.FromBytes(b) != l.Digest {
			return fmt.Errorf("%s: %w: %s", name, ErrDigest, l.Digest)
		}
	}
	return nil
}

// invalidReleaseError is an error about what was published: it is an ErrInvalid too.
type invalidReleaseError struct{ error }

// Unwrap gives both errors.
func (u invalidReleaseError) Unwrap() []error { return []error{u.error, ErrInvalid} }

// releaseNameOf finds the name of a release that came without one: the archive of its class has it, and its
// metadata says which archive that is.
func releaseNameOf(files archive.Tree) (string, error) {
	b, ok := files["metadata.yaml"]
	if !ok {
		return "", errors.New("metadata.yaml is missing, so this is no release")
	}
	m, err := stack.ParseMetadata(b)
	if err != nil {
		return "", err
	}
	var found []string
	for _, file := range files.Names() {
		line, rest, ok := strings.Cut(file, "-cluster-class-")
		v, packed := strings.CutSuffix(rest, ".tgz")
		if !ok || !packed {
			continue
		}
		if r, err := version.ParseReleaseName(line + "-" + v); err == nil && r.Version == m.Versions.ClusterStack {
			found = append(found, r.Tag())
		}
	}
	switch len(found) {
	case 0:
		return "", fmt.Errorf("no file is called provider-name-1-36-cluster-class-%s.tgz, so the release has no name",
			m.Versions.ClusterStack)
	case 1:
		return found[0], nil
	}
	return "", fmt.Errorf("the release could be any of %s", strings.Join(found, ", "))
}
