package registry

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"

	"github.com/polder-kaas/polder/stack"
	"github.com/polder-kaas/polder/stack/archive"
	"github.com/polder-kaas/polder/stack/version"
)

// directory is a store with a subdirectory for each release, of the release's name.
type directory struct {
	reference Reference
	overwrite bool
}

var _ Store = (*directory)(nil)

// LoadDir reads the directory of one release, whatever it is called: the name of the release is in
// the name of its class's archive.
func LoadDir(dir string) (*stack.Release, error) {
	files, _, err := readFiles(dir)
	if err != nil {
		return nil, err
	}
	name, err := releaseNameOf(files)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", dir, err)
	}
	return stack.Load(name, files)
}

// manifestFile is the manifest that a release had in its registry, where that is not the one we would write: its
// digest is the release's, and everybody else knows the release by it.
const manifestFile = ".manifest.json"

// readFiles reads the files of a release. Directories beside them are no part of it: people unpack its archives there.
func readFiles(dir string) (files archive.Tree, manifest []byte, err error) {
	files, err = archive.ReadDir(dir, releaseLimits(), func(_ string, isDir bool) bool { return isDir })
	if err != nil {
		return nil, nil, err
	}
	manifest = files[manifestFile]
	delete(files, manifestFile)
	return files, manifest, nil
}

// WriteDir writes a release that was pulled into a directory of releases. It keeps its digest.
func WriteDir(dir string, pulled *Pulled) (Published, error) {
	d := &directory{reference: Reference{Directory: dir}}
	tag := pulled.Release.Name.Tag()
	p, err := d.publish(tag, pulled.Release, pulled.Manifest)
	if err != nil {
		return Published{}, fmt.Errorf("writing %s: %w", d.reference.WithTag(tag), err)
	}
	return p, nil
}

// List reads every release whole, as its digest is over all of it.
func (d *directory) List(ctx context.Context, only func(version.ReleaseName) bool) (Listing, error) {
	dirs, err := os.ReadDir(d.reference.Directory)
	if errors.Is(err, fs.ErrNotExist) {
		return Listing{}, fmt.Errorf("listing %s: there is no such directory: %w", d.reference.Directory, ErrNotFound)
	}
	if err != nil {
		return Listing{}, fmt.Errorf("listing releases: %w", err)
	}
	var names []string
	var l Listing
	for _, e := range dirs {
		switch {
		case strings.HasPrefix(e.Name(), "."): // hidden ones are no releases, or are half written
		case e.IsDir():
			names = append(names, e.Name())
		default:
			l.Warnings = append(l.Warnings, Warning{Kind: NotDirectory, Name: e.Name()})
		}
	}
	found, warnings := parseReleases(names, directoryItem, only)
	l.Warnings = append(l.Warnings, warnings...)
	for _, e := range found {
		if err := ctx.Err(); err != nil {
			return Listing{}, fmt.Errorf("listing %s: %w", d.reference.Directory, err)
		}
		r, a, err := d.readRelease(e.Release.Tag())
		if err != nil {
			w := Warning{Kind: Unreadable, Item: directoryItem, Name: e.Release.Tag(), Release: e.Release, Err: err}
			l.Warnings = append(l.Warnings, w)
			continue
		}
		e.Kubernetes, e.Digest = r.Metadata.KubernetesVersion().String(), a.digest()
		l.Entries = append(l.Entries, e)
	}
	return l, nil
}

// Pull reads a release; without a tag, it is looked for by its digest.
func (d *directory) Pull(ctx context.Context, ref Reference) (*Pulled, error) {
	ref.Directory, ref.Host, ref.Repository = d.reference.Directory, "", ""
	p, err := d.pull(ctx, ref)
	if err != nil {
		return nil, fmt.Errorf("pulling %s: %w", ref, err)
	}
	return p, nil
}

