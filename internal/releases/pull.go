package releases

import (
	"context"
	"errors"
	"fmt"

	"github.com/polder-kaas/polder/internal/reconcile/fairness"
	"github.com/polder-kaas/polder/stack"
	"github.com/polder-kaas/polder/stack/registry"
	"github.com/polder-kaas/polder/stack/version"
)

// Get reads a release from disk: the error is ErrMissing if it is not there, or is damaged. What is damaged is
// removed, so that Pull fetches it again.
func (l *Library) Get(ctx context.Context, name version.ReleaseName, digest string) (*stack.Release, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := checkDigest(digest); err != nil {
		return nil, err
	}
	files, err := l.disk.get(digest)
	if err != nil {
		return nil, fmt.Errorf("release %s with %s: %w", name, digest, err)
	}
	r, err := stack.Load(name.Tag(), files)
	if err != nil {
		return nil, fmt.Errorf("%s: %w: %w", digest, registry.ErrInvalid, err)
	}
	return r, nil
}

// Pull returns a release and its digest: from disk if the digest is known and it is there, else from the source,
// and then it is on disk too. Without a digest the source decides. With one, a source that has another content
// under the name by now is asked for the digest alone; if it does not have that any more, the error is
// registry.ErrMoved.
//
// Callers that want the same at the same time share one download, and only a few are made at once; whoever waits
// for that does so until its context ends. A namespace may make fewer still: a caller that is one too many for it
// waits a moment, and then gets fairness.ErrBusy. After an error nothing is left behind. What a namespace
// downloads in an hour is bounded, and nothing is downloaded if the disk is nearly full.
func (l *Library) Pull(ctx context.Context, s *Source, name version.ReleaseName,
	digest string) (*stack.Release, string, error) {
	if digest != "" {
		if err := checkDigest(digest); err != nil {
			return nil, "", err
		}
	}
	got, err := l.singleFlight.do(ctx, pullKey{source: s.fingerprint, tag: name.Tag(), digest: digest},
		func() (pullResult, error) {
			return l.pull(ctx, s, name, digest)
		})
	if err != nil {
		return nil, "", err
	}
	return got.release, got.digest, nil
}

func (l *Library) pull(ctx context.Context, s *Source, name version.ReleaseName, digest string) (pullResult, error) {
	if digest != "" {
		r, err := l.Get(ctx, name, digest)
		if err == nil {
			l.disk.touch(digest)
			return pullResult{r, digest}, nil
		}
		if !errors.Is(err, ErrMissing) {
			return pullResult{}, err
		}
	}
	if err := l.checkCanPull(s); err != nil {
		return pullResult{}, fmt.Errorf("pulling %s: %w", name, err)
	}
	done, err := l.pullLimiter.Acquire(ctx, s.namespace)
	if errors.Is(err, fairness.ErrTotalBusy) {
		err = fmt.Errorf("waiting for other downloads: %w", ctx.Err())
	}
	if err != nil {
		return pullResult{}, fmt.Errorf("pulling %s: %w", name, err)
	}
	defer done()
	p, err := s.store.Pull(ctx, registry.Reference{Tag: name.Tag(), Digest: digest})
	if digest != "" && (errors.Is(err, registry.ErrMoved) || errors.Is(err, registry.ErrNotFound)) {
		p, err = s.pullByDigest(ctx, name, digest, err)
	}
	if err != nil {
		return pullResult{}, s.sanitizeError(err)
	}
	if err := l.disk.put(p); err != nil {
		return pullResult{}, fmt.Errorf("keeping release %s: %w", name, err)
	}
	l.downloadQuota.add(s.namespace, bytesOnDisk(p))
	return pullResult{p.Release, p.Digest}, nil
}

// checkCanPull refuses a download that could not be kept, before it is made.
func (l *Library) checkCanPull(s *Source) error {
	if err := l.downloadQuota.check(s.namespace); err != nil {
		return err
	}
	return l.disk.checkSpace()
}

// pullByDigest pulls a content whose tag means another one by now, or nothing: registries forget a tag before
// they forget its content. If that is gone too, the error is the one that the tag gave.
func (s *Source) pullByDigest(ctx context.Context, name version.ReleaseName, digest string,
	said error) (*registry.Pulled, error) {
	p, err := s.store.Pull(ctx, registry.Reference{Digest: digest})
	if err != nil || p.Release.Name.Tag() != name.Tag() {
		return nil, said
	}
	return p, nil
}
