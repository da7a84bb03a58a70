package condition_test

import (
	"strings"
	"testing"

	"github.com/polder-kaas/polder/stack/condition"
)

func TestEval(t *testing.T) {
	daemonSet := map[string]any{"status": map[string]any{"numberReady": int64(3), "desiredNumberScheduled": int64(3)}}
	for name, tc := range map[string]struct {
		expression string
		objects    map[string]map[string]any
		met        bool
		missing    string
		err        string
	}{
		"true": {expression: "ds.status.numberReady == ds.status.desiredNumberScheduled", objects: map[string]map[string]any{"ds": daemonSet},
			met: true},
		"false":         {expression: "ds.status.numberReady > 3", objects: map[string]map[string]any{"ds": daemonSet}},
		"no object yet": {expression: "ds.status.numberReady > 3", missing: `object "ds" does not exist yet`},
		"no field yet": {expression: "ds.status.readyReplicas > 3", objects: map[string]map[string]any{"ds": daemonSet},
			missing: "the field readyReplicas is not there yet"},
		"no truth value": {expression: "ds.status.numberReady", objects: map[string]map[string]any{"ds": daemonSet}, err: "must be true or false"},
		"too costly":     {expression: nested("ds.status.list"), objects: map[string]map[string]any{"ds": {"status": map[string]any{"list": []any{1, 2, 3, 4, 5, 6, 7, 8, 9, 0}}}}, err: "cost limit exceeded"},
		"a comparison fails": {expression: "ds.status > 3", objects: map[string]map[string]any{"ds": daemonSet},
			missing: "it cannot be said yet: no such overload: _>_"},
		"a list is empty": {expression: "ds.status.conditions[0].status == 'True'",
			objects: map[string]map[string]any{"ds": {"status": map[string]any{"conditions": []any{}}}}, missing: "it cannot be said yet: index out of bounds: 0"},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := condition.Compile(tc.expression, []string{"ds"})
			if err != nil {
				t.Fatal(err)
			}
			met, missing, err := p.Eval(tc.objects)
			if met != tc.met || missing != tc.missing || (err != nil) != (tc.err != "") || err != nil && !strings.Contains(err.Error(), tc.err) {
				t.Errorf("%t, %q, %v", met, missing, err)
			}
		})
	}
}

// nested looks at every combination of six items of a list, which costs too much for ten items.
func nested(list string) string {
	out := "a+b+c+d+e+f >= 0"
	for _, v := range []string{"f", "e", "d", "c", "b", "a"} {
		out = list + ".all(" + v + ", " + out + ")"
	}
	return out
}

func TestCompile(t *testing.T) {
	for expression, want := range map[string]string{
		"":                              "is empty",
		"ds.status ==":                  "1:13: Syntax error",
		"other.status == 1":             "1:1: undeclared reference to 'other'",
		"'text'":                        "a value of type string; it must be true or false",
		strings.Repeat("x", 20_000):     "has 20000 characters",
		"ds.status.foo() == 1":          "undeclared reference to 'foo'",
		nested("[1,2,3,4,5,6,7,8,9,0]"): "even on the smallest objects",
	} {
		_, err := condition.Compile(expression, []string{"ds"})
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%.40s: %v, want %s", expression, err, want)
		}
	}
	if _, err := condition.Compile("true", []string{"not a key"}); err == nil {
		t.Error("a key that is no name was taken")
	}
}

func FuzzCompile(f *testing.F) {
	for _, s := range []string{"ds.status.a == 1", "[1].all(x, x > 0)", "((((", "has(ds.a.b)"} {
		f.Add(s)
	}
	f.Fuzz(func(_ *testing.T, s string) {
		p, err := condition.Compile(s, []string{"ds"})
		if err != nil {
			return
		}
		_, _, _ = p.Eval(map[string]map[string]any{"ds": {"status": map[string]any{"a": int64(1)}}})
	})
}
