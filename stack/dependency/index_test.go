package dependency

import (
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"

	"github.com/polder-kaas/polder/stack/document"
)

// realIndex is an index as helm repo index writes it.
const realIndex = `apiVersion: v1
entries:
  cilium:
  - annotations:
      artifacthub.io/crds: |
        - kind: CiliumNetworkPolicy
          version: v2
    apiVersion: v2
    appVersion: 1.18.2
    created: "2025-09-16T09:15:21.108731557Z"
    dependencies:
    - condition: a.enabled
      name: a
      repository: https://a.example
      version: 9.9.9
    description: eBPF-based Networking, Security, and Observability
    digest: ABCDEF
    name: cilium
    urls:
    - https://helm.cilium.io/cilium-1.18.2.tgz
    - https://mirror.example/cilium-1.18.2.tgz
    version: 1.18.2
  - apiVersion: v2
    name: cilium
    urls:
    - cilium-1.10.tgz
    version: 1.10
  tetragon:
  - digest: sha256:abcdef
    urls: [tetragon.tgz]
    version: "1.0.0"
generated: "2025-09-16T09:15:21.1Z"
`

func TestParseIndex(t *testing.T) {
	want := index{
		"cilium":   {{"1.18.2", "https://helm.cilium.io/cilium-1.18.2.tgz", "sha256:abcdef"}, {"1.10", "cilium-1.10.tgz", ""}},
		"tetragon": {{"1.0.0", "tetragon.tgz", "sha256:abcdef"}},
	}
	for name, text := range map[string]string{
		"as Helm writes it": realIndex,
		"as JSON": `{"apiVersion":"v1","entries":{"cilium":[{"version":"1.18.2","digest":"abcdef","urls":["https://helm.cilium.io/cilium-1.18.2.tgz"]},` +
			`{"version":"1.10","urls":["cilium-1.10.tgz"]}],"tetragon":[{"version":"1.0.0","digest":"abcdef","urls":["tetragon.tgz"]}]},"generated":"now"}`,
		"aliases elsewhere": "a: &a [1]\nb: *a\n" + realIndex,
	} {
		got, err := parseIndex([]byte(text))
		if d := cmp.Diff(want, got, cmp.AllowUnexported(indexEntry{})); d != "" || err != nil {
			t.Error(name, d, err)
		}
	}
}

// An index that is made to be costly costs little.
func TestIndexBombs(t *testing.T) {
	const size = maxIndex / 4 // more of the same takes only longer
	fill := func(head, unit string) string { return head + strings.Repeat(unit, (size-len(head))/len(unit)) }
	aliases := strings.Builder{}
	aliases.WriteString("a: &a [x, x, x, x, x, x, x, x, x]\n")
	for c := 'b'; c <= 'z'; c++ {
		aliases.WriteString(string(c) + ": &" + string(c) + " [" + strings.Repeat("*"+string(c-1)+", ", 9) + "]\n")
	}
	many := func(n int, unit string) string { return strings.Repeat(unit, n) }
	for name, text := range map[string]string{
		"aliases":               aliases.String() + "entries: {x: *z}\n",
		"aliases in a row":      "a: &a [" + many(100_000, "{},") + "]\nentries: {" + many(100_000, "? *a, ") + "}",
		"keys":                  fill("entries:\n", "  a:\n"),
		"keys that are allowed": "entries:\n" + many(300_000, "  a:\n"),
		"others, not allowed":   fill("entries: {", "a,"),
		"values, allowed":       "entries: {x: [" + many(450_000, "1,") + "]}",
		"empty maps":            fill("entries: [", "{},"),
		"dashes":                fill("entries:\n", "- - - - - - - -\n"),
		"brackets":              fill("entries: ", "["),
		"comments":              fill("", "#\n"),
		"one line of text":      fill("entries: ", "x"),
		"a long quoted text":    fill("entries: \"", "\\n"),
		"anchors":               fill("entries:\n", "- &a\n"),
		"returns":               fill("entries:\r", "-\r"),
		"other ends of lines":   fill("entries:\u2028", "-\u2028"),
	} {
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			began := time.Now()
			i, err := parseIndex([]byte(text))
			took := time.Since(began)
			runtime.ReadMemStats(&after)
			if got := (after.TotalAlloc - before.TotalAlloc) >> 20; got > 200 {
				t.Errorf("it took %d MiB", got)
			}
			if took > 30*time.Second { // far more than it takes, as others compute here too
				t.Errorf("it took %s", took)
			}
			if err != nil && strings.Contains(err.Error(), "\n") || err == nil && len(i["x"]) > 0 {
				t.Error(i, err)
			}
			t.Logf("%s: %d MiB, %v", took.Round(time.Millisecond), (after.TotalAlloc-before.TotalAlloc)>>20, err)
		})
	}
}

// The estimate of values holds for whatever is YAML, and what was read is usable.
func FuzzParseIndex(f *testing.F) {
	for _, text := range []string{
		realIndex, "", "entries: {x: [{version: 1, urls: [a]}]}", "entries: &a {x: *a}", "{a,b,c}", "[a: b, c: d]", "[:,:,:]", "[?,?]", "- ? - a\n", "? ? ? a\n",
		"a: |\n  text\n---\nb: c\n", "\ufeffentries: {}", "entries:\r  x:\r  - version: 1\r", "!!binary a: !!set {? b}", "\"a\":\"b\"", "{\"a\":[1,2],\"b\":{}}",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var root yaml.Node
		if err := yaml.Unmarshal(b, &root); err == nil && nodes(&root) > 2*document.EstimateValues(b)+5 {
			t.Errorf("%d values, and %d were estimated", nodes(&root), document.EstimateValues(b))
		}
		i, err := parseIndex(b)
		if err != nil {
			if i != nil || strings.Contains(err.Error(), "\n") {
				t.Errorf("%v, %v", i, err)
			}
			return
		}
		for name, list := range i {
			for _, l := range list {
				if l.version == "" || l.address == "" || l.digest != "" && !strings.HasPrefix(l.digest, "sha256:") {
					t.Errorf("%s: %+v", name, l)
				}
				if at, err := l.resolveURL("https://x.example/charts"); err == nil && !strings.HasPrefix(at, "https://") && !strings.HasPrefix(at, "http://") &&
					!strings.HasPrefix(at, "oci://") {
					t.Errorf("%s: %s", name, at)
				}
			}
		}
	})
}

func nodes(n *yaml.Node) int {
	all := 1
	for _, c := range n.Content {
		all += nodes(c)
	}
	return all
}
