package reconcile

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestTruncateMessage(t *testing.T) {
	for name, c := range map[string]struct{ give, want string }{
		"nothing stays nothing":                    {"", ""},
		"what fits stays as it is":                 {"a b", "a b"},
		"many lines become one":                    {" a\n\tb\r\n\n c ", "a b c"},
		"as much as may be stays":                  {strings.Repeat("a", 1024), strings.Repeat("a", 1024)},
		"one more is cut, and shows it":            {strings.Repeat("a", 1025), strings.Repeat("a", 1021) + "…"},
		"spaces are counted after they are joined": {"a" + strings.Repeat(" ", 2000) + "b", "a b"},
		"no character is cut in two":               {strings.Repeat("a", 1020) + "ééé", strings.Repeat("a", 1020) + "…"},
	} {
		t.Run(name, func(t *testing.T) {
			got := TruncateMessage(c.give)
			if got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
			if len(got) > maxMessageBytes || !utf8.ValidString(got) {
				t.Errorf("%d bytes, valid: %t", len(got), utf8.ValidString(got))
			}
		})
	}
}
