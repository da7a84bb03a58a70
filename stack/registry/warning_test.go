package registry_test

import (
	"errors"
	"testing"

	stacks "github.com/polder-kaas/polder/stack/registry"
	"github.com/polder-kaas/polder/stack/version"
)

func releaseName(t *testing.T, name string) version.ReleaseName {
	t.Helper()
	r, err := version.ParseReleaseName(name)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// warningTexts gives the sentences of warnings.
func warningTexts(warnings []stacks.Warning) (texts []string) {
	for _, w := range warnings {
		texts = append(texts, w.String())
	}
	return texts
}

func warningKinds(warnings []stacks.Warning) (kinds []stacks.WarningKind) {
	for _, w := range warnings {
		kinds = append(kinds, w.Kind)
	}
	return kinds
}

func TestWarning(t *testing.T) {
	no, alike := errors.New("no"), releaseName(t, "docker-ferrol-1-27-x-1-28-v1")
	v1, dashed := releaseName(t, "docker-ferrol-1-27-v1"), releaseName(t, "docker-ferrol-1-27-v0-sha.abc")
	for name, c := range map[string]struct {
		warning  stacks.Warning
		text     string
		isOfLine bool // docker-ferrol-1-27
	}{
		"not a directory": {
			stacks.Warning{Kind: stacks.NotDirectory, Name: "docker-ferrol-1-27-v1"},
			`"docker-ferrol-1-27-v1" is left out: it is no directory`, true,
		},
		"not a directory of the line": {
			stacks.Warning{Kind: stacks.NotDirectory, Name: "notes"}, `"notes" is left out: it is no directory`, false,
		},
		"no release": {
			stacks.Warning{Kind: stacks.NotRelease, Item: "tag", Name: "latest", Err: no}, "tag is left out: no", false,
		},
		"no release, but of the line": {
			stacks.Warning{Kind: stacks.NotRelease, Item: "tag", Name: "docker-ferrol-1-27-latest", Err: no}, "tag is left out: no", true,
		},
		"no release, of a longer line": {
			stacks.Warning{Kind: stacks.NotRelease, Item: "tag", Name: "docker-ferrol-1-270-x", Err: no}, "tag is left out: no", false,
		},
		"the line is in the reason only": {
			stacks.Warning{Kind: stacks.NotRelease, Item: "tag", Name: "x", Err: errors.New("docker-ferrol-1-27-v1")},
			"tag is left out: docker-ferrol-1-27-v1", false,
		},
		"another spelling": {
			stacks.Warning{Kind: stacks.Misspelled, Item: "directory", Name: "docker-ferrol-1-27-v0-sha.abc", Release: dashed},
			`directory "docker-ferrol-1-27-v0-sha.abc" is left out: the name of this release is spelled docker-ferrol-1-27-v0-sha-abc`, true,
		},
		"cannot be read": {
			stacks.Warning{Kind: stacks.Unreadable, Item: "tag", Name: "docker-ferrol-1-27-v1", Release: v1, Err: no},
			"docker-ferrol-1-27-v1 is left out: no", true,
		},
		"a release of another line, whose name begins alike": {
			stacks.Warning{Kind: stacks.Unreadable, Item: "tag", Name: alike.Tag(), Release: alike, Err: no},
			"docker-ferrol-1-27-x-1-28-v1 is left out: no", false,
		},
		"another Kubernetes": {
			stacks.Warning{Kind: stacks.InvalidKubernetes, Item: "tag", Name: "docker-ferrol-1-27-v1", Release: v1, Kubernetes: "v1.99.0",
				Err: no},
			`docker-ferrol-1-27-v1: its manifest says that it is for Kubernetes "v1.99.0": no`, true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := c.warning.String(); got != c.text {
				t.Errorf("%s, want %s", got, c.text)
			}
			if got := c.warning.IsOfLine(v1.ReleaseLine); got != c.isOfLine {
				t.Errorf("of the line: %t", got)
			}
		})
	}
}
