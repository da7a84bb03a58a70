package stack

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/polder-kaas/polder/stack/archive"
	"github.com/polder-kaas/polder/stack/document"
	"github.com/polder-kaas/polder/stack/version"
)

// Parts of a source directory.
const (
	classDir = "cluster-class"
	addonDir = "cluster-addon"

	// LockFile has the exact dependencies of all charts.
	LockFile = "stack.lock"
)

// configFiles are where a source says what it is, the one we write first.
var configFiles = []string{"stack.yaml", "csctl.yaml", "csmctl.yaml"}

// Source is a stack as its author writes it.
type Source struct {
	version.ReleaseLine                      // with the exact version of Kubernetes, if the author names one
	Versions            []version.Kubernetes // all it can be built for, at most one of a minor
	ConfigFile          string               // which of the spellings it is in
	Files               archive.Tree
}

// ForKubernetes gives the source for another of its versions of Kubernetes. Only the minor of k counts, unless the
// source names no patch of it: then that of k does.
func (s *Source) ForKubernetes(k version.Kubernetes) (*Source, error) {
	for _, v := range s.Versions {
		if v.SameMinor(k) {
			other := *s
			other.Kubernetes = v
			if !v.HasPatch() {
				other.Kubernetes = k
			}
			return &other, nil
		}
	}
	var have []string
	for _, v := range s.Versions {
		have = append(have, v.MinorString())
	}
	return nil, fmt.Errorf("%s does not name Kubernetes %s; it has %s", s.ConfigFile, k.MinorString(),
		strings.Join(have, ", "))
}

// csctlConfig is the file of today's tools.
type csctlConfig struct {
	Config struct {
		KubernetesVersion versionText `json:"kubernetesVersion"`
		ClusterStackName  string      `json:"clusterStackName"`
		Provider          struct {
			Type string `json:"type"`
		} `json:"provider"`
	} `json:"config"`
}

// stackConfig is the flat file of the next generation. A source that serves several minors lists
// their versions; without a choice it is for the newest.
type stackConfig struct {
	Provider           string        `json:"provider"`
	ClusterStackName   string        `json:"clusterStackName"`
	KubernetesVersion  versionText   `json:"kubernetesVersion"`
	KubernetesVersions []versionText `json:"kubernetesVersions"`
}

// versionText is a version that may be written without quotes, which makes 1.35 a number. Which number does not matter:
// setVersions reads it as it was written.
type versionText string

// UnmarshalJSON takes texts and numbers.
func (v *versionText) UnmarshalJSON(b []byte) error {
	var n json.Number
	if json.Unmarshal(b, &n) == nil && n != "" {
		*v = versionText(n)
		return nil
	}
	return json.Unmarshal(b, (*string)(v))
}

// IsRelease says whether files are those of a release, and not of a source. Other tools put their metadata.yaml into
// sources and their csctl.yaml into releases, so archives tell.
func IsRelease(files archive.Tree) bool {
	if _, ok := files[metadataFile]; !ok {
		return false
	}
	for name := range files {
		if !strings.Contains(name, "/") && strings.HasSuffix(name, ".tgz") {
			return true
		}
	}
	return !slices.ContainsFunc(configFiles, func(name string) bool { return files[name] != nil })
}

// ParseSource reads the configuration of a source directory. With an error it may still return what could be
// read.
func ParseSource(files archive.Tree) (*Source, error) {
	for _, name := range configFiles {
		if b, ok := files[name]; ok {
			s := &Source{ConfigFile: name, Files: files}
			return s, s.parseConfig(b)
		}
	}
	return nil, fmt.Errorf("there is no %s, so this is no stack; polder stack init makes one", configFiles[0])
}

func (s *Source) parseConfig(b []byte) error {
	d, err := document.ParseOne(s.ConfigFile, b)
	if err != nil {
		return err
	}
	flat := s.ConfigFile == configFiles[0]
	var c stackConfig
	var prefix []string
	if flat {
		err = d.Decode(&c)
	} else {
		var old csctlConfig
		err = d.Decode(&old)
		c = stackConfig{
			Provider: old.Config.Provider.Type, ClusterStackName: old.Config.ClusterStackName,
			KubernetesVersion: old.Config.KubernetesVersion,
		}
		prefix = []string{"config"}
	}
	if err != nil {
		return err
	}
	return s.setConfig(d, c, prefix)
}

func (s *Source) setConfig(d document.Document, c stackConfig, prefix []string) error {
	var errs []error
	at := func(key, reason string) {
		errs = append(errs, &document.Error{File: d.File(), Line: d.Line(append(prefix, key)...), Reason: reason})
	}
	s.setVersions(d, c, prefix, at)
	s.ReleaseLine = version.ReleaseLine{Provider: c.Provider, Name: c.ClusterStackName}
	if len(s.Versions) > 0 {
		s.Kubernetes = slices.MaxFunc(s.Versions, version.CompareKubernetes)
	}
	// Each is checked beside a valid other one, so that the error has the line of the one that is wrong.
	if (version.ReleaseLine{Provider: c.Provider, Name: "x"}).Check() != nil {
		at("provider", fmt.Sprintf("provider %q must be of lower-case letters and digits", c.Provider))
	}
	if err := (version.ReleaseLine{Provider: "x", Name: c.ClusterStackName}).Check(); err != nil {
		at("clusterStackName", err.Error())
	}
	return errors.Join(errs...)
}

func (s *Source) setVersions(d document.Document, c stackConfig, prefix []string, at func(key, reason string)) {
	key, list := "kubernetesVersions", c.KubernetesVersions
	if len(list) == 0 {
		key, list = "kubernetesVersion", []versionText{c.KubernetesVersion}
	} else if c.KubernetesVersion != "" {
		at("kubernetesVersion", "a stack has either kubernetesVersion or kubernetesVersions; remove one")
	}
	for i, v := range list {
		text := string(v)
		for _, keys := range [][]string{{key}, {key, strconv.Itoa(i)}} {
			if written, ok := d.Scalar(slices.Concat(prefix, keys)...); ok && text != "" {
				text = written
			}
		}
		if text == "" {
			at(key, "kubernetesVersion is missing; write for example kubernetesVersion: v1.36.3")
			continue
		}
		k, err := version.ParseKubernetes(text)
		if err != nil {
			at(key, err.Error())
			continue
		}
		if slices.ContainsFunc(s.Versions, k.SameMinor) {
			at(key, fmt.Sprintf("there are two versions of Kubernetes %s; a release has one", k.MinorString()))
		}
		s.Versions = append(s.Versions, k)
	}
}
