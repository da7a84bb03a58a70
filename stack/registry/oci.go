package registry

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2/content"
	orasregistry "oras.land/oras-go/v2/registry"
	"oras.land/oras-go/v2/registry/remote"
	"oras.land/oras-go/v2/registry/remote/auth"
	"oras.land/oras-go/v2/registry/remote/retry"

	"github.com/polder-kaas/polder/stack"
	"github.com/polder-kaas/polder/stack/archive"
	"github.com/polder-kaas/polder/stack/fetch"
)

// oci is a repository of a registry.
type oci struct {
	reference  Reference
	overwrite  bool
	timeout    time.Duration
	repository *remote.Repository
	explainer
}

var _ Store = (*oci)(nil)

func openOCI(ctx context.Context, at Reference, o Options) (*oci, error) {
	u := url.URL{Host: at.Host}
	host, port := u.Hostname(), u.Port()
	plain := o.PlainHTTP || fetch.IsLoopback(host) && o.Roots == nil
	if port == "" {
		port = "443"
		if plain {
			port = "80"
		}
	}
	credential, err := o.credential(ctx, at.Host)
	if err != nil {
		return nil, err
	}
	trusted := o.Trusted
	if !o.Untrusted { // only with the port that was named: its other ports were not
		trusted = append([]string{net.JoinHostPort(host, port)}, trusted...)
	}
	client := *fetch.New(fetch.Policy{Trusted: trusted, PlainHTTP: plain, Roots: o.Roots}, o.Limits).HTTP()
	client.Transport = &retry.Transport{Base: client.Transport, Policy: retryPolicy}
	s := &oci{
		reference: at, overwrite: o.Overwrite, timeout: o.Timeout,
		explainer: explainer{reference: at, credential: credential},
	}
	if s.timeout == 0 {
		s.timeout = defaultTimeout
	}
	s.repository = &remote.Repository{
		Reference: orasregistry.Reference{Registry: at.Host, Repository: at.Repository},
		PlainHTTP: plain,
		Client: &auth.Client{
			Client: &client,
			Header: http.Header{"User-Agent": {"polder"}},
			Cache:  auth.NewCache(),
			Credential: func(_ context.Context, asking string) (auth.Credential, error) {
				// Other hosts that the registry leads to get no credentials.
				if asking != s.repository.Reference.Host() {
					return auth.EmptyCredential, nil
				}
				return credential, nil
			},
		},
		ManifestMediaTypes: []string{ocispec.MediaTypeImageManifest},
		TagListPageSize:    1000,
		TagListMaxPages:    maxPages,
		MaxMetadataBytes:   maxManifest,
	}
	return s, nil
}

// retryPolicy retries a few times if the server says that it may be of use.
func retryPolicy() retry.Policy {
	return &retry.GenericPolicy{
		Retryable: func(resp *http.Response, err error) (bool, error) {
			return err == nil && (resp.StatusCode == http.StatusTooManyRequests ||
				resp.StatusCode >= http.StatusInternalServerError), nil
		},
		Backoff:  retry.DefaultBackoff,
		MinWait:  100 * time.Millisecond,
		MaxWait:  2 * time.Second,
		MaxRetry: 2,
	}
}

// Pull resolves a tag first, and then takes only what has that digest.
func (s *oci) Pull(ctx context.Context, ref Reference) (*Pulled, error) {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	ref.Directory, ref.Host, ref.Repository = "", s.reference.Host, s.reference.Repository
	p, err := s.pull(ctx, ref)
	if err != nil {
		return nil, fmt.Errorf("pulling %s: %w", ref, err)
	}
	return p, nil
}

func (s *oci) pull(ctx context.Context, ref Reference) (*Pulled, error) {
	digest, err := s.resolve(ctx, ref)
	if err != nil {
		return nil, err
	}
	b, _, err := s.readManifest(ctx, digest)
	if err != nil {
		return nil, err
	}
	m, err := parseManifest(b)
	if err != nil {
		return nil, invalidReleaseError{err}
	}
	files := archive.Tree{}
	for _, l := range m.Layers {
		name := l.Annotations[ocispec.AnnotationTitle]
		if files[name], err = s.readBlob(ctx, l); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	name := ref.Tag
	if name == "" {
		if name, err = releaseNameOf(files); err != nil {
			return nil, invalidReleaseError{err}
		}
	}
	r, err := stack.Load(name, files)
	if err != nil {
		return nil, invalidReleaseError{err}
	}
	return &Pulled{Release: r, Digest: digest, Manifest: b}, nil
}

// resolve gives the digest that a reference means.
func (s *oci) resolve(ctx context.Context, ref Reference) (string, error) {
	if ref.Tag == "" {
		if ref.Digest == "" {
			return "", errNoRelease
		}
		return ref.Digest, nil
	}
	d, err := s.repository.Resolve(ctx, ref.Tag)
	if err != nil {
		return "", s.explain(err)
	}
	got := d.Digest.String()
	if ref.Digest != "" && got != ref.Digest {
		return "", movedError(ref.Tag, got)
	}
	return got, nil
}

// readManifest reads a manifest by a tag or a digest, and returns it with the digest it was checked to have.
func (s *oci) readManifest(ctx context.Context, reference string) ([]byte, string, error) {
	d, body, err := s.repository.FetchReference(ctx, reference)
	if err != nil {
		return nil, "", s.explain(err)
	}
	defer body.Close() //nolint:errcheck // read only
	if d.MediaType != ocispec.MediaTypeImageManifest {
		return nil, "", invalidReleaseError{fmt.Errorf("this is no image manifest, but %.80q", d.MediaType)}
	}
	if !digestPattern.MatchString(d.Digest.String()) {
		return nil, "", fmt.Errorf("%.80q is no digest of sha256", d.Digest)
	}
	if d.Size > maxManifest {
		return nil, "", invalidReleaseError{
			fmt.Errorf("the manifest has %d bytes; at most %d are taken", d.Size, maxManifest),
		}
	}
	b, err := s.readVerified(body, d)
	if err != nil {
		return nil, "", fmt.Errorf("manifest: %w", err)
	}
	return b, d.Digest.String(), nil
}

// readBlob reads what a checked descriptor describes.
func (s *oci) readBlob(ctx context.Context, d ocispec.Descriptor) ([]byte, error) {
	if !digestPattern.MatchString(d.Digest.String()) { // it becomes part of an address
		return nil, fmt.Errorf("%.80q is no digest of sha256", d.Digest)
	}
	body, err := s.repository.Blobs().Fetch(ctx, d)
	if err != nil {
		return nil, s.explain(err)
	}
	defer body.Close() //nolint:errcheck // read only
	return s.readVerified(body, d)
}

// readVerified reads what a descriptor describes: so many bytes, of that digest. The size must have
// been checked, as the memory for it is taken at once.
func (s *oci) readVerified(r io.Reader, d ocispec.Descriptor) ([]byte, error) {
	v := content.NewVerifyReader(r, d)
	b := make([]byte, d.Size)
	if _, err := io.ReadFull(v, b); err != nil {
		return nil, s.explain(err)
	}
	err := v.Verify()
	if errors.Is(err, content.ErrMismatchedDigest) || errors.Is(err, content.ErrTrailingData) {
		return nil, fmt.Errorf("%w: %s", ErrDigest, d.Digest)
	}
	return b, err
}

var errNoRelease = errors.New(
	"the reference names no release; write its tag too, polder stack list shows which there are",
)

func movedError(tag, now string) error {
	return fmt.Errorf("%w: %s has another content now, %s; if that is right, name its digest", ErrMoved, tag, now)
}
