package registry

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// chartMediaType is of the layer that is a packed Helm chart.
const chartMediaType = "application/vnd.cncf.helm.chart.content.v1.tar+gzip"

// Charts are Helm charts in a registry: one repository each, below a common path.
type Charts struct {
	at Reference
	o  Options
}

// OpenCharts opens oci://host/path, as charts name it for their dependencies.
func OpenCharts(repository string, o Options) (*Charts, error) {
	at, err := ParseReference(strings.TrimSuffix(repository, "/"))
	if err != nil {
		return nil, err
	}
	if at.Host == "" || at.Tag != "" || at.Digest != "" {
		return nil, fmt.Errorf("%q is no place of charts; write oci://host/path", repository)
	}
	o.Untrusted = true // the author of a stack named the host, not the user
	return &Charts{at: at, o: o}, nil
}

func (c *Charts) open(ctx context.Context, name string) (*oci, error) {
	at := c.at
	at.Repository += "/" + name
	if !repositoryForm.MatchString(at.Repository) {
		return nil, fmt.Errorf("%q is no name of a chart in a registry", name)
	}
	return openOCI(ctx, at, c.o)
}

// Versions are all tags of a chart. A version with a plus has an underscore there instead.
func (c *Charts) Versions(ctx context.Context, name string) ([]string, error) {
	s, err := c.open(ctx, name)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	tags, err := s.tags(ctx)
	if err != nil {
		return nil, fmt.Errorf("listing %s: %w", s.at.Location(), err)
	}
	for i, t := range tags {
		tags[i] = strings.ReplaceAll(t, "_", "+")
	}
	return tags, nil
}

// Fetch reads the packed chart of a version, at most so many bytes, and checks its digest.
func (c *Charts) Fetch(ctx context.Context, name, version string, most int64) ([]byte, error) {
	s, err := c.open(ctx, name)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	b, err := s.fetchChart(ctx, strings.ReplaceAll(version, "+", "_"), most)
	if err != nil {
		return nil, fmt.Errorf("fetching %s:%s: %w", s.at.Location(), version, err)
	}
	return b, nil
}

func (s *oci) fetchChart(ctx context.Context, tag string, most int64) ([]byte, error) {
	b, _, err := s.readManifest(ctx, tag)
	if err != nil {
		return nil, err
	}
	var m ocispec.Manifest
	if err := json.Unmarshal(b, &m); err != nil {
		return nil, fmt.Errorf("the manifest is not JSON: %w", err)
	}
	for _, l := range m.Layers {
		if l.MediaType != chartMediaType {
			continue
		}
		if l.Size < 0 || l.Size > most {
			return nil, fmt.Errorf("the chart has %d bytes; at most %d are taken", l.Size, most)
		}
		return s.readBlob(ctx, l)
	}
	return nil, fmt.Errorf("there is no Helm chart in it")
}
