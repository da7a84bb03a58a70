package dependency

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"path"
	"strings"

	"github.com/polder-kaas/polder/stack/archive"
	"github.com/polder-kaas/polder/stack/fetch"
	"github.com/polder-kaas/polder/stack/registry"
)

// Fetcher gets charts from where stacks say they are: Helm repositories, OCI registries, and
// directories of the stack itself. It remembers what repositories list, or why they do not: it is
// for one command, and not for several goroutines.
type Fetcher struct {
	Client   *fetch.Client // nil: nothing is fetched, only the cache is looked into
	Registry registry.Options
	Cache    Cache
	indexes  map[string]indexResult
}

// indexResult is what a Helm repository answered.
type indexResult struct {
	index index
	err   error
}

var errNotCached = errors.New("it is not at hand; run polder stack lock, which fetches it")

// listVersions gives all versions that there are of a chart.
func (f *Fetcher) listVersions(ctx context.Context, files archive.Tree, dir string, n Requirement) ([]string, error) {
	switch {
	case n.isLocalPath():
		c, err := readLocalChart(files, dir, n.Name, n.Repository)
		return []string{c.Version}, err
	case f.Client == nil:
		return nil, errNotCached
	case strings.HasPrefix(n.Repository, ociScheme):
		c, err := registry.OpenCharts(n.Repository, f.Registry)
		if err != nil {
			return nil, err
		}
		return c.Versions(ctx, n.Name)
	}
	i, err := f.cachedIndex(ctx, n.Repository)
	if err != nil {
		return nil, err
	}
	list, ok := i[n.Name]
	if !ok {
		return nil, fmt.Errorf("%s has no chart %s; check the name, and the address of the repository", n.Repository, n.Name)
	}
	out := make([]string, len(list))
	for k, e := range list {
		out[k] = e.version
	}
	return out, nil
}

// download gets the packed chart of the version in l, and sets the URL of l if a repository lists it.
func (f *Fetcher) download(ctx context.Context, files archive.Tree, dir string, l *LockedChart) ([]byte, error) {
	switch {
	case strings.HasPrefix(l.Repository, pathScheme):
		c, err := readLocalChart(files, dir, l.Name, l.Repository)
		if err != nil {
			return nil, err
		}
		return c.pack()
	case f.Client == nil:
		return nil, errNotCached
	case strings.HasPrefix(l.Repository, ociScheme):
		return f.pullChart(ctx, l.Repository, l.Name, l.Version)
	// What is locked needs no index: the chart is fetched from where it was, and its digest is checked.
	case l.URL != "":
		b, err := f.fetchURL(ctx, *l)
		var status *fetch.StatusError
		if errors.As(err, &status) && status.Code == http.StatusNotFound {
			err = fmt.Errorf("%w; if it has moved, run polder stack lock --upgrade", err)
		}
		return b, err
	}
	e, err := f.findEntry(ctx, *l)
	if err != nil {
		return nil, err
	}
	if l.URL, err = e.resolveURL(l.Repository); err != nil {
		return nil, err
	}
	b, err := f.fetchURL(ctx, *l)
	if err != nil {
		return nil, err
	}
	if got := digest(b); e.digest != "" && got != e.digest {
		return nil, fmt.Errorf("%s %s of %s has the digest %s, and the repository lists %.80s; ask who publishes it", l.Name,
			l.Version, l.Repository, got, fetch.Sanitize(e.digest))
	}
	return b, nil
}

// fetchURL fetches a chart from where a Helm repository has it; that may be a registry.
func (f *Fetcher) fetchURL(ctx context.Context, l LockedChart) ([]byte, error) {
	if strings.HasPrefix(l.URL, ociScheme) {
		place, last := path.Split(strings.TrimPrefix(l.URL, ociScheme))
		name, version, _ := strings.Cut(last, ":")
		return f.pullChart(ctx, ociScheme+place, name, version)
	}
	b, err := f.Client.Get(ctx, l.URL, maxChart)
	if err != nil {
		return nil, fmt.Errorf("fetching %s: %w", fetch.Sanitize(l.URL), err)
	}
	return b, nil
}

func (f *Fetcher) pullChart(ctx context.Context, place, name, version string) ([]byte, error) {
	c, err := registry.OpenCharts(place, f.Registry)
	if err != nil {
		return nil, err
	}
	return c.Fetch(ctx, name, version, maxChart)
}

// cachedIndex asks each repository for its index once: one that does not answer must not take its time again
// for every chart.
func (f *Fetcher) cachedIndex(ctx context.Context, repository string) (index, error) {
	a, ok := f.indexes[repository]
	if !ok {
		a.index, a.err = f.readIndex(ctx, repository)
		if f.indexes == nil {
			f.indexes = map[string]indexResult{}
		}
		f.indexes[repository] = a
	}
	return a.index, a.err
}

func (f *Fetcher) readIndex(ctx context.Context, repository string) (index, error) {
	u, err := helmRepository(repository)
	if err != nil {
		return nil, err
	}
	b, err := f.Client.Get(ctx, u.JoinPath("index.yaml").String(), maxIndex)
	if err != nil {
		return nil, fmt.Errorf("asking %s what it has: %w", repository, err)
	}
	i, err := parseIndex(b)
	if err != nil {
		return nil, fmt.Errorf("the index.yaml of %s cannot be used: %w", repository, err)
	}
	return i, nil
}

// findEntry finds the entry of a version in the index of its repository.
func (f *Fetcher) findEntry(ctx context.Context, l LockedChart) (indexEntry, error) {
	i, err := f.cachedIndex(ctx, l.Repository)
	if err != nil {
		return indexEntry{}, err
	}
	for _, e := range i[l.Name] {
		if e.version == l.Version {
			return e, nil
		}
	}
	return indexEntry{}, fmt.Errorf("%s does not list %s %s", l.Repository, l.Name, l.Version)
}
