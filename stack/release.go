// Package stack is the library of cluster stacks: it loads releases, checks them, and knows the
// formats that are published today. It has no Kubernetes client in it; everything from outside
// passes its archive and document packages.
package stack

import (
	"bytes"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/polder-kaas/polder/stack/archive"
	"github.com/polder-kaas/polder/stack/version"
)

// Files of a release.
const (
	metadataFile    = "metadata.yaml"
	hashesFile      = "hashes.json"
	addonConfigFile = "clusteraddon.yaml"         // of the convention with stages
	addonValuesFile = "cluster-addon-values.yaml" // of the convention with one chart
	chartFile       = "Chart.yaml"
	overwriteFile   = "overwrite.yaml"
	nodeImagesFile  = "node-images.yaml"
)

// Release is one version of a stack, as it was built.
type Release struct {
	Name     version.ReleaseName
	Metadata Metadata
	Class    archive.Tree // the chart of the cluster class
	Addons   Addons
	Files    archive.Tree // all files as they are, those nobody here knows too

	classArchive, addonArchive archive.Tree // unpacked
}

// Addons are the charts of a release's add-ons.
type Addons struct {
	Config *AddonConfig            // nil in the convention with one chart
	Charts map[string]archive.Tree // by name; one chart alone has none
	Values map[string][]byte       // templates of values, by the name of their chart
}

// Load reads the files of a release. Its name comes from outside, a tag or a directory: none of
// the files has it.
func Load(name string, files archive.Tree) (*Release, error) {
	id, err := version.ParseReleaseName(name)
	if err != nil {
		return nil, err
	}
	r := &Release{Name: id, Files: files}
	if err := r.load(); err != nil {
		return nil, fmt.Errorf("release %s: %w", id, err)
	}
	return r, nil
}

func (r *Release) load() (err error) {
	b, ok := r.Files[metadataFile]
	if !ok {
		return fmt.Errorf("%s is missing, so this is no release", metadataFile)
	}
	if r.Metadata, err = ParseMetadata(b); err != nil {
		return err
	}
	if err := r.checkMetadataMatchesName(); err != nil {
		return err
	}
	var classErr, addonErr error
	r.classArchive, classErr = r.unpackArchive(r.Name.ClassChart(), r.Metadata.Versions.ClusterStack)
	r.addonArchive, addonErr = r.unpackArchive(r.Name.AddonChart(), r.Metadata.Versions.Components.ClusterAddon)
	if err := errors.Join(classErr, addonErr); err != nil {
		return err
	}
	if r.Class, err = singleChart(r.classArchive); err != nil {
		return fmt.Errorf("cluster class: %w", err)
	}
	if err := r.loadAddons(r.addonArchive); err != nil {
		return fmt.Errorf("add-ons: %w", err)
	}
	return nil
}

// checkMetadataMatchesName refuses metadata that differs from the release's name.
func (r *Release) checkMetadataMatchesName() error {
	var errs []error
	if v := r.Metadata.Versions.ClusterStack; v != r.Name.Version {
		errs = append(errs, fmt.Errorf("%s says version %s, its name %s", metadataFile, v, r.Name.Version))
	}
	if k := r.Metadata.KubernetesVersion(); !k.SameMinor(r.Name.Kubernetes) {
		errs = append(errs, fmt.Errorf("%s says Kubernetes %s, its name %s", metadataFile, k, r.Name.Kubernetes))
	}
	return errors.Join(errs...)
}

// unpackArchive finds an archive by the part of its name that is fixed, and reads it.
func (r *Release) unpackArchive(chart string, v version.Version) (archive.Tree, error) {
	want := chart + "-" + v.String()
	var found []string
	for _, name := range r.Files.Names() {
		if !strings.Contains(name, "/") && strings.HasSuffix(name, ".tgz") && strings.Contains(name, want) {
			found = append(found, name)
		}
	}
	exact := want + ".tgz"
	switch {
	case slices.Contains(found, exact): // v1 is also part of v10
		found = []string{exact}
	case len(found) == 0:
		return nil, fmt.Errorf("%s is missing", exact)
	case len(found) > 1:
		return nil, fmt.Errorf("%s is missing, and any of %s could be meant", exact, strings.Join(found, ", "))
	}
	t, err := archive.Read(bytes.NewReader(r.Files[found[0]]), archive.DefaultLimits)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", found[0], err)
	}
	return t, nil
}

// singleChart gives the chart of an archive that Helm packed: it has one directory with the chart in it.
func singleChart(t archive.Tree) (archive.Tree, error) {
	for _, dir := range t.Dirs() {
		if _, ok := t[path.Join(dir, chartFile)]; ok {
			return t.Sub(dir), nil
		}
	}
	return nil, fmt.Errorf("there is no %s in its archive", chartFile)
}

// loadAddons reads the charts of the add-ons. Only the convention with stages has a file for them.
func (r *Release) loadAddons(t archive.Tree) error {
	b, staged := r.Files[addonConfigFile]
	if !staged {
		chart, err := singleChart(t)
		if err != nil {
			return err
		}
		r.Addons = Addons{Charts: map[string]archive.Tree{"": chart}, Values: map[string][]byte{}}
		if v, ok := r.Files[addonValuesFile]; ok {
			r.Addons.Values[""] = v
		}
		return nil
	}
	config, err := ParseAddonConfig(b)
	if err != nil {
		return err
	}
	r.Addons = Addons{Config: &config, Charts: map[string]archive.Tree{}, Values: map[string][]byte{}}
	for _, dir := range t.Dirs() { // a stray file at the top belongs to no chart
		chart := t.Sub(dir)
		if _, ok := chart[chartFile]; !ok {
			continue
		}
		if v, ok := chart[overwriteFile]; ok {
			r.Addons.Values[dir] = v
		}
		r.Addons.Charts[dir] = chart
	}
	return nil
}
