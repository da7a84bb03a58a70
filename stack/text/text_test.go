package text

import (
	"testing"
	"unicode/utf8"
)

func TestTruncate(t *testing.T) {
	for name, c := range map[string]struct {
		s     string
		limit int
		want  string
	}{
		"nothing":                        {"", 0, ""},
		"shorter than the limit":         {"abc", 10, "abc"},
		"as long as the limit":           {"abcdef", 6, "abcdef"},
		"one byte too long":              {"abcdefg", 6, "abc…"},
		"what fits may be invalid":       {"a\xff", 6, "a\xff"},
		"half a character is left out":   {"abéabé", 6, "ab…"},
		"a whole character stays":        {"aéabcd", 6, "aé…"},
		"invalid bytes are left out":     {"a\xffbcdef", 6, "ab…"},
		"room for the ellipsis only":     {"abcd", 3, "…"},
		"no room for the ellipsis":       {"abcd", 2, ""},
		"no room for anything":           {"abcd", 0, ""},
		"characters of four bytes":       {"😀😀😀", 11, "😀😀…"},
		"characters of four bytes, less": {"😀😀😀", 10, "😀…"},
	} {
		t.Run(name, func(t *testing.T) {
			got := Truncate(c.s, c.limit)
			if got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
			if len(got) > c.limit || got != c.s && !utf8.ValidString(got) {
				t.Errorf("%d bytes, valid: %t", len(got), utf8.ValidString(got))
			}
		})
	}
}
