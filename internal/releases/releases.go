// Package releases is where the operator gets releases of stacks from: out of the source of a
// ClusterStack, checked by their digests, and kept on disk. What is damaged there is found out and
// fetched again.
package releases

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"regexp"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/polder-kaas/polder/internal/reconcile/fairness"
	"github.com/polder-kaas/polder/stack/registry"
)

// Errors that callers tell apart, besides those of package registry and fetch.ErrRefused.
var (
	// ErrMissing is a release that is not on disk, or was damaged there and is removed now.
	ErrMissing = errors.New("the release is not on disk")
	// ErrNoSource is a ClusterStack without a source on a plane without a default.
	ErrNoSource = errors.New("there is no source")
	// ErrInvalidSource is a source, or a Secret of one, that cannot be used until somebody changes it.
	ErrInvalidSource = errors.New("the source cannot be used")
)

// maxPerNamespace is how many sources one namespace may have listed, and how many downloads made, at once.
const maxPerNamespace = 2

// Config of a library.
type Config struct {
	Dir     string            // for releases, of this process alone; it is made if need be
	Default *ConfiguredSource // for ClusterStacks that name no source; nil: there is none
	// Directories are places for releases on this machine, by the name that ClusterStacks use.
	Directories map[string]string
	// Trusted are hosts, or host:port, of registries that ClusterStacks may name although they have
	// private addresses. One on this machine is spoken to by plain http, unless its Secret has a ca.crt.
	Trusted []string
	Secrets client.Reader // is asked for one by its name; it should have no cache
}

// ConfiguredSource is a source that the plane's operator named, and is trusted for that.
type ConfiguredSource struct {
	Reference string // oci://host/repository, or the path of a directory
	Options   registry.Options
}

// maxDownloads is how many are made at once: each may take some hundred megabytes of memory.
const maxDownloads = 4

// Library has releases. Its methods may be called concurrently. The releases it returns may be
// shared with other callers, so nobody may change them.
type Library struct {
	config         Config
	disk           *disk
	singleFlight   pullGroup
	listLimiter    fairness.Limiter // to list a source
	pullLimiter    fairness.Limiter // to download
	downloadSlots  chan struct{}    // one for each download
	downloadQuota  namespaceQuota   // what namespaces have downloaded
	fingerprintKey []byte           // for fingerprints of sources
}

// New makes a library. Nothing is connected to yet.
func New(c Config) (*Library, error) {
	if c.Dir == "" {
		return nil, errors.New("releases have no directory to be kept in; name one")
	}
	if c.Secrets == nil {
		return nil, errors.New("releases have nobody to read Secrets from")
	}
	if c.Default != nil {
		if _, err := parseStore(c.Default.Reference); err != nil {
			return nil, fmt.Errorf("the default source of releases: %w", err)
		}
	}
	for name, path := range c.Directories {
		r, err := parseStore(path)
		if err == nil && r.Directory == "" {
			err = fmt.Errorf("%s is no directory", path)
		}
		if err != nil {
			return nil, fmt.Errorf("directory %q of releases: %w", name, err)
		}
	}
	if err := os.MkdirAll(c.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("making the directory of releases: %w", err)
	}
	l := &Library{config: c, disk: newDisk(c.Dir), downloadSlots: make(chan struct{}, maxDownloads), listLimiter: fairness.Limiter{PerNamespace: maxPerNamespace}, pullLimiter: fairness.Limiter{PerNamespace: maxPerNamespace}, downloadQuota: namespaceQuota{bytesPerHour: maxBytesPerHour}, fingerprintKey: make([]byte, 32)}
	_, err := rand.Read(l.fingerprintKey)
	return l, err
}

// parseStore reads a reference to all releases of a place.
func parseStore(ref string) (registry.Reference, error) {
	r, err := registry.ParseReference(ref)
	if err != nil {
		return r, err
	}
	if r.Tag != "" || r.Digest != "" {
		return r, fmt.Errorf("%s is one release; name the place of all, %s", r, r.Location())
	}
	return r, nil
}

var digestPattern = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)

// checkDigest keeps what becomes the name of a directory from being anything else.
func checkDigest(digest string) error {
	if !digestPattern.MatchString(digest) {
		return fmt.Errorf("%.80q is no digest: it is sha256: and 64 digits of 0-9 and a-f", digest)
	}
	return nil
}
