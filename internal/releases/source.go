package releases

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	csv1 "github.com/polder-kaas/polder/api/clusterstack/v1alpha1"
	"github.com/polder-kaas/polder/internal/reconcile/fairness"
	"github.com/polder-kaas/polder/stack/fetch"
	"github.com/polder-kaas/polder/stack/registry"
	"github.com/polder-kaas/polder/stack/version"
)

// Source is a store of releases, opened with its credentials.
type Source struct {
	store       registry.Store
	reference   registry.Reference
	displayName string
	fingerprint fingerprint
	namespace   string // the namespace that named it; empty for the plane's own
	listLimiter *fairness.Limiter
}

// fingerprint is the same for sources that are opened with the same words, secrets included, and reveals nothing
// of them.
type fingerprint [sha256.Size]byte

// String names the source for people, without secrets.
func (s *Source) String() string { return s.displayName }

// GoString is String, so that %#v prints no credentials.
func (s *Source) GoString() string { return s.displayName }

// List lists releases as a registry.Store does. If the namespace lists too many sources at once, the error is
// fairness.ErrBusy.
func (s *Source) List(ctx context.Context, only func(version.ReleaseName) bool) (registry.Listing, error) {
	done, err := s.listLimiter.Acquire(ctx, s.namespace)
	if err != nil {
		return registry.Listing{}, err
	}
	defer done()
	l, err := s.store.List(ctx, only)
	return l, s.sanitizeError(err)
}

// sanitizeError returns an error as tenants may read it: without the path of a directory, and with whom to ask if
// an address is not allowed.
func (s *Source) sanitizeError(err error) error {
	if s.namespace != "" && errors.Is(err, fetch.ErrRefused) {
		return &sourceError{fmt.Sprintf("%v; if it is meant, the plane's operator can trust it with --stack-trust", err), err}
	}
	path := s.reference.Directory
	if err == nil || len(path) < 2 || !strings.Contains(err.Error(), path) {
		return err
	}
	return &sourceError{strings.ReplaceAll(err.Error(), path, s.displayName), err}
}

// Source opens the source of a ClusterStack, or the default. It reads its Secret and connects to nothing else.
// The error is ErrNoSource, ErrInvalidSource, or one that may pass.
func (l *Library) Source(ctx context.Context, cs *csv1.ClusterStack) (*Source, error) {
	source := cs.Spec.Source
	switch {
	case source == nil && l.config.Default == nil:
		return nil, &sourceError{
			"spec.source is missing, and this plane has no default; name a repository (oci) or a directory", ErrNoSource,
		}
	case source == nil:
		s, err := l.openStore(ctx, l.config.Default.Reference, l.config.Default.Options, "default")
		if err != nil {
			return nil, fmt.Errorf("opening the plane's default source: %w", err)
		}
		if s.reference.Directory != "" {
			s.displayName = "the plane's default source" // tenants need not know where it is
		}
		return s, nil
	case (source.OCI == "") == (source.Directory == ""):
		return nil, invalidSourceErrorf("spec.source must have one of oci and directory")
	case source.Directory != "":
		return l.openDirectory(ctx, source)
	}
	return l.openOCI(ctx, cs.Namespace, source)
}

func (l *Library) openDirectory(ctx context.Context, source *csv1.Source) (*Source, error) {
	path, ok := l.config.Directories[source.Directory]
	switch {
	case !ok && len(l.config.Directories) == 0:
		return nil, invalidSourceErrorf(
			"spec.source.directory: this plane has no directories of releases; name a repository (oci), or ask the plane's operator for one",
		)
	case !ok:
		return nil, invalidSourceErrorf("spec.source.directory: there is no directory %q on this plane; there are %s",
			source.Directory, strings.Join(slices.Sorted(maps.Keys(l.config.Directories)), ", "))
	case source.SecretRef != nil:
		return nil, invalidSourceErrorf("spec.source.secretRef: a directory takes no credentials; remove it")
	}
	s, err := l.openStore(ctx, path, registry.Options{}, "directory", source.Directory)
	if err != nil {
		return nil, fmt.Errorf("opening directory %s: %w", source.Directory, err)
	}
	s.displayName = "directory " + source.Directory // tenants need not know where it is
	return s, nil
}

// openOCI opens a repository that a tenant named: it does not connect to private addresses, unless the operator
// trusts them.
func (l *Library) openOCI(ctx context.Context, namespace string, source *csv1.Source) (*Source, error) {
	at, err := parseStore(source.OCI)
	if err == nil && at.Host == "" { // a path of this machine is not the tenant's to name
		err = fmt.Errorf("%.80q is no repository; write oci://host/repository", source.OCI)
	}
	if err != nil {
		return nil, invalidSourceErrorf("spec.source.oci: %v", err)
	}
	o, words := registry.Options{}, []string{"oci", at.Location()}
	name := ""
	if source.SecretRef != nil {
		name = source.SecretRef.Name
		secret, err := l.readSecret(ctx, namespace, name)
		if err != nil {
			return nil, err
		}
		if o, err = optionsFromSecret(secret); err != nil {
			return nil, invalidSourceErrorf("spec.source.secretRef: Secret %q %v", name, err)
		}
		// In the fingerprint too: who has other credentials must not share a download.
		for _, key := range slices.Sorted(maps.Keys(secret.Data)) {
			words = append(words, key, string(secret.Data[key]))
		}
	}
	o.Untrusted, o.Trusted = true, l.config.Trusted
	s, err := l.openStore(ctx, source.OCI, o, words...)
	if err != nil { // the reference was parsed already, so the content of the Secret is wrong
		return nil, invalidSourceErrorf("spec.source.secretRef: Secret %q: %v", name, err)
	}
	s.namespace = namespace
	return s, nil
}

func (l *Library) openStore(ctx context.Context, ref string, o registry.Options, words ...string) (*Source, error) {
	store, at, err := registry.Open(ctx, ref, o)
	if err != nil {
		return nil, err
	}
	h := hmac.New(sha256.New, l.fingerprintKey)
	for _, w := range words {
		// With its length, so that other words cannot be joined to the same text.
		fmt.Fprintf(h, "%d:%s", len(w), w)
	}
	return &Source{store: store, reference: at, displayName: at.Location(), fingerprint: fingerprint(h.Sum(nil)),
		listLimiter: &l.listLimiter}, nil
}

// sourceError is a sentence for people, with the error that callers tell it apart by.
type sourceError struct {
	text string
	kind error
}

func (r *sourceError) Error() string { return r.text }

// Unwrap returns the kind.
func (r *sourceError) Unwrap() error { return r.kind }

func invalidSourceErrorf(format string, args ...any) error {
	return &sourceError{fmt.Sprintf(format, args...), ErrInvalidSource}
}
