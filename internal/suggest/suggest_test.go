package suggest

import (
	"strings"
	"testing"
)

func TestClosest(t *testing.T) {
	among := []string{"registryMirrors", "certSANs", "podSecurityStandard", "oidcConfig", "a"}
	for word, want := range map[string]string{
		"registryMirrors":       "registryMirrors",
		"registrymirror":        "registryMirrors",
		"registry_mirrors":      "registryMirrors",
		"certSans":              "certSANs",
		"cretSANs":              "certSANs",
		"podSecurity":           "", // too far away
		"oidc":                  "",
		"":                      "",
		"x":                     "",
		"podSecurtyStandart":    "podSecurityStandard",
		"somethingElseEntirely": "",
	} {
		t.Run(word, func(t *testing.T) {
			if got, ok := Closest(word, among); got != want || ok != (want != "") {
				t.Errorf("%q, %t; want %q", got, ok, want)
			}
		})
	}
	for n, want := range map[int]bool{64: true, 65: false} {
		word := strings.Repeat("ä", n)
		if _, ok := Closest(word, []string{word}); ok != want {
			t.Errorf("a word of %d letters: %t", n, ok)
		}
	}
	if got := Hint("certSans", among); got != "; did you mean certSANs?" {
		t.Error(got)
	}
	if got := Hint("nothing", among); got != "" {
		t.Error(got)
	}
}

func TestDistance(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"", "abc", 3}, {"abc", "", 3}, {"kitten", "sitting", 3}, {"flaw", "lawn", 2}, {"same", "same", 0}, {"ab", "ba", 2}, {"abc", "axc", 1}, {"abc",
		"bc", 1}, {"abc", "ab", 1}, {"a", "A", 1}, {"für", "fur", 1}} {
		if got := Distance(c.a, c.b); got != c.want {
			t.Errorf("%q and %q: %d, want %d", c.a, c.b, got, c.want)
		}
	}
}
