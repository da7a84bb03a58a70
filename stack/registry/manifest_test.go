package registry

import (
	"strings"
	"testing"

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
		if len(m.Layers) > maxFiles || total > archive.Default.Packed {
			t.Errorf("%d layers of %d bytes are taken", len(m.Layers), total)
		}
	})
}
