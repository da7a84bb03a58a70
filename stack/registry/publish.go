package registry

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/polder-kaas/polder/stack"
)

// Publish sends the files first, and the manifest with the tag last: if the connection is cut, there
// is no tag.
func (s *oci) Publish(ctx context.Context, r *stack.Release) (Published, error) {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	tag := r.Name.Tag()
	p, err := s.publish(ctx, tag, r)
	if err != nil {
		return Published{}, fmt.Errorf("publishing %s: %w", s.reference.WithTag(tag), err)
	}
	return p, nil
}

func (s *oci) publish(ctx context.Context, tag string, r *stack.Release) (Published, error) {
	a, err := packArtifact(r)
	if err != nil {
		return Published{}, err
	}
	if err := s.reference.checkMatches(tag, a.digest()); err != nil {
		return Published{}, err
	}
	p := Published{Reference: s.reference.WithTag(tag)}
	p.Reference.Digest = a.digest()
	if p.Existed, err = s.isPublished(ctx, tag, a.digest()); err != nil || p.Existed {
		return p, err
	}
	if err := s.pushBlob(ctx, ocispec.DescriptorEmptyJSON, ocispec.DescriptorEmptyJSON.Data); err != nil {
		return Published{}, fmt.Errorf("config: %w", err)
	}
	for i, l := range a.layers {
		if err := s.pushBlob(ctx, l, a.blobs[i]); err != nil {
			return Published{}, fmt.Errorf("%s: %w", l.Annotations[ocispec.AnnotationTitle], err)
		}
	}
	return p, s.pushManifest(ctx, tag, a)
}

// isPublished says whether a tag has this content; false means that there is no such tag. Another content
// is ErrExists, or false if it may be overwritten.
func (s *oci) isPublished(ctx context.Context, tag, digest string) (bool, error) {
	d, err := s.repository.Resolve(ctx, tag)
	if err != nil {
		if err = s.explain(err); errors.Is(err, ErrNotFound) {
			return false, nil
		}
		return false, err
	}
	switch {
	case d.Digest.String() == digest:
		return true, nil
	case s.overwrite:
		return false, nil
	}
	return false, existsError(tag, d.Digest.String())
}

func existsError(tag, digest string) error {
	return fmt.Errorf("%w: %s is there with another content, %s; publish it as a new version", ErrExists, tag, digest)
}

func (s *oci) pushBlob(ctx context.Context, d ocispec.Descriptor, b []byte) error {
	there, err := s.repository.Blobs().Exists(ctx, d)
	if err != nil || there {
		return s.explain(err)
	}
	return s.explain(s.repository.Blobs().Push(ctx, d, bytes.NewReader(b)))
}

// pushManifest looks before and after: a registry has no way to say that a tag must be new, so
// another's publication meanwhile can only be found out.
func (s *oci) pushManifest(ctx context.Context, tag string, a artifact) error {
	if there, err := s.isPublished(ctx, tag, a.digest()); err != nil || there {
		return err
	}
	if err := s.repository.PushReference(ctx, a.descriptor, bytes.NewReader(a.manifest), tag); err != nil {
		return fmt.Errorf("manifest: %w", s.explain(err))
	}
	d, err := s.repository.Resolve(ctx, tag)
	if err != nil {
		return fmt.Errorf("looking at what was published: %w", s.explain(err))
	}
	if d.Digest != a.descriptor.Digest {
		return fmt.Errorf("%w: somebody else published %s at the same time, with another content, %s; publish yours as a new version", ErrExists, tag, d.Digest)
	}
	return nil
}
