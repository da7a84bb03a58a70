package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"sigs.k8s.io/yaml"
)

// Modules that releases of Kubernetes are known by. Each release of Kubernetes has one of stagingPath
// with the same minor and patch.
const (
	kubernetesPath = "k8s.io/kubernetes"
	stagingPath    = "k8s.io/api"
)

// offer is a version of Kubernetes in the file of a stack.
type offer struct {
	Stack   string // its directory
	Version string
}

// readOffers reads which versions of Kubernetes the stacks offer.
func readOffers(root fs.FS) ([]offer, error) {
	files, err := fs.Glob(root, "stacks/*/*/stack.yaml")
	if err != nil {
		return nil, err
	}
	if len(files) == 0 {
		return nil, errors.New("there is no stacks/*/*/stack.yaml; run this from the root of the repository")
	}
	var offers []offer
	for _, name := range files {
		versions, err := readVersions(root, name)
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", name, err)
		}
		for _, v := range versions {
			offers = append(offers, offer{Stack: path.Dir(name), Version: v})
		}
	}
	return offers, nil
}

func readVersions(root fs.FS, name string) ([]string, error) {
	b, err := fs.ReadFile(root, name)
	if err != nil {
		return nil, err
	}
	var s struct {
		KubernetesVersion  string   `json:"kubernetesVersion"`
		KubernetesVersions []string `json:"kubernetesVersions"`
	}
	if err := yaml.Unmarshal(b, &s); err != nil {
		return nil, err
	}
	versions := s.KubernetesVersions
	if s.KubernetesVersion != "" {
		versions = append(versions, s.KubernetesVersion)
	}
	if len(versions) == 0 {
		return nil, errors.New("there is neither kubernetesVersion nor kubernetesVersions")
	}
	for i, v := range versions {
		versions[i] = "v" + strings.TrimPrefix(v, "v")
	}
	return versions, nil
}

// lookupKubernetes looks up releases of Kubernetes. One that is not to be had itself is known from the
// staging module: what stacks offer is not taken from the proxy, so that it exists is enough.
func lookupKubernetes(lookup lookupFunc) lookupFunc {
	return func(ctx context.Context, path, version string) (moduleRelease, error) {
		r, err := lookup(ctx, path, version)
		if !errors.Is(err, errRefused) && !errors.Is(err, errUnknown) {
			return r, err
		}
		staging, stagingErr := lookup(ctx, stagingPath, "v0"+strings.TrimPrefix(version, "v1"))
		if errors.Is(stagingErr, errRefused) || errors.Is(stagingErr, errUnknown) {
			return r, err
		}
		staging.Via = stagingPath
		return staging, stagingErr
	}
}
