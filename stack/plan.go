package stack

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/polder-kaas/polder/stack/version"
)

// The two modes whose names are no words of pre-releases.
const (
	ModeStable = "stable"
	ModeHash   = "hash"
)

// hashWord is the word in versions that are made of a hash, as the tools that came before have it.
const hashWord = "sha"

// ErrUnchanged says that a new release would be the same as the last.
var ErrUnchanged = errors.New("nothing has changed")

// History is what was released of a line before.
type History struct {
	Last     *Release          // the newest stable release; nil if there is none
	Versions []version.Version // of all releases of the line
}

// Plan computes the versions of the next release of a source.
//
// In mode stable each number grows by one if its part has changed. In mode hash all are made of the
// content's hash. Any other mode is the word of a pre-release, for example beta: that comes before
// the next stable version, and is counted.
func (s *Source) Plan(mode string, h History) (Versions, error) {
	if err := s.checkPatch(); err != nil {
		return Versions{}, err
	}
	v := Versions{Kubernetes: s.Kubernetes.String()}
	switch mode {
	case ModeStable:
		return s.planStable(v, h.Last)
	case ModeHash:
		id := version.Version{Word: hashWord, ID: HashSource(s.Files).ShortHash()}
		return v.withAll(id), nil
	}
	next := version.Version{Major: 1, Word: mode, ID: "1"}
	if h.Last != nil {
		next.Major = h.Last.Name.Version.Major + 1
	}
	// Without a word the version would be a stable one, and names of objects have no capitals.
	if _, err := version.Parse(next.String()); err != nil || mode == "" || mode != strings.ToLower(mode) {
		return Versions{}, fmt.Errorf("mode %q is neither %s, %s nor a word of small letters for a pre-release, such as beta",
			mode, ModeStable, ModeHash)
	}
	next.ID = strconv.Itoa(nextNumber(next, h.Versions))
	return v.withAll(next), nil
}

// CustomVersions gives versions that the author has chosen. The zero version of a part means that of the stack.
func (s *Source) CustomVersions(stack, addon, nodeImage version.Version) (Versions, error) {
	if err := s.checkPatch(); err != nil {
		return Versions{}, err
	}
	v := Versions{Kubernetes: s.Kubernetes.String()}.withAll(stack)
	if addon != (version.Version{}) {
		v.Components.ClusterAddon = addon
	}
	if nodeImage != (version.Version{}) {
		v.Components.NodeImage = &nodeImage
	}
	return v, nil
}

// checkPatch refuses a version of Kubernetes without a patch. Other tools ask the network for the newest one; here the
// same source gives the same release.
func (s *Source) checkPatch() error {
	if s.Kubernetes.HasPatch() {
		return nil
	}
	return fmt.Errorf("%s says Kubernetes %s, and a release is for an exact version; write it there, or choose it with "+
		"--kubernetes, for example v%s.0", s.ConfigFile, s.Kubernetes, s.Kubernetes.MinorString())
}

// WithPatch gives the source with an exact version of Kubernetes. Where it names none, that is the first of its minor:
// good to look at a stack, not to release it.
func (s *Source) WithPatch() *Source {
	out := *s
	out.Kubernetes.Patch = max(s.Kubernetes.Patch, 0)
	return &out
}

func (v Versions) withAll(id version.Version) Versions {
	v.ClusterStack, v.Components.ClusterAddon, v.Components.NodeImage = id, id, &id
	return v
}

func (s *Source) planStable(v Versions, last *Release) (Versions, error) {
	if last == nil {
		return v.withAll(version.Version{Major: 1}), nil
	}
	if !last.Name.SameLine(s.ReleaseLine) {
		return Versions{}, fmt.Errorf("the last release is %s, and this is %s", last.Name, s.ReleaseLine)
	}
	previous, err := last.hashes()
	if err != nil {
		return Versions{}, err
	}
	current := HashSource(s.Files)
	if previous.ClusterAddonConfig == "" { // tools that came before do not hash it; then the other hashes decide
		previous.ClusterAddonConfig = current.ClusterAddonConfig
	}
	if current.SameContent(previous) && last.Metadata.Versions.Kubernetes == v.Kubernetes {
		return Versions{}, fmt.Errorf("%w since %s, so there is nothing to release", ErrUnchanged, last.Name)
	}
	v.ClusterStack = last.Name.Version.Next()
	v.Components = last.Metadata.Versions.Components
	if !current.SameAddons(previous) {
		v.Components.ClusterAddon = v.Components.ClusterAddon.Next()
	}
	// A copy, because the pointer is that of the last release.
	image := version.Version{Major: 1}
	if v.Components.NodeImage != nil {
		image = *v.Components.NodeImage
	}
	if current.NodeImageDir != previous.NodeImageDir {
		image = image.Next()
	}
	v.Components.NodeImage = &image
	return v, nil
}

// hashes reads the hashes that the release has of its source.
func (r *Release) hashes() (Hashes, error) {
	b, ok := r.Files[hashesFile]
	if !ok {
		return Hashes{}, fmt.Errorf(
			"release %s has no %s, so what has changed since cannot be told; choose the version with --version", r.Name,
			hashesFile,
		)
	}
	return ParseHashes(b)
}

// nextNumber is one more than the largest of the pre-releases with the same number and word.
func nextNumber(like version.Version, all []version.Version) int {
	most := 0
	for _, v := range slices.Clone(all) {
		if v.Major != like.Major || v.Word != like.Word {
			continue
		}
		if n, err := strconv.Atoi(v.ID); err == nil {
			most = max(most, n)
		}
	}
	return most + 1
}
