package document_test

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/polder-kaas/polder/stack/document"
)

func TestValues(t *testing.T) {
	const text = `
tooLarge: 1e999
# a comment
text: yes
quoted: "1"
number: 7
hex: 0x10
large: 18446744073709551615
float: 1.5
truth: true
nothing: null
date: 2026-11-15
1: one
list: [a, 2, {b: c}]
block: |
  cat << EOF
  hello
base: &base {x: 1, y: 2}
derived:
  <<: *base
  y: 3
both:
  <<: [*base, {x: 9, z: 4}]
---
---
second
`
	docs, err := document.Parse("f.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	want := []any{map[string]any{
		"tooLarge": "1e999", "text": "yes", "quoted": "1", "number": int64(7), "hex": int64(16), "large": 18446744073709551615.0, "float": 1.5, "truth": true,
		"nothing": nil,
		"date":    "2026-11-15", "1": "one", "list": []any{"a", int64(2), map[string]any{"b": "c"}}, "block": "cat << EOF\nhello\n",
		"base":    map[string]any{"x": int64(1), "y": int64(2)},
		"derived": map[string]any{"x": int64(1), "y": int64(3)},
		"both":    map[string]any{"x": int64(1), "y": int64(2), "z": int64(4)},
	}, "second"}
	got := make([]any, len(docs))
	for i, d := range docs {
		got[i] = d.Value()
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func TestRefused(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"a key twice":        {"a: 1\nb: 2\na: 3\n", `f.yaml:3: "a" is here a second time, after line 1`},
		"a key twice, deep":  {"x:\n  a: 1\n  \"a\": 2\n", `f.yaml:3: "a" is here a second time, after line 2`},
		"not YAML":           {"a: [1\n", "this is not YAML"},
		"tabs":               {"a:\n\tb: 1\n", "this is not YAML"},
		"not UTF-8":          {"a: 1\nb: \xff\n", "f.yaml:2: this is not UTF-8"},
		"an unknown type":    {"a: !secret x\n", "f.yaml:1: the type !secret is not known here"},
		"a huge number":      {"a: !!float 1e999\n", "f.yaml:1: the number 1e999 is too large"},
		"no number":          {"a: .nan\n", "f.yaml:1: the number .nan"},
		"an object as a key": {"? {a: 1}\n: b\n", "f.yaml:1: a key must be a string"},
		"merging a string":   {"a: &a x\nb:\n  <<: *a\n", "f.yaml:3: << must name an object"},
		"no such anchor":     {"a: *b\n", "this is not YAML"},
		"itself":             {"a: &a [*a]\n", "levels deep"},
		"too deep":           {strings.Repeat("[", 200) + strings.Repeat("]", 200), "levels deep"},
		"ten thousand deep":  {strings.Repeat("[", 10_000) + strings.Repeat("]", 10_000), "f.yaml"},
		"an alias bomb":      {bomb(), "there are more than 200000 values"},
		"many documents":     {strings.Repeat("---\na: 1\n", 1001), "there are more than 1000 documents"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := document.Parse("f.yaml", []byte(c.text))
			var e *document.Error
			if !errors.As(err, &e) || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("%v, want %s", err, c.want)
			}
			if strings.Contains(err.Error(), "\n") || len(err.Error()) > 500 {
				t.Errorf("not one sentence: %q", err)
			}
		})
	}
}

// bomb is nine lists of nine aliases each: 9^9 values if they are unfolded.
func bomb() string {
	var b strings.Builder
	b.WriteString("a0: &a0 [x, x, x, x, x, x, x, x, x]\n")
	for i := 1; i < 9; i++ {
		fmt.Fprintf(&b, "a%d: &a%d [%s]\n", i, i, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d, ", i-1), 9), ", "))
	}
	return b.String()
}

func TestParseOne(t *testing.T) {
	for text, ok := range map[string]bool{"a: 1": true, "": false, "a: 1\n---\nb: 2": false, "# nothing": false, "---\na: 1\n---\n": true} {
		if _, err := document.ParseOne("f", []byte(text)); (err == nil) != ok {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestDecode(t *testing.T) {
	type into struct {
		Versions struct {
			Stack string   `json:"stack"`
			List  []string `json:"list"`
		} `json:"versions"`
	}
	d, err := document.ParseOne("m.yaml", []byte("other: true\nversions:\n  stack: v1\n  list: [a]\n"))
	if err != nil {
		t.Fatal(err)
	}
	var v into
	if err := d.Decode(&v); err != nil || v.Versions.Stack != "v1" || len(v.Versions.List) != 1 {
		t.Errorf("%+v, %v", v, err)
	}
	for text, want := range map[string]string{
		"versions:\n  stack: 3\n":     "m.yaml:2: versions.stack must be a string, not number",
		"a: 1\nversions: [1]\n":       "m.yaml:2: versions must be an object, not array",
		"versions: {\n  list: true}":  "m.yaml:2: versions.list must be a list, not bool",
		"- versions\n":                "must be an object, not array",
		"a: 1\nversions:\n  list: x ": "m.yaml:3: versions.list must be a list, not string",
	} {
		d, err := document.ParseOne("m.yaml", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		if err := d.Decode(&v); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

func TestLine(t *testing.T) {
	d, err := document.ParseOne("f", []byte("a: 1\nb:\n  c:\n    d: 2\n  e: |\n    text\n"))
	if err != nil {
		t.Fatal(err)
	}
	for keys, want := range map[string]int{"a": 1, "b.c.d": 4, "b.e": 5, "b.c.missing": 3, "missing": 1, "a.b": 1} {
		if got := d.Line(strings.Split(keys, ".")...); got != want {
			t.Errorf("%s is at line %d, want %d", keys, got, want)
		}
	}
}

// A file of the largest size that is nothing but values is refused before it fills the memory.
func TestManyValues(t *testing.T) {
	for name, text := range map[string]string{"keys": "{" + strings.Repeat("a,", 5<<19) + "}", "items": strings.Repeat("- a\n", 5<<18),
		"lists": strings.Repeat("[", 5<<20)} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := document.Parse("f", []byte(text))
		runtime.ReadMemStats(&after)
		if err == nil || after.TotalAlloc-before.TotalAlloc > 64<<20 {
			t.Errorf("%s: %v after %d MiB", name, err, (after.TotalAlloc-before.TotalAlloc)>>20)
		}
	}
	if _, err := document.Parse("f", []byte(strings.Repeat("a: |\n"+strings.Repeat("  some text\n", 1000)+"---\n", 100))); err != nil {
		t.Error("much text is not many values:", err)
	}
}

// Nothing from outside makes it panic, and what is read is what JSON can say.
func FuzzParse(f *testing.F) {
	f.Add("a: 1\nb: [x, {y: z}]\n---\nc: &c {d: e}\nf: *c\n")
	f.Add("a: &a [*a]")
	f.Add("? {a: 1}\n: b")
	f.Add("<<: [1]")
	f.Fuzz(func(t *testing.T, text string) {
		docs, err := document.Parse("f", []byte(text))
		if err != nil {
			var e *document.Error
			if !errors.As(err, &e) {
				t.Errorf("%T: %v", err, err)
			}
			return
		}
		for _, d := range docs {
			var v any
			if err := d.Decode(&v); err != nil {
				t.Errorf("%q: %v", text, err)
			}
			d.Line("a", "b")
		}
	})
}
