package dependency

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/url"
	"path"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/polder-kaas/polder/stack/archive"
	"github.com/polder-kaas/polder/stack/document"
	"github.com/polder-kaas/polder/stack/fetch"
	"github.com/polder-kaas/polder/stack/registry"
)

// Schemes of repositories.
const (
	pathScheme = "file://"
	ociScheme  = "oci://"
)

// maxIndex is how large the list of a Helm repository may be.
const maxIndex = 32 << 20

// Fetcher gets charts from where stacks say they are: Helm repositories, OCI registries, and
// directories of the stack itself.
type Fetcher struct {
	Client   *fetch.Client // nil: nothing is fetched, only the cache is looked into
	Registry registry.Options
	Cache    Cache
	indexes  map[string]*index
}

// index is what a Helm repository lists.
type index struct {
	Entries map[string][]struct {
		Version string   `yaml:"version"`
		URLs    []string `yaml:"urls"`
		Digest  string   `yaml:"digest"`
	} `yaml:"entries"`
}

// versions are all that there are of a chart.
func (f *Fetcher) versions(ctx context.Context, files archive.Tree, dir string, l *Locked) ([]string, error) {
	switch {
	case strings.HasPrefix(l.Repository, pathScheme):
		t, err := local(files, dir, l.Repository)
		if err != nil {
			return nil, err
		}
		v, err := chartVersion(t)
		return []string{v}, err
	case strings.HasPrefix(l.Repository, ociScheme):
		c, err := registry.OpenCharts(l.Repository, f.Registry)
		if err != nil {
			return nil, err
		}
		return c.Versions(ctx, l.Name)
	}
	i, err := f.index(ctx, l.Repository)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, e := range i.Entries[l.Name] {
		out = append(out, e.Version)
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("%s has no chart %s", l.Repository, l.Name)
	}
	return out, nil
}

// download gets the packed chart of the version in l, and says in l where it was.
func (f *Fetcher) download(ctx context.Context, files archive.Tree, dir string, l *Locked) ([]byte, error) {
	switch {
	case strings.HasPrefix(l.Repository, pathScheme):
		t, err := local(files, dir, l.Repository)
		if err != nil {
			return nil, err
		}
		return pack(l.Name, t)
	case f.Client == nil:
		return nil, errors.New("it is not at hand; run polder stack lock, which fetches it")
	case strings.HasPrefix(l.Repository, ociScheme):
		c, err := registry.OpenCharts(l.Repository, f.Registry)
		if err != nil {
			return nil, err
		}
		return c.Fetch(ctx, l.Name, l.Version, maxChart)
	}
	listed := ""
	if l.URL == "" {
		var err error
		if l.URL, listed, err = f.find(ctx, *l); err != nil {
			return nil, err
		}
	}
	b, err := f.Client.Get(ctx, l.URL, maxChart)
	if err != nil {
		return nil, err
	}
	if got := digest(b); listed != "" && got != listed {
		return nil, fmt.Errorf("%s %s of %s has the digest %s, and the repository lists %s", l.Name, l.Version, l.Repository, got, listed)
	}
	return b, nil
}

func (f *Fetcher) index(ctx context.Context, repository string) (*index, error) {
	if i, ok := f.indexes[repository]; ok {
		return i, nil
	}
	if !strings.HasPrefix(repository, "https://") && !strings.HasPrefix(repository, "http://") {
		return nil, fmt.Errorf("the repository %q is neither https://…, oci://… nor file://…", repository)
	}
	b, err := f.Client.Get(ctx, strings.TrimSuffix(repository, "/")+"/index.yaml", maxIndex)
	if err != nil {
		return nil, err
	}
	var i index
	if err := yaml.Unmarshal(b, &i); err != nil {
		return nil, fmt.Errorf("what %s lists is not YAML: %.200s", repository, err)
	}
	if f.indexes == nil {
		f.indexes = map[string]*index{}
	}
	f.indexes[repository] = &i
	return &i, nil
}

// find is where a repository has a version, and the digest it lists for it, if it does.
func (f *Fetcher) find(ctx context.Context, l Locked) (address, listed string, err error) {
	i, err := f.index(ctx, l.Repository)
	if err != nil {
		return "", "", err
	}
	for _, e := range i.Entries[l.Name] {
		if e.Version != l.Version || len(e.URLs) == 0 {
			continue
		}
		base, err := url.Parse(strings.TrimSuffix(l.Repository, "/") + "/")
		if err != nil {
			return "", "", err
		}
		u, err := base.Parse(e.URLs[0])
		if err != nil {
			return "", "", errors.New("the repository lists an address that is none")
		}
		if e.Digest != "" {
			listed = "sha256:" + strings.TrimPrefix(e.Digest, "sha256:")
		}
		return u.String(), listed, nil
	}
	return "", "", fmt.Errorf("%s does not list %s %s", l.Repository, l.Name, l.Version)
}

// local is a chart beside the one that needs it, in the same stack.
func local(files archive.Tree, dir, repository string) (archive.Tree, error) {
	p := path.Join(dir, strings.TrimPrefix(repository, pathScheme))
	if strings.HasPrefix(strings.TrimPrefix(repository, pathScheme), "/") || strings.HasPrefix(p, "../") || p == ".." {
		return nil, fmt.Errorf("%s leads out of the stack; a stack must be complete in its directory", repository)
	}
	t := files.Sub(p)
	if _, ok := t["Chart.yaml"]; !ok {
		return nil, fmt.Errorf("there is no chart in %s", p)
	}
	return t, nil
}

func chartVersion(t archive.Tree) (string, error) {
	d, err := document.One("Chart.yaml", t["Chart.yaml"])
	if err != nil {
		return "", err
	}
	var c struct{ Version string }
	err = d.Decode(&c)
	return c.Version, err
}

func pack(name string, t archive.Tree) ([]byte, error) {
	out := archive.Tree{}
	for file, b := range t {
		out[path.Join(name, file)] = b
	}
	var buf bytes.Buffer
	err := archive.Write(&buf, out)
	return buf.Bytes(), err
}
