package registry

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/polder-kaas/polder/stack"
	"github.com/polder-kaas/polder/stack/archive"
)

// Types of the artifact: the one that is written, and the other that is read too.
const (
	artifactType     = "application/vnd.scs.cluster-stacks.v1"
	nextArtifactType = "application/vnd.clusterstack.release"
)

// Annotations of the manifest.
const (
	annotationKubernetes = "kubernetesVersion"
	annotationHash       = "hash"
)

// Limits of an artifact.
const (
	maxFiles    = 64
	maxManifest = 4 << 20
)

// releaseLimits bound the directory of a release by what fits into an artifact.
func releaseLimits() archive.Limits {
	most := archive.DefaultLimits.Packed
	return archive.Limits{
		Packed: most, Total: most, File: most, Entries: maxFiles + 1, Ratio: archive.DefaultLimits.Ratio, // with its manifest
	}
}

// artifact is a release as a registry has it: a manifest and a layer per file.
type artifact struct {
	manifest   []byte
	descriptor ocispec.Descriptor // of the manifest
	layers     []ocispec.Descriptor
	blobs      [][]byte // of the layers
}

// withManifest is the artifact with another manifest, if that describes just these files.
func (a artifact) withManifest(manifest []byte, files archive.Tree) artifact {
	sum := digest.FromBytes(manifest)
	if len(manifest) == 0 || Verify(sum.String(), manifest, files) != nil {
		return a
	}
	a.manifest, a.descriptor.Digest, a.descriptor.Size = manifest, sum, int64(len(manifest))
	return a
}

func (a artifact) digest() string { return a.descriptor.Digest.String() }

// packArtifact makes the artifact of a release. The same release gives the same bytes: its time is the epoch,
// where other tools write the time of publishing.
func packArtifact(r *stack.Release) (artifact, error) {
	if len(r.Files) > maxFiles {
		return artifact{}, fmt.Errorf("the release has %d files; at most %d are taken", len(r.Files), maxFiles)
	}
	if n := r.Files.Size(); n > archive.DefaultLimits.Packed {
		return artifact{}, fmt.Errorf("the release has %d bytes; at most %d are taken", n, archive.DefaultLimits.Packed)
	}
	var a artifact
	seen := fileNames{}
	for _, name := range r.Files.Names() {
		if err := seen.add(name); err != nil {
			return artifact{}, fmt.Errorf("file %w", err)
		}
		b := r.Files[name]
		a.blobs = append(a.blobs, b)
		a.layers = append(a.layers, ocispec.Descriptor{
			MediaType: mediaType(name), Digest: digest.FromBytes(b), Size: int64(len(b)),
			Annotations: map[string]string{ocispec.AnnotationTitle: name},
		})
	}
	annotations, err := manifestAnnotations(r)
	if err != nil {
		return artifact{}, err
	}
	a.manifest, err = json.Marshal(ocispec.Manifest{
		Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: ocispec.MediaTypeImageManifest, ArtifactType: artifactType,
		Config: ocispec.DescriptorEmptyJSON, Layers: a.layers, Annotations: annotations,
	})
	if err != nil {
		return artifact{}, fmt.Errorf("writing the manifest: %w", err)
	}
	a.descriptor = ocispec.Descriptor{
		MediaType: ocispec.MediaTypeImageManifest, ArtifactType: artifactType, Digest: digest.FromBytes(a.manifest),
		Size: int64(len(a.manifest)),
	}
	return a, nil
}

func manifestAnnotations(r *stack.Release) (map[string]string, error) {
	out := map[string]string{
		annotationKubernetes:      r.Metadata.Versions.Kubernetes,
		ocispec.AnnotationCreated: "1970-01-01T00:00:00Z",
	}
	b, ok := r.Files["hashes.json"]
	if !ok {
		return out, nil
	}
	h, err := stack.ParseHashes(b)
	if err != nil {
		return nil, err
	}
	if short := h.ShortHash(); short != "" {
		out[annotationHash] = short
	}
	return out, nil
}

// mediaType is the type that the tools of today give a file. They have none for files they do not know,
// and the library they push with makes it that of a layer; so do we.
func mediaType(name string) string {
	switch name {
	case "clusteraddon.yaml":
		return "application/vnd.scs.cluster-addon.config.layer.v1+yaml"
	case "metadata.yaml":
		return "application/vnd.scs.metadata.layer.v1+yaml"
	case "node-images.yaml":
		return "application/vnd.scs.node-image.config.layer.v1+yaml"
	case "hashes.json":
		return "application/vnd.scs.hashes.layer.v1+yaml"
	}
	packed := strings.HasSuffix(name, ".tgz")
	switch {
	case packed && strings.Contains(name, "cluster-addon"):
		return "application/vnd.scs.cluster-addon.layer.v1.tar+gzip"
	case packed && strings.Contains(name, "cluster-class"):
		return "application/vnd.scs.cluster-class.v1.tar+gzip"
	case packed && strings.Contains(name, "node-image"):
		return "application/vnd.scs.node-image.layer.v1.tar+gzip"
	}
	return ocispec.MediaTypeImageLayer
}

// fileNamePattern matches names of files in no directory that are valid on every system.
var fileNamePattern = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.+-]{0,254}$`)

// fileNames are the names of files so far, in lower case: names that differ only in case are one file on some
// systems.
type fileNames map[string]bool

func (n fileNames) add(name string) error {
	if name == "" {
		return errors.New("has no name")
	}
	if !fileNamePattern.MatchString(name) {
		return fmt.Errorf("%.80q is no plain name of a file; a release is flat, and its names are of letters, digits, dots, dashes, plus and underscores", name)
	}
	low := strings.ToLower(name)
	if n[low] {
		return fmt.Errorf("%q is there twice", name)
	}
	n[low] = true
	return nil
}
