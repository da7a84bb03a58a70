package dependency

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"github.com/polder-kaas/polder/stack/document"
	"github.com/polder-kaas/polder/stack/fetch"
)

// Limits of the index of a Helm repository; the largest that are published have half of it. Values
// are estimated before they are parsed, as each takes some 200 bytes then.
const (
	maxIndex  = 32 << 20
	maxValues = 1_000_000
)

// index is what a Helm repository lists, by the names of charts.
type index map[string][]indexEntry

// indexEntry is one version of a chart. Its address may be relative to the repository.
type indexEntry struct{ version, address, digest string }

// parseIndex reads index.yaml. In entries it takes no aliases: Helm writes none, and with them a
// small file could hold an endless index.
func parseIndex(b []byte) (index, error) {
	if !utf8.Valid(b) {
		return nil, errors.New("it is not UTF-8")
	}
	if document.EstimateValues(b) > maxValues {
		return nil, fmt.Errorf("it has more than %d values", maxValues)
	}
	var root yaml.Node // into anything else, yaml compares each key with each other
	if err := yaml.Unmarshal(b, &root); err != nil {
		return nil, fmt.Errorf("it is not YAML: %s", fetch.Sanitize(strings.TrimPrefix(err.Error(), "yaml: ")))
	}
	var entries *yaml.Node
	for _, d := range root.Content {
		entries = mapValue(d, "entries")
	}
	if entries == nil || entries.Kind != yaml.MappingNode && entries.Tag != "!!null" {
		return nil, errors.New("it has no entries, so this is no Helm repository; check the address")
	}
	if a := findAlias(entries); a != nil {
		return nil, fmt.Errorf("line %d: aliases of YAML are not taken here", a.Line)
	}
	out := index{}
	for i := 0; i+1 < len(entries.Content); i += 2 {
		name := entries.Content[i]
		if _, twice := out[name.Value]; twice {
			return nil, fmt.Errorf("line %d: the chart %.80q is listed a second time", name.Line, name.Value)
		}
		out[name.Value] = parseEntries(entries.Content[i+1])
	}
	return out, nil
}

// findAlias finds the first alias at or below a node.
func findAlias(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode {
		return n
	}
	for _, c := range n.Content {
		if a := findAlias(c); a != nil {
			return a
		}
	}
	return nil
}

// mapValue gives the value of a key of an object, or nil.
func mapValue(n *yaml.Node, key string) *yaml.Node {
	if n.Kind == yaml.MappingNode {
		for i := 0; i+1 < len(n.Content); i += 2 {
			if n.Content[i].Value == key {
				return n.Content[i+1]
			}
		}
	}
	return nil
}

// parseEntries reads the versions of a chart. It leaves out what has no version, or nothing to fetch.
func parseEntries(list *yaml.Node) []indexEntry {
	var out []indexEntry
	for _, item := range list.Content {
		version, digest, urls := mapValue(item, "version"), mapValue(item, "digest"), mapValue(item, "urls")
		if version == nil || urls == nil || len(urls.Content) == 0 {
			continue
		}
		l := indexEntry{version: version.Value, address: urls.Content[0].Value}
		if digest != nil && digest.Value != "" {
			l.digest = "sha256:" + strings.ToLower(strings.TrimPrefix(digest.Value, "sha256:"))
		}
		if l.version != "" && l.address != "" {
			out = append(out, l)
		}
	}
	return out
}

// resolveURL gives the absolute address where a repository has a chart that it lists.
func (l indexEntry) resolveURL(repository string) (string, error) {
	base, err := helmRepository(repository)
	if err != nil {
		return "", err
	}
	var u *url.URL
	if u, err = base.Parse(l.address); err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" && u.Scheme+
		"://" != ociScheme {
		return "", fmt.Errorf("%s lists it at an address that is neither https://… nor oci://…", repository)
	}
	if u.User != nil {
		return "", fmt.Errorf("%s lists it at an address with credentials", repository)
	}
	return u.String(), nil
}
