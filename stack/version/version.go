// Package version reads, writes and orders the versions of cluster stacks and the names of their
// releases. Both have two spellings: tags, directories and object names are joined by dashes, while
// cluster classes, charts and metadata have a dot before a pre-release's number.
package version

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/polder-kaas/polder/stack/text"
)

// Version of a stack: v3, or a pre-release such as v0-sha.abc1234, whose word may be any.
type Version struct {
	Major int
	Word  string // of a pre-release, for example sha, git, beta; empty if the version is stable
	ID    string // what comes after the word: a number, a hash
}

var versionPattern = regexp.MustCompile(`^v(0|[1-9][0-9]*)(?:-([0-9A-Za-z_]+)[.-]([0-9A-Za-z_]+))?$`)

// maxLength of a version: with the rest of a release's name it must fit into the name of an object.
const maxLength = 128

// Parse reads a version in either spelling.
func Parse(s string) (Version, error) {
	m := versionPattern.FindStringSubmatch(truncate(s))
	if m == nil {
		return Version{}, fmt.Errorf("version %q is not of the form v1 or v0-word.id, for example v3 or v0-sha.abc1234",
			truncate(s))
	}
	major, err := strconv.Atoi(m[1])
	if err != nil {
		return Version{}, fmt.Errorf("version %q: its number is too large", s)
	}
	return Version{Major: major, Word: m[2], ID: m[3]}, nil
}

// truncate bounds what is looked at and shown of a string from outside; a truncated one does not parse.
func truncate(s string) string { return text.Truncate(s, maxLength) }

// IsStable says whether the version is no pre-release.
func (v Version) IsStable() bool { return v.Word == "" }

// String is the spelling with a dot, as in classes, charts and metadata.
func (v Version) String() string { return v.format(".") }

// Dashed is the spelling in tags, directories and names of releases.
func (v Version) Dashed() string { return v.format("-") }

func (v Version) format(dot string) string {
	if v.IsStable() {
		return "v" + strconv.Itoa(v.Major)
	}
	return "v" + strconv.Itoa(v.Major) + "-" + v.Word + dot + v.ID
}

// Next is the stable version after v.
func (v Version) Next() Version { return Version{Major: v.Major + 1} }

// Compare orders all versions: by number, pre-releases before the stable version of the same number
// and among each other by their word, then by their ID; IDs that are numbers compare as numbers,
// and come before others.
func Compare(a, b Version) int {
	return cmp.Or(
		cmp.Compare(a.Major, b.Major),
		compareBool(a.IsStable(), b.IsStable()),
		strings.Compare(a.Word, b.Word),
		compareID(a.ID, b.ID),
	)
}

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}

func compareID(a, b string) int {
	an, bn := isNumber(a), isNumber(b)
	if !an || !bn {
		return cmp.Or(compareBool(!an, !bn), strings.Compare(a, b))
	}
	// Numbers may be longer than any integer type; and 1 and 01 are two versions, so they need an order.
	x, y := strings.TrimLeft(a, "0"), strings.TrimLeft(b, "0")
	return cmp.Or(cmp.Compare(len(x), len(y)), strings.Compare(x, y), strings.Compare(a, b))
}

// IsValidInChartVersion says whether an ID may be part of a chart's version: semantic versions know no numbers
// with a zero in front. About every 250th short hash of git is such a number.
func IsValidInChartVersion(id string) bool {
	return id != "" && !strings.Contains(id, "_") && (!isNumber(id) || id == "0" || id[0] != '0')
}

func isNumber(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}

// MarshalText writes the spelling with a dot.
func (v Version) MarshalText() ([]byte, error) { return []byte(v.String()), nil }

// UnmarshalText reads either spelling.
func (v *Version) UnmarshalText(b []byte) (err error) {
	*v, err = Parse(string(b))
	return err
}

// Kubernetes is a version of Kubernetes without or with its patch.
type Kubernetes struct{ Major, Minor, Patch int } // Patch is -1 if there is none

var kubernetesPattern = regexp.MustCompile(`^v?(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)(?:\.(0|[1-9][0-9]*))?$`)

// ParseKubernetes reads 1.36, 1.36.3 or v1.36.3.
func ParseKubernetes(s string) (Kubernetes, error) {
	m := kubernetesPattern.FindStringSubmatch(truncate(s))
	if m == nil {
		return Kubernetes{}, fmt.Errorf("version %q of Kubernetes is not of the form 1.36 or v1.36.3", truncate(s))
	}
	k := Kubernetes{Patch: -1}
	var errs [3]error
	k.Major, errs[0] = strconv.Atoi(m[1])
	k.Minor, errs[1] = strconv.Atoi(m[2])
	if m[3] != "" {
		k.Patch, errs[2] = strconv.Atoi(m[3])
	}
	if errors.Join(errs[:]...) != nil {
		return Kubernetes{}, fmt.Errorf("version %q of Kubernetes: a number is too large", s)
	}
	return k, nil
}

// HasPatch says whether the version is exact.
func (k Kubernetes) HasPatch() bool { return k.Patch >= 0 }

// String is v1.36.3, or 1.36 if there is no patch.
func (k Kubernetes) String() string {
	if !k.HasPatch() {
		return k.MinorString()
	}
	return fmt.Sprintf("v%d.%d.%d", k.Major, k.Minor, k.Patch)
}

// MinorString is 1.36.
func (k Kubernetes) MinorString() string { return fmt.Sprintf("%d.%d", k.Major, k.Minor) }

// SameMinor says whether both are patches of one minor.
func (k Kubernetes) SameMinor(o Kubernetes) bool { return k.Major == o.Major && k.Minor == o.Minor }

// CompareKubernetes orders by numbers; a version without patch comes before its patches.
func CompareKubernetes(a, b Kubernetes) int {
	return cmp.Or(cmp.Compare(a.Major, b.Major), cmp.Compare(a.Minor, b.Minor), cmp.Compare(a.Patch, b.Patch))
}