func (d *directory) pull(ctx context.Context, ref Reference) (*Pulled, error) {
	tag := ref.Tag
	if tag == "" {
		if ref.Digest == "" {
			return nil, errNoRelease
		}
		l, err := d.List(ctx, nil)
		if err != nil {
			return nil, err
		}
		for _, e := range l.Entries {
			if e.Digest == ref.Digest {
				tag = e.Release.Tag()
			}
		}
		if tag == "" {
			return nil, fmt.Errorf("it is not in %s: %w", d.reference.Directory, ErrNotFound)
		}
	}
	r, a, err := d.readRelease(tag)
	if err != nil {
		return nil, err
	}
	if ref.Digest != "" && ref.Digest != a.digest() {
		return nil, movedError(tag, a.digest())
	}
	return &Pulled{Release: r, Digest: a.digest(), Manifest: a.manifest}, nil
}

// readRelease loads a release, and packs the artifact it would be in a registry, for its digest.
func (d *directory) readRelease(tag string) (*stack.Release, artifact, error) {
	dir := filepath.Join(d.reference.Directory, tag)
	info, err := os.Lstat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, artifact{}, fmt.Errorf("it is not in %s: %w", d.reference.Directory, ErrNotFound)
	case err != nil:
		return nil, artifact{}, err
	case !info.IsDir():
		return nil, artifact{}, fmt.Errorf("%s is no directory", dir)
	}
	files, manifest, err := readFiles(dir)
	if err != nil {
		return nil, artifact{}, err
	}
	r, err := stack.Load(tag, files)
	if err != nil {
		return nil, artifact{}, invalidReleaseError{err}
	}
	a, err := packArtifact(r)
	if err != nil {
		return nil, artifact{}, invalidReleaseError{err}
	}
	return r, a.withManifest(manifest, files), nil
}

// Publish writes a directory, all of it or nothing.
func (d *directory) Publish(_ context.Context, r *stack.Release) (Published, error) {
	tag := r.Name.Tag()
	p, err := d.publish(tag, r, nil)
	if err != nil {
		return Published{}, fmt.Errorf("publishing %s: %w", d.reference.WithTag(tag), err)
	}
	return p, nil
}

// publish writes a release, with the manifest it had elsewhere; nil means the one that we write.
func (d *directory) publish(tag string, r *stack.Release, manifest []byte) (Published, error) {
	a, err := packArtifact(r)
	if err != nil {
		return Published{}, err
	}
	files := r.Files
	if own := a.digest(); manifest != nil {
		if a = a.withManifest(manifest, r.Files); a.digest() != own {
			files = maps.Clone(r.Files)
			files[manifestFile] = manifest
		}
	}
	if err := d.reference.checkMatches(tag, a.digest()); err != nil {
		return Published{}, err
	}
	p := Published{Reference: d.reference.WithTag(tag)}
	p.Reference.Digest = a.digest()
	// before reading what is there, so that whoever is first wins
	writeErr := archive.WriteDir(filepath.Join(d.reference.Directory, tag), files)
	if writeErr == nil {
		return p, nil
	}
	// WriteDir also fails if the release is there: then its content decides what that means.
	old, existing, err := d.readRelease(tag)
	switch {
	case errors.Is(err, ErrNotFound):
		return Published{}, writeErr
	case err == nil && maps.EqualFunc(old.Files, r.Files, bytes.Equal): // perhaps with the manifest of another tool
		p.Existed, p.Reference.Digest = true, existing.digest()
		return p, nil
	case d.overwrite:
		return p, d.replace(tag, files)
	case err != nil:
		return Published{}, fmt.Errorf("%w: %s is there, and cannot be read: %w", ErrExists, tag, err)
	}
	return Published{}, existsError(tag, existing.digest())
}

// replace moves the old release aside, and back if the new one cannot be written.
func (d *directory) replace(tag string, files archive.Tree) (err error) {
	aside, err := os.MkdirTemp(d.reference.Directory, "."+tag+"-old-")
	if err != nil {
		return err
	}
	dir, old := filepath.Join(d.reference.Directory, tag), filepath.Join(aside, tag)
	if err := os.Rename(dir, old); err != nil {
		return errors.Join(err, os.Remove(aside))
	}
	if err := archive.WriteDir(dir, files); err != nil {
		return errors.Join(err, os.Rename(old, dir), os.Remove(aside))
	}
	return os.RemoveAll(aside)
}
