package registry

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/polder-kaas/polder/stack/archive"
)

// Whatever a manifest says, what is taken of it is flat, of bounded size, and has digests.
func FuzzParseManifest(f *testing.F) {
	layer := `{"mediaType":"a/b","digest":"sha256:` + strings.Repeat("0", 64) + `","size":3,"annotations":{"org.opencontainers.image.title":"a.yaml"}}`
	for _, s := range []string{
		`{"schemaVersion":2,"artifactType":"` + artifactType + `","layers":[` + layer + `]}`,
		`{"schemaVersion":2,"artifactType":"` + nextArtifactType + `","layers":[` + layer + `,` + layer + `]}`,
		`{"schemaVersion":2,"artifactType":"` + artifactType + `","layers":[{"size":-1,"annotations":{"org.opencontainers.image.title":"../x"}}]}`,
		`{"schemaVersion":2,"SCHEMAVERSION":1,"layers":null}`,
		`[]`, ``, `null`, strings.Repeat("[", 10000),
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := parseManifest(b)
		if err != nil {
			return
		}
		var total int64
		seen := map[string]bool{}
		for _, l := range m.Layers {
			name := l.Annotations[ocispec.AnnotationTitle]
			if name == "" || strings.ContainsAny(name, "/\\\x00") || name[0] == '.' || seen[strings.ToLower(name)] {
				t.Errorf("%q is taken", name)
			}
			seen[strings.ToLower(name)] = true
			if l.Size < 0 || l.Digest.Validate() != nil {
				t.Errorf("%+v is taken", l)
			}
			total += l.Size
		}
		if len(m.Layers) > maxFiles || total > archive.DefaultLimits.Packed {
			t.Errorf("%d layers of %d bytes are taken", len(m.Layers), total)
		}
	})
}

// Files are what a manifest describes only if nothing is more, less or different.
func TestVerify(t *testing.T) {
	files := archive.Tree{"a": []byte("1"), "b": []byte("2"), "empty": nil}
	manifest := func(files archive.Tree) []byte {
		var layers []string
		for _, name := range files.Names() {
			layers = append(layers, fmt.Sprintf(`{"digest":%q,"size":%d,"annotations":{"org.opencontainers.image.title":%q}}`, digest.FromBytes(files[name]),
				len(files[name]), name))
		}
		return []byte(`{"schemaVersion":2,"artifactType":"` + artifactType + `","layers":[` + strings.Join(layers, ",") + `]}`)
	}
	m := manifest(files)
	sum := digest.FromBytes(m).String()
	if err := Verify(sum, m, files); err != nil {
		t.Error(err)
	}
	for name, other := range map[string]archive.Tree{
		"less":         {"a": []byte("1"), "empty": nil},
		"no empty one": {"a": []byte("1"), "b": []byte("2")},
		"more":         {"a": []byte("1"), "b": []byte("2"), "empty": nil, "c": nil},
		"another":      {"a": []byte("1"), "b": []byte("3"), "empty": nil},
		"a longer one": {"a": []byte("1"), "b": []byte("22"), "empty": nil},
		"swapped":      {"a": []byte("2"), "b": []byte("1"), "empty": nil},
		"renamed":      {"a": []byte("1"), "c": []byte("2"), "empty": nil},
		"nothing":      nil,
	} {
		if err := Verify(sum, m, other); !errors.Is(err, ErrDigest) {
			t.Errorf("%s: %v", name, err)
		}
		if o := manifest(other); !errors.Is(Verify(sum, o, other), ErrDigest) {
			t.Errorf("%s, with its own manifest: it is taken", name)
		}
	}
	for _, bad := range []string{"", "[]", `{"schemaVersion":2}`} {
		if err := Verify(digest.FromString(bad).String(), []byte(bad), nil); !errors.Is(err, ErrInvalid) {
			t.Errorf("%q: %v", bad, err)
		}
	}
}
