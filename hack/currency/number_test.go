package main

import "testing"

func TestNumber(t *testing.T) {
	for _, c := range []struct{ version, next, nextMinor, minor string }{
		{"v1.36.3", "v1.36.4", "v1.37.0", "1.36"},
		{"v0.9.9", "v0.9.10", "v0.10.0", "0.9"},
		{"v2.5.0+incompatible", "v2.5.1+incompatible", "v2.6.0+incompatible", "2.5"},
		{"v1.2.3-rc.1", "v1.2.3", "v1.3.0", "1.2"},
		{"v3.0.0-beta.2+incompatible", "v3.0.0+incompatible", "v3.1.0+incompatible", "3.0"},
	} {
		n, err := parseVersionNumber(c.version)
		if err != nil {
			t.Errorf("%s: %v", c.version, err)
			continue
		}
		if n.String() != c.version || n.nextRelease().String() != c.next || n.nextMinor().String() != c.nextMinor || n.minorString() != c.minor {
			t.Errorf("%s is read as %s, %s, %s, %s; want %+v", c.version, n, n.nextRelease(), n.nextMinor(), n.minorString(), c)
		}
	}
	for _, bad := range []string{"", "1.2.3", "v1", "v1.2", "v1.2-rc.1", "latest", "v1.99999999999999999999.0"} {
		if n, err := parseVersionNumber(bad); err == nil {
			t.Errorf("%q is read as %s", bad, n)
		}
	}
}

func TestCompareMinors(t *testing.T) {
	a, b, c := versionNumber{Major: 1, Minor: 9, Patch: 7}, versionNumber{Major: 1, Minor: 10}, versionNumber{Major: 2}
	if compareMinors(a, b) >= 0 || compareMinors(c, b) <= 0 || compareMinors(a, versionNumber{Major: 1, Minor: 9}) != 0 {
		t.Error("minors are in the wrong order")
	}
}
