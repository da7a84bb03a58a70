package registry

import (
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/polder-kaas/polder/stack/version"
)

const scheme = "oci://"

// Reference says where releases are and, perhaps, which one is meant.
type Reference struct {
	Directory  string // of releases; empty in a registry
	Host       string // of the registry, with its port if it has one; empty in a directory
	Repository string
	Tag        string // name of a release, in the spelling of tags; empty if none is named
	Digest     string // sha256:…; empty if none is named
}

var (
	repositoryPattern = regexp.MustCompile(
		`^[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*(?:/[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*)*$`,
	)
	hostPattern = regexp.MustCompile(
		`^(?:[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?|\[[0-9A-Fa-f:.]+\])(?::[0-9]{1,5})?$`,
	)
	digestPattern = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)
)

const maxReference = 1024

// ParseReference reads oci://host[:port]/repository[:tag][@sha256:…], or the path of a directory. A
// path whose last element is the name of a release means that one in the directory above.
func ParseReference(s string) (Reference, error) {
	switch {
	case s == "":
		return Reference{}, errors.New("the reference is empty; write oci://host/repository, or the path of a directory")
	case len(s) > maxReference:
		return Reference{}, fmt.Errorf("the reference has %d characters; at most %d are taken", len(s), maxReference)
	case strings.HasPrefix(s, scheme):
		return parseOCI(strings.TrimPrefix(s, scheme))
	case strings.Contains(s, "://"):
		before, _, _ := strings.Cut(s, "://")
		return Reference{}, fmt.Errorf(
			"references that begin with %q are not known; write oci://host/repository, or the path of a directory", before+"://",
		)
	case strings.Contains(firstPart(s), "@"):
		return Reference{}, errCredentialsInside
	case looksLikeRegistry(s):
		return Reference{}, fmt.Errorf("%q looks like a registry; write %s%s, or ./%s if it is a directory", s, scheme, s, s)
	}
	return parseDirectory(s)
}

// errCredentialsInside does not quote the reference, which would show them.
var errCredentialsInside = errors.New("a reference has no user and no password in it; give them apart")

// firstPart is what comes before a slash, if something comes after it.
func firstPart(s string) string {
	first, rest, _ := strings.Cut(s, "/")
	if rest == "" {
		return ""
	}
	return first
}

// looksLikeRegistry says whether the first part of a path looks like a host.
func looksLikeRegistry(s string) bool {
	first := firstPart(s)
	return first == "localhost" || !strings.HasPrefix(first, ".") && strings.ContainsAny(first, ".:")
}

func parseOCI(s string) (Reference, error) {
	host, rest, ok := strings.Cut(s, "/")
	if strings.Contains(host, "@") {
		return Reference{}, errCredentialsInside
	}
	if !ok || rest == "" {
		return Reference{}, fmt.Errorf("%q names no repository; write oci://host/repository", scheme+s)
	}
	r := Reference{Host: strings.ToLower(host)}
	if u, err := url.Parse("https://" + host); err != nil || !hostPattern.MatchString(host) || u.Host != host {
		return Reference{}, fmt.Errorf("%q is no host", host)
	}
	rest, err := r.cutDigest(rest)
	if err != nil {
		return Reference{}, err
	}
	repository, tag, tagged := strings.Cut(rest, ":")
	if !repositoryPattern.MatchString(repository) {
		return Reference{}, fmt.Errorf(
			"%q is no name of a repository: it is of lower-case letters, digits, and single dots, dashes and slashes between them", repository,
		)
	}
	r.Repository = repository
	if tagged {
		name, err := version.ParseReleaseName(tag)
		if err != nil {
			return Reference{}, fmt.Errorf("tag: %w", err)
		}
		r.Tag = name.Tag()
	}
	return r, nil
}

func parseDirectory(s string) (r Reference, err error) {
	if s, err = r.cutDigest(s); err != nil {
		return Reference{}, err
	}
	r.Directory = filepath.Clean(s)
	if name, err := version.ParseReleaseName(filepath.Base(r.Directory)); err == nil {
		r.Directory, r.Tag = filepath.Dir(r.Directory), name.Tag()
	}
	return r, nil
}

// cutDigest takes the digest off the end.
func (r *Reference) cutDigest(s string) (string, error) {
	rest, digest, ok := strings.Cut(s, "@")
	if !ok {
		return s, nil
	}
	if !digestPattern.MatchString(digest) {
		return "", fmt.Errorf("%q is no digest: it is sha256: and 64 digits of 0-9 and a-f", digest)
	}
	if rest == "" {
		return "", errors.New("the reference is only a digest; write oci://host/repository@sha256:…")
	}
	r.Digest = digest
	return rest, nil
}

// WithTag gives the reference to a release of the same store, by its tag alone.
func (r Reference) WithTag(tag string) Reference {
	r.Tag, r.Digest = tag, ""
	return r
}

// Location is where the store is, without a release.
func (r Reference) Location() string {
	if r.Directory != "" {
		return r.Directory
	}
	return scheme + r.Host + "/" + r.Repository
}

// String is what ParseReference reads as the same.
func (r Reference) String() string {
	s := r.Location()
	switch {
	case r.Tag != "" && r.Directory != "":
		s = filepath.Join(s, r.Tag)
	case r.Tag != "":
		s += ":" + r.Tag
	}
	if r.Digest != "" {
		s += "@" + r.Digest
	}
	return s
}

// checkMatches refuses a release if the reference names another one.
func (r Reference) checkMatches(tag, digest string) error {
	if r.Tag != "" && r.Tag != tag {
		return fmt.Errorf("the reference is to %s, and the release is %s", r.Tag, tag)
	}
	if r.Digest != "" && r.Digest != digest {
		return fmt.Errorf("the reference is to %s, and the release is %s", r.Digest, digest)
	}
	return nil
}
