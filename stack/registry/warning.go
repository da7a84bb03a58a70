package registry

import (
	"fmt"
	"strings"

	"github.com/polder-kaas/polder/stack/version"
)

// WarningKind says what is wrong with something that a store has.
type WarningKind string

// The kinds of warnings. All but InvalidKubernetes leave something out of the listing.
const (
	// NotDirectory is a file, or a link, where directories of releases are.
	NotDirectory WarningKind = "NotDirectory"
	// NotRelease is a name that is not that of a release.
	NotRelease WarningKind = "NotRelease"
	// Misspelled is the name of a release that is not spelled as we spell it, so that nobody would find it.
	Misspelled WarningKind = "Misspelled"
	// Unreadable is a release that cannot be read, or is not valid.
	Unreadable WarningKind = "Unreadable"
	// InvalidKubernetes is a release whose manifest says a version of Kubernetes that is none, or not that of its name.
	InvalidKubernetes WarningKind = "InvalidKubernetes"
)

// What has the name that a warning is about.
const (
	tagItem       = "tag"
	directoryItem = "directory"
)

// Warning is about something in a store that is not as a release should be.
type Warning struct {
	Kind    WarningKind
	Item    string              // what has the name: "tag" or "directory"; empty for NotDirectory
	Name    string              // as it is in the store
	Release version.ReleaseName // that Name means; empty for NotDirectory and NotRelease

	Kubernetes string // what the manifest says, for InvalidKubernetes
	Err        error  // why; nil for NotDirectory and Misspelled
}

// String returns the warning as one sentence.
func (w Warning) String() string {
	switch w.Kind {
	case NotDirectory:
		return fmt.Sprintf("%q is left out: it is no directory", w.Name)
	case NotRelease:
		return fmt.Sprintf("%s is left out: %v", w.Item, w.Err)
	case Misspelled:
		return fmt.Sprintf("%s %q is left out: the name of this release is spelled %s", w.Item, w.Name, w.Release.Tag())
	case InvalidKubernetes:
		return fmt.Sprintf("%s: its manifest says that it is for Kubernetes %.40q: %v", w.Release, w.Kubernetes, w.Err)
	default: // Unreadable
		return fmt.Sprintf("%s is left out: %v", w.Release, w.Err)
	}
}

// IsOfLine says whether the warning is about a release of a line, or about something that is named like one.
func (w Warning) IsOfLine(line version.ReleaseLine) bool {
	if w.Release != (version.ReleaseName{}) {
		return w.Release.SameLine(line)
	}
	return strings.HasPrefix(w.Name, line.String()+"-")
}
