package topology

import (
	"testing"
)

func TestIsSubset(t *testing.T) {
	type m = map[string]any
	for name, c := range map[string]struct {
		want, have any
		is         bool
	}{
		"the same":                   {m{"a": "b"}, m{"a": "b"}, true},
		"more":                       {m{"a": "b"}, m{"a": "b", "c": "d"}, true},
		"less":                       {m{"a": "b", "c": "d"}, m{"a": "b"}, false},
		"another value":              {m{"a": "b"}, m{"a": "c"}, false},
		"deep":                       {m{"a": m{"b": int64(1)}}, m{"a": m{"b": int64(1), "c": true}}, true},
		"deep, another":              {m{"a": m{"b": int64(1)}}, m{"a": m{"b": int64(2)}}, false},
		"no map":                     {m{"a": m{}}, m{"a": "x"}, false},
		"a list with more in it":     {[]any{m{"a": "b"}}, []any{m{"a": "b", "c": "d"}}, true},
		"a longer list":              {[]any{"a"}, []any{"a", "b"}, false},
		"a list in another order":    {[]any{"a", "b"}, []any{"b", "a"}, false},
		"no list":                    {[]any{"a"}, "a", false},
		"an empty map, and nothing":  {m{}, nil, false},
		"an empty list, and nothing": {[]any{}, nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := isSubset(c.want, c.have); got != c.is {
				t.Errorf("%t, want %t", got, c.is)
			}
		})
	}
}
