// Package registry keeps releases of cluster stacks under their names: in a repository of an OCI
// registry, as the tools of today publish them, or in a plain directory. A release has the same
// digest in both. Nothing that is published is ever overwritten unasked, and nothing is taken whose
// digest is not the one it should have.
package registry

import (
	"context"
	"crypto/x509"
	"errors"
	"time"

	"github.com/polder-kaas/polder/stack"
	"github.com/polder-kaas/polder/stack/fetch"
	"github.com/polder-kaas/polder/stack/version"
)

// Errors that callers tell apart.
var (
	// ErrExists is a name that is taken by another content.
	ErrExists = errors.New("already published")
	// ErrNotFound is a release, or a repository, that is not there.
	ErrNotFound = errors.New("not found")
	// ErrMoved is a tag whose content is not the one that was asked for by its digest.
	ErrMoved = errors.New("the tag has moved")
	// ErrDigest is content that is not what its digest says.
	ErrDigest = errors.New("content does not have its digest")
	// ErrCredentials is a registry that wants other credentials, or any.
	ErrCredentials = errors.New("credentials refused")
	// ErrInvalid is content that is no valid release: asking for it again is no use.
	ErrInvalid = errors.New("not a sound release")
)

// Store keeps releases. Its methods may be called concurrently.
type Store interface {
	// List gives all releases for which only says true, sorted by line and version; nil means all.
	// What is there and cannot be taken for a release is a warning.
	List(ctx context.Context, only func(version.ReleaseName) bool) (Listing, error)
	// Pull reads a release. Of the reference it takes the tag and the digest: with both, the tag
	// must have that digest, or the error is ErrMoved.
	Pull(ctx context.Context, ref Reference) (*Pulled, error)
	// Publish writes a release under its name. The same content again is fine; another one is
	// ErrExists, unless the store was opened to overwrite.
	Publish(ctx context.Context, r *stack.Release) (Published, error)
}

// Listing is what a store has.
type Listing struct {
	Entries  []Entry
	Warnings []Warning
}

// Entry is one release of a listing.
type Entry struct {
	Release    version.ReleaseName
	Kubernetes string // v1.36.3, or 1.36 if the store does not say more
	Digest     string
}

// Pulled is a release with the digest of its manifest.
type Pulled struct {
	Release  *stack.Release
	Digest   string
	Manifest []byte // that has the digest; Verify takes it
}

// Published says where a release is now.
type Published struct {
	Reference Reference // with tag and digest
	Existed   bool      // it was there before, with the same content
}

// Options for opening a store. A directory takes only Overwrite.
type Options struct {
	Username string
	Password Secret
	Token    Secret // sent as it is, instead of a user and a password
	// DockerConfig is the path of a config.json with credentials, which is looked into if there are
	// no others. Programs it names as helpers are not run.
	DockerConfig string
	// DockerAuths is the content of a config.json, as Secrets of Kubernetes have it. It is used instead
	// of a user and a password, and must have credentials for the registry.
	DockerAuths Secret

	// PlainHTTP uses http. For a registry on this machine that is the default, unless there are Roots.
	PlainHTTP bool
	// Trusted are further hosts, or host:port, that may have private addresses: those the registry
	// redirects to, or its server of tokens. The host of the reference is trusted with its port.
	Trusted []string
	// Untrusted is for references that no user wrote, but a document from elsewhere: then their host
	// is trusted only if it is among Trusted.
	Untrusted bool
	Roots     *x509.CertPool // certificate authorities for the registry; nil means the system's

	Overwrite bool          // lets Publish replace a release by another of its name
	Timeout   time.Duration // of a whole listing, pull or publication; zero is 5 minutes
	Limits    fetch.Limits  // of one request
}

const defaultTimeout = 5 * time.Minute

// Open reads a reference and opens the store it names: oci://host/repository or the path of a
// directory, with or without a release. Nothing is connected to yet.
func Open(ctx context.Context, ref string, o Options) (Store, Reference, error) {
	r, err := ParseReference(ref)
	if err != nil {
		return nil, Reference{}, err
	}
	if r.Directory != "" {
		return &directory{reference: r, overwrite: o.Overwrite}, r, nil
	}
	s, err := openOCI(ctx, r, o)
	if err != nil {
		return nil, Reference{}, err
	}
	return s, r, nil
}
