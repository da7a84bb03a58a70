package registry

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// chartMediaType is the type of the layer that is a packed Helm chart.
const chartMediaType = "application/vnd.cncf.helm.chart.content.v1.tar+gzip"

// Charts are Helm charts in a registry: one repository each, below a common path.
type Charts struct {
	host, path          string
	o                   Options
	credentialsWithheld bool // the user gave some, and this host does not get them
}

// OpenCharts opens oci://host/path, as charts name it for their dependencies; the path may be
// missing. The author of a chart named the host, not the user: it gets a user, a password, a token or
// plain http only if it is among Trusted. What DockerConfig has for a host is for that host.
func OpenCharts(repository string, o Options) (*Charts, error) {
	host, path, _ := strings.Cut(strings.TrimRight(strings.TrimPrefix(repository, scheme), "/"), "/")
	if !strings.HasPrefix(repository, scheme) || strings.ContainsAny(path, ":@") {
		return nil, fmt.Errorf("%.200q is no place of charts; write oci://host/path", repository)
	}
	// A reference must name a repository, so the name of some chart is added.
	at, err := ParseReference(scheme + host + "/" + strings.TrimPrefix(path+"/chart", "/"))
	if err != nil {
		return nil, err
	}
	c := &Charts{host: at.Host, path: path, o: o}
	c.o.Untrusted = true
	if !isTrustedHost(o.Trusted, at.Host) {
		c.credentialsWithheld = o.Username != "" || o.Password != "" || o.Token != ""
		c.o.Username, c.o.Password, c.o.Token, c.o.PlainHTTP = "", "", "", false
	}
	return c, nil
}

// isTrustedHost says whether a host is in a list, with its port or without. A spelling that it does not
// know counts as another host.
func isTrustedHost(list []string, host string) bool {
	u := url.URL{Host: host}
	names := []string{host, u.Hostname()}
	if u.Port() == "" {
		names = append(names, net.JoinHostPort(u.Hostname(), "443"))
	}
	return slices.ContainsFunc(list, func(t string) bool { return slices.Contains(names, strings.ToLower(t)) })
}

func (c *Charts) open(ctx context.Context, name string) (*oci, error) {
	repository := strings.TrimPrefix(c.path+"/"+name, "/")
	if !repositoryPattern.MatchString(repository) || strings.Contains(name, "/") {
		return nil, fmt.Errorf(
			"%.200q is no name of a chart in a registry: it is of lower-case letters, digits, and single dots and dashes between them", name,
		)
	}
	return openOCI(ctx, Reference{Host: c.host, Repository: repository}, c.o)
}

// explain adds why a registry did not get credentials that there are.
func (c *Charts) explain(err error) error {
	if c.credentialsWithheld && errors.Is(err, ErrCredentials) {
		return fmt.Errorf("%w: those that there are go only to hosts that are named as trusted", err)
	}
	return err
}

// Versions lists all tags of a chart as versions. A tag has an underscore where a version has a plus.
func (c *Charts) Versions(ctx context.Context, name string) ([]string, error) {
	s, err := c.open(ctx, name)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	tags, err := s.listTags(ctx)
	if err != nil {
		return nil, fmt.Errorf("listing %s: %w", s.reference.Location(), c.explain(err))
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
		return nil, fmt.Errorf("fetching %s:%.200s: %w", s.reference.Location(), version, c.explain(err))
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
		return nil, errors.New("the manifest is no JSON of a manifest")
	}
	for _, l := range m.Layers {
		// A layer with the signature may lie beside the chart.
		if l.MediaType != chartMediaType {
			continue
		}
		if l.Size < 0 || l.Size > most {
			return nil, fmt.Errorf("the chart has %d bytes; at most %d are taken", l.Size, most)
		}
		return s.readBlob(ctx, l)
	}
	return nil, fmt.Errorf("there is no Helm chart in it, but %.80q", m.Config.MediaType)
}
