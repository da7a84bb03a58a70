package render

import (
	"flag"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/Masterminds/sprig/v3"
	slim "github.com/go-task/slim-sprig/v3"
	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write golden files anew")

// A new version of a template library may bring functions that ask the computer or use randomness.
// Somebody must look at each before it is let in: here is the list of all that were looked at.
func TestEveryFunctionWasLookedAt(t *testing.T) {
	all := sprig.TxtFuncMap()
	maps.Copy(all, slim.TxtFuncMap())
	got := strings.Join(slices.Sorted(maps.Keys(all)), "\n") + "\n"
	const file = "testdata/functions.txt"
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), got); d != "" {
		t.Error("look at the new functions: do they ask chance, the clock, files, the network?", d)
	}
	for name := range hermeticFuncs(newRandomSource(FixedRecord(), "")) {
		if _, ok := all[name]; !ok && name != enterFunction && name != "lookup" {
			t.Errorf("%s replaces nothing", name)
		}
	}
}
