package registry_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2"
	"oras.land/oras-go/v2/content/file"

	"github.com/polder-kaas/polder/stack/archive"
	stacks "github.com/polder-kaas/polder/stack/registry"
)

const v3 = "docker-ferrol-1-27-v3"

func TestPublishAndPull(t *testing.T) {
	s, ref := open(t, start(t), stacks.Options{})
	want := files(t, "v3", archive.Tree{"empty.txt": {}, "topology-docker.yaml": []byte("{}")})
	p := publish(t, s, release(t, "v3", archive.Tree{"empty.txt": {}, "topology-docker.yaml": []byte("{}")}))
	if p.Existed || p.Reference.Tag != v3 || p.Reference.Location() != ref.Location() {
		t.Errorf("%+v", p)
	}
	for name, r := range map[string]stacks.Reference{
		"by its tag":    ref.WithTag(v3),
		"by its digest": {Digest: p.Reference.Digest},
		"by both":       p.Reference,
	} {
		got, err := s.Pull(t.Context(), r)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if d := cmp.Diff(want, got.Release.Files); d != "" || got.Release.Name.Tag() != v3 || got.Digest != p.Reference.Digest {
			t.Errorf("%s: %s %s\n%s", name, got.Release.Name, got.Digest, d)
		}
		if err := stacks.Verify(got.Digest, got.Manifest, got.Release.Files); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if again := publish(t, s, release(t, "v3", archive.Tree{"empty.txt": {}, "topology-docker.yaml": []byte("{}")})); !again.Existed ||
		again.Reference != p.Reference {
		t.Errorf("%+v, first %+v", again, p)
	}
}

// What we write is what the tools of today write, but for the time.
func TestManifestIsThatOfOthers(t *testing.T) {
	kinds := map[string]string{
		"metadata.yaml":     "application/vnd.scs.metadata.layer.v1+yaml",
		"hashes.json":       "application/vnd.scs.hashes.layer.v1+yaml",
		"clusteraddon.yaml": "application/vnd.scs.cluster-addon.config.layer.v1+yaml",
		"node-images.yaml":  "application/vnd.scs.node-image.config.layer.v1+yaml",
		"docker-ferrol-1-27-cluster-class-v3.tgz": "application/vnd.scs.cluster-class.v1.tar+gzip",
		"docker-ferrol-1-27-cluster-addon-v2.tgz": "application/vnd.scs.cluster-addon.layer.v1.tar+gzip",
		"docker-ferrol-1-27-node-image-v1.tgz":    "application/vnd.scs.node-image.layer.v1.tar+gzip",
		"README.txt":                              "", // the library makes it application/vnd.oci.image.layer.v1.tar
	}
	r := release(t, "v3", archive.Tree{
		"clusteraddon.yaml": []byte("addonStages: {}"), "node-images.yaml": {}, "README.txt": []byte("x"), "docker-ferrol-1-27-node-image-v1.tgz": []byte("y"),
	})
	dir := filepath.Join(t.TempDir(), "release")
	if err := archive.WriteDir(dir, r.Files); err != nil {
		t.Fatal(err)
	}
	others, err := file.New(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer others.Close()
	var layers []ocispec.Descriptor
	for _, name := range slices.Sorted(maps.Keys(kinds)) {
		d, err := others.Add(t.Context(), name, kinds[name], "")
		if err != nil {
			t.Fatal(err)
		}
		layers = append(layers, d)
	}
	d, err := oras.PackManifest(t.Context(), others, oras.PackManifestVersion1_1, "application/vnd.scs.cluster-stacks.v1", oras.PackManifestOptions{
		Layers: layers, ManifestAnnotations: map[string]string{"kubernetesVersion": "v1.27.3", "hash": "abcdefg", ocispec.AnnotationCreated: "1970-01-01T00:00:00Z"},
	})
	if err != nil {
		t.Fatal(err)
	}
	s, _ := open(t, start(t), stacks.Options{})
	if p := publish(t, s, r); p.Reference.Digest != d.Digest.String() {
		t.Errorf("%s, theirs is %s", p.Reference.Digest, d.Digest)
	}
}

// upstream writes a release to a registry by hand, as other tools do.
func upstream(t testing.TB, ref, tag, artifactType, annotations string, f archive.Tree) string {
	t.Helper()
	var layers []string
	for _, name := range f.Names() {
		layers = append(layers, fmt.Sprintf(`{"mediaType":"application/vnd.oci.image.layer.v1.tar","digest":%q,"size":%d,"annotations":{"org.opencontainers.image.title":%q}}`, putBlob(t, ref, f[name]), len(f[name]), name))
	}
	return putManifest(t, ref, tag, fmt.Sprintf(`{
  "schemaVersion": 2, "mediaType": %q, "artifactType": %q,
  "config": {"mediaType":"application/vnd.oci.empty.v1+json","digest":"sha256:44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a","size":2,"data":"e30="},
  "layers": [%s], "annotations": %s}`, manifestType, artifactType, strings.Join(layers, ","), annotations))
}

func TestReadsWhatOthersWrite(t *testing.T) {
	ref := start(t)
	s, r := open(t, ref, stacks.Options{})
	for _, kind := range []string{"application/vnd.scs.cluster-stacks.v1", "application/vnd.clusterstack.release"} {
		want := files(t, "v0-sha.abc1234", archive.Tree{"of": []byte(kind)})
		d := upstream(t, ref, "docker-ferrol-1-27-v0-sha-abc1234", kind, `{"org.opencontainers.image.created":"2024-05-01T00:00:00Z"}`, want)
		got, err := s.Pull(t.Context(), r.WithTag("docker-ferrol-1-27-v0-sha-abc1234"))
		if err != nil {
			t.Errorf("%s: %v", kind, err)
			continue
		}
		if diff := cmp.Diff(want, got.Release.Files); diff != "" || got.Digest != d || got.Release.Name.Class() != "docker-ferrol-1-27-v0-sha.abc1234" {
			t.Errorf("%s: %s\n%s", kind, got.Digest, diff)
		}
	}
}

func TestPublishedVersionsStay(t *testing.T) {
	ref := start(t)
	s, r := open(t, ref, stacks.Options{})
	first := publish(t, s, release(t, "v3", nil))
	other := release(t, "v3", archive.Tree{"more.txt": []byte("x")})
	_, err := s.Publish(t.Context(), other)
	if want := "publishing " + ref + ":" + v3 + ": already published: " + v3 + " is there with another content, " + first.Reference.Digest +
		"; publish it as a new version"; !errors.Is(err, stacks.ErrExists) || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
	if got, err := s.Pull(t.Context(), r.WithTag(v3)); err != nil || got.Digest != first.Reference.Digest {
		t.Errorf("%v", err)
	}
	by, _ := open(t, ref, stacks.Options{Overwrite: true})
	second := publish(t, by, other)
	if got, err := s.Pull(t.Context(), r.WithTag(v3)); err != nil || got.Digest != second.Reference.Digest || second.Existed {
		t.Errorf("overwritten: %v", err)
	}
	if _, err := s.Pull(t.Context(), first.Reference); !errors.Is(err, stacks.ErrMoved) ||
		!strings.Contains(err.Error(), "the tag has moved: "+v3+" has another content now, "+second.Reference.Digest) {
		t.Errorf("moved: %v", err)
	}
	if got, err := s.Pull(t.Context(), stacks.Reference{Digest: first.Reference.Digest}); err != nil || got.Digest != first.Reference.Digest {
		t.Errorf("the old one by its digest: %v", err)
	}
}

// A reference that names a release is not for another.
func TestPublishToAnotherName(t *testing.T) {
	ref := start(t)
	for name, c := range map[string]struct{ ref, want string }{
		"another tag":    {ref + ":docker-ferrol-1-27-v4", "the reference is to docker-ferrol-1-27-v4, and the release is " + v3},
		"another digest": {ref + ":" + v3 + "@sha256:" + strings.Repeat("0", 64), "the reference is to sha256:000"},
		"a directory":    {filepath.Join(t.TempDir(), "docker-ferrol-1-27-v4"), "the reference is to docker-ferrol-1-27-v4"},
	} {
		s, _ := open(t, c.ref, stacks.Options{})
		if _, err := s.Publish(t.Context(), release(t, "v3", nil)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	s, r := open(t, ref+":"+v3, stacks.Options{})
	publish(t, s, release(t, "v3", nil))
	if _, err := s.Pull(t.Context(), r); err != nil {
		t.Error(err)
	}
}

// If two publish at the same time and neither sees the other, the one that was overwritten gets an error.
func TestPublishRace(t *testing.T) {
	var won atomic.Bool
	const others = `{"schemaVersion":2,"layers":[]}`
	ref := start(t, at("^PUT .*/manifests/", func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		next.ServeHTTP(w, r)
		if won.CompareAndSwap(false, true) {
			r2, _ := http.NewRequest(http.MethodPut, r.URL.String(), strings.NewReader(others))
			r2.Header.Set("Content-Type", manifestType)
			next.ServeHTTP(discard{}, r2)
		}
	}))
	s, _ := open(t, ref, stacks.Options{})
	if _, err := s.Publish(t.Context(), release(t, "v3", nil)); !errors.Is(err, stacks.ErrExists) ||
		!strings.Contains(err.Error(), "somebody else published "+v3+" at the same time, with another content, "+digest.FromString(others).String()) {
		t.Error(err)
	}
}

type discard struct{}

func (discard) Header() http.Header         { return http.Header{} }
func (discard) Write(b []byte) (int, error) { return len(b), nil }
func (discard) WriteHeader(int)             {}

// A second publication changes nothing, so it sends nothing; a new version sends what is new.
func TestPublishSendsWhatIsNew(t *testing.T) {
	var c count
	s, _ := open(t, start(t, c.middleware), stacks.Options{})
	publish(t, s, release(t, "v3", nil))
	before := c.of(http.MethodPut, http.MethodPost, http.MethodPatch)
	publish(t, s, release(t, "v3", nil))
	if after := c.of(http.MethodPut, http.MethodPost, http.MethodPatch); after != before || before == 0 {
		t.Errorf("%d requests became %d", before, after)
	}
	before = c.of(http.MethodPut)
	publish(t, s, release(t, "v4", nil)) // all but metadata.yaml is as in v3
	if n := c.of(http.MethodPut) - before; n != 2 {
		t.Errorf("%d were sent, want one file and the manifest", n)
	}
}

func TestNotThere(t *testing.T) {
	ref := start(t)
	s, r := open(t, ref, stacks.Options{})
	_, err := s.List(t.Context(), nil)
	if !errors.Is(err, stacks.ErrNotFound) || err.Error() != "listing "+ref+": there is no "+ref {
		t.Error(err)
	}
	publish(t, s, release(t, "v3", nil))
	if _, err := s.Pull(t.Context(), r.WithTag("docker-ferrol-1-27-v4")); !errors.Is(err, stacks.ErrNotFound) || err.Error() != "pulling "+ref+
		":docker-ferrol-1-27-v4: it is not in "+ref {
		t.Error(err)
	}
	if _, err := s.Pull(t.Context(), stacks.Reference{Digest: "sha256:" + strings.Repeat("0", 64)}); !errors.Is(err, stacks.ErrNotFound) {
		t.Error(err)
	}
	if _, err := s.Pull(t.Context(), r); err == nil || !strings.Contains(err.Error(), "names no release") {
		t.Error(err)
	}
}

func TestRetry(t *testing.T) {
	var left atomic.Int32
	var c count
	ref := start(t, c.middleware, at("^GET .*/manifests/", func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		if left.Add(-1) >= 0 {
			http.Error(w, `{"errors":[{"code":"TOOMANYREQUESTS","message":"later"}]}`, http.StatusServiceUnavailable)
			return
		}
		next.ServeHTTP(w, r)
	}))
	s, r := open(t, ref, stacks.Options{})
	publish(t, s, release(t, "v3", nil))
	left.Store(1)
	if _, err := s.Pull(t.Context(), r.WithTag(v3)); err != nil {
		t.Errorf("one bad answer: %v", err)
	}
	left.Store(1000)
	before := c.of(http.MethodGet)
	if _, err := s.Pull(t.Context(), r.WithTag(v3)); err == nil || !strings.HasSuffix(err.Error(), "answers 503 Service Unavailable: toomanyrequests: later") {
		t.Errorf("only bad answers: %v", err)
	}
	if n := c.of(http.MethodGet) - before; n != 3 {
		t.Errorf("%d requests, want 3", n)
	}
}

// A pull takes memory for the files once.
func TestMemory(t *testing.T) {
	const size = 24 << 20
	s, r := open(t, start(t), stacks.Options{})
	big := release(t, "v3", archive.Tree{"big.bin": bytes.Repeat([]byte("0123456789abcdef"), size/16)})
	publish(t, s, big)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	got, err := s.Pull(t.Context(), r.WithTag(v3))
	runtime.ReadMemStats(&after)
	if err != nil || len(got.Release.Files["big.bin"]) != size {
		t.Fatal(err)
	}
	if n := after.TotalAlloc - before.TotalAlloc; n > size+size/2 {
		t.Errorf("pulling %d bytes took %d", size, n)
	}
}

func TestPublishLimits(t *testing.T) {
	s, _ := open(t, start(t), stacks.Options{})
	many := archive.Tree{}
	for i := range 61 {
		many[fmt.Sprintf("f%d", i)] = nil
	}
	for name, c := range map[string]struct {
		more archive.Tree
		want string
	}{
		"many files":     {many, "the release has 65 files; at most 64 are taken"},
		"a lot":          {archive.Tree{"big": make([]byte, 32<<20)}, "bytes; at most 33554432 are taken"},
		"a directory":    {archive.Tree{"a/b": nil}, `file "a/b" is no plain name of a file`},
		"a hidden file":  {archive.Tree{".git": nil}, `file ".git" is no plain name`},
		"case":           {archive.Tree{"Metadata.yaml": nil}, `file "metadata.yaml" is there twice`},
		"no letters":     {archive.Tree{"ɑ.txt": nil}, "is no plain name"},
		"damaged hashes": {archive.Tree{"hashes.json": []byte("{")}, "hashes.json: unexpected end"},
	} {
		if _, err := s.Publish(t.Context(), release(t, "v3", c.more)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestSecretsAreNotShown(t *testing.T) {
	o := stacks.Options{Username: "user", Password: "hunter22", Token: "t0ken-t0ken"}
	b, err := json.Marshal(map[string]any{"password": o.Password})
	if err != nil {
		t.Fatal(err)
	}
	text := string(b) + fmt.Sprint(o) + fmt.Sprintf("%v %+v %#v %s %q %x %d", o, o, o, o.Password, o.Password, o.Password, o.Token) + o.Password.String()
	if strings.Contains(text, "hunter") || strings.Contains(text, "t0ken") || strings.Contains(text, "68756e746572") ||
		!strings.Contains(text, `{"password":"***"}`) {
		t.Error(text)
	}
}

func TestLoadDir(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "anything")
	if err := archive.WriteDir(dir, files(t, "v3", archive.Tree{"docker-ferrol-1-27-cluster-class-v30.tgz": nil})); err != nil {
		t.Fatal(err)
	}
	if r, err := stacks.LoadDir(dir); err != nil || r.Name.Tag() != v3 {
		t.Errorf("%v", err)
	}
	if err := os.WriteFile(filepath.Join(dir, "docker-other-1-27-cluster-class-v3.tgz"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := stacks.LoadDir(dir); err == nil || !strings.Contains(err.Error(), "could be any of "+v3+", docker-other-1-27-v3") {
		t.Errorf("%v", err)
	}
	for _, name := range []string{"docker-other-1-27-cluster-class-v3.tgz", "docker-ferrol-1-27-cluster-class-v3.tgz"} {
		if err := os.Remove(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := stacks.LoadDir(dir); err == nil || !strings.Contains(err.Error(), "no file is called provider-name-1-36-cluster-class-v3.tgz") {
		t.Errorf("%v", err)
	}
}

func TestCancelled(t *testing.T) {
	s, r := open(t, start(t), stacks.Options{})
	publish(t, s, release(t, "v3", nil))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Pull(ctx, r.WithTag(v3)); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if _, err := s.List(ctx, nil); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if _, err := s.Publish(ctx, release(t, "v4", nil)); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
