package dependency

import (
	"slices"
	"testing"
)

func TestNewestMatching(t *testing.T) {
	have := []string{"0.9.0", "1.0.0", "v1.2.0", "1.2.0", "1.10.0", "1.11.0-rc.1", "v2.0.0", "2.1.0+a", "2.1.0+b", "3.0.0-alpha.1", "3", "latest", "", "1.2.3.4"}
	for wanted, want := range map[string]string{
		"":                   "3",
		"*":                  "3",
		"1.0.0":              "1.0.0",
		"v1.0.0":             "1.0.0",
		"=1.2.0":             "1.2.0",
		"1":                  "1.10.0",
		"1.x":                "1.10.0",
		"^1":                 "1.10.0",
		"^v1.0.0":            "1.10.0",
		"~1.2":               "1.2.0",
		">=1, <1.10":         "1.2.0",
		">=1 <1.10":          "1.2.0",
		"1.0.0 - 1.2.0":      "1.2.0",
		"<1 || >=2 <3":       "2.1.0+b",
		"2.0.0":              "v2.0.0",
		"v2.0.0":             "v2.0.0",
		"2.1.0":              "2.1.0+b",
		"2.1.0+a":            "2.1.0+a",
		"^1-0":               "1.11.0-rc.1",
		"1.11.0-rc.1":        "1.11.0-rc.1",
		">=3.0.0-0 <3.0.0":   "3.0.0-alpha.1",
		"3.0.0-alpha.1":      "3.0.0-alpha.1",
		"!=3, !=2.1.0, <2.5": "v2.0.0",
	} {
		for range 2 { // in whatever order they are listed
			got, err := newestMatching(Requirement{Name: "x", Version: wanted}, have)
			if got != want || err != nil {
				t.Errorf("%q: %s, want %s; %v", wanted, got, want, err)
			}
			if got != "" && !satisfies(wanted, got) {
				t.Errorf("%q: %s is the newest, and does not fit", wanted, got)
			}
			slices.Reverse(have)
		}
	}
	for wanted, want := range map[string]string{
		"^4":        "r does not have version ^4 of x; its newest is 3",
		"4\n||5":    "r does not have version 4 ||5 of x; its newest is 3",
		"a":         `"a" is no version and no range of them`,
		"1.2.3.4.5": `"1.2.3.4.5" is no version and no range of them`,
	} {
		if got, err := newestMatching(Requirement{Name: "x", Repository: "r", Version: wanted}, have); err == nil || err.Error() != want {
			t.Errorf("%q: %s, %v, want %s", wanted, got, err, want)
		}
	}
}
