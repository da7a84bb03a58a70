// Package releases gets releases of stacks for the operator: from the source of a ClusterStack, checked by their
// digests, and kept on disk. What is damaged there is detected and fetched again.
package releases

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"regexp"

	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/polder-kaas/polder/internal/reconcile/fairness"
	"github.com/polder-kaas/polder/stack/registry"
)

// Errors that callers tell apart, besides those of package registry and fetch.ErrRefused.
var (
	// ErrMissing means that a release is not on disk, or was damaged there and has been removed.
	ErrMissing = errors.New("the release is not on disk")
	// ErrNoSource means that a ClusterStack names no source, and the plane has no default.
	ErrNoSource = errors.New("there is no source")
	// ErrInvalidSource means that a source, or its Secret, cannot be used until somebody changes it.
	ErrInvalidSource = errors.New("the source cannot be used")
)

// maxPerNamespace is how many sources are listed, and how many downloads are made, at once for one namespace.
const maxPerNamespace = 2

// Config configures a Library.
type Config struct {
	Dir     string            // for releases, of this process alone; created if need be
	Default *ConfiguredSource // for ClusterStacks that name no source; nil if there is none
	// Directories are directories with releases on this machine, by the name that ClusterStacks use.
	Directories map[string]string
	// Trusted are hosts, or host:port, of registries that ClusterStacks may name although they have private
	// addresses. One on this machine is spoken to by plain HTTP, unless its Secret has a ca.crt.
	Trusted []string
	Secrets client.Reader // reads single Secrets by name; it should have no cache
}

// ConfiguredSource is a source that the plane's operator named, and that is trusted for that reason.
type ConfiguredSource struct {
	Reference string // oci://host/repository, or the path of a directory
	Options   registry.Options
}

// maxDownloads is how many downloads are made at once: each may take some hundred megabytes of memory.
const maxDownloads = 4

// Library gives releases from sources and from disk. Its methods may be called concurrently. The releases it
// returns may be shared with other callers, so nobody may change them.
type Library struct {
	config         Config
	disk           *disk
	singleFlight   pullGroup
	listLimiter    fairness.Limiter // for lists of sources
	pullLimiter    fairness.Limiter // for downloads, of each namespace and of all together
	downloadQuota  namespaceQuota   // what namespaces have downloaded in the last hour
	fingerprintKey []byte           // for fingerprints of sources; it is new in each process
}

// New makes a library. It connects to nothing.
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
	l := &Library{
		config:         c,
		disk:           newDisk(c.Dir),
		listLimiter:    fairness.Limiter{PerNamespace: maxPerNamespace},
		pullLimiter:    fairness.Limiter{PerNamespace: maxPerNamespace, Total: maxDownloads},
		downloadQuota:  namespaceQuota{bytesPerHour: maxBytesPerHour, clock: clock.RealClock{}},
		fingerprintKey: make([]byte, 32),
	}
	_, err := rand.Read(l.fingerprintKey)
	return l, err
}

// parseStore reads a reference to all releases of a repository or directory.
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

// checkDigest refuses what is no digest: it becomes the name of a directory.
func checkDigest(digest string) error {
	if !digestPattern.MatchString(digest) {
		return fmt.Errorf("%.80q is no digest: it is sha256: and 64 digits of 0-9 and a-f", digest)
	}
	return nil
}
