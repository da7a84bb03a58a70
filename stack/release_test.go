package stack_test

import (
	"bytes"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/polder-kaas/polder/stack"
	"github.com/polder-kaas/polder/stack/archive"
	"github.com/polder-kaas/polder/stack/version"
)

func tgz(t testing.TB, files map[string]string) []byte {
	t.Helper()
	tree := archive.Tree{}
	for name, text := range files {
		tree[name] = []byte(text)
	}
	var b bytes.Buffer
	if err := archive.Write(&b, tree); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

const metadata = `apiVersion: metadata.clusterstack.x-k8s.io/v1alpha1
versions:
  clusterStack: v3
  kubernetes: v1.27.3
  components:
    clusterAddon: v2
    nodeImage: v1
`

// staged is a release as the tools of today build it, with add-ons in stages.
func staged(t testing.TB) archive.Tree {
	return archive.Tree{
		"metadata.yaml":    []byte(metadata),
		"hashes.json":      []byte(`{"clusterStack":"abc"}`),
		"node-images.yaml": []byte("openStackNodeImages: []"),
		"README.txt":       []byte("nobody knows this file"),
		"clusteraddon.yaml": []byte(`apiVersion: clusteraddonconfig.x-k8s.io/v1alpha1
clusterAddonVersion: clusteraddons.clusterstack.x-k8s.io/v1alpha1
addonStages:
  AfterControlPlaneInitialized:
    - name: cni
      action: apply
      waitForPostCondition:
        objects: [{key: ds, apiVersion: apps/v1, kind: DaemonSet, name: cni, namespace: kube-system}]
        conditions: ds.status.numberReady == ds.status.desiredNumberScheduled
    - {name: metrics, action: apply}
`),
		"docker-ferrol-1-27-cluster-class-v3.tgz": tgz(t, map[string]string{
			"docker-ferrol-1-27-cluster-class/Chart.yaml": "name: class", "docker-ferrol-1-27-cluster-class/templates/a.yaml": "a",
		}),
		"docker-ferrol-1-27-cluster-addon-v2.tgz": tgz(t, map[string]string{
			"cni/Chart.yaml": "name: cni", "cni/overwrite.yaml": "values: |\n  a: b", "metrics/Chart.yaml": "name: metrics", ".helmignore": "", "docs/x.md": "",
		}),
	}
}

// single is a release of the older convention.
func single(t testing.TB) archive.Tree {
	r := staged(t)
	delete(r, "clusteraddon.yaml")
	r["cluster-addon-values.yaml"] = []byte("values: {{ .Cluster.metadata.name }}")
	r["docker-ferrol-1-27-cluster-addon-v2.tgz"] = tgz(t, map[string]string{"docker-ferrol-1-27-cluster-addon/Chart.yaml": "name: addon"})
	return r
}

func TestLoadStaged(t *testing.T) {
	files := staged(t)
	r, err := stack.Load("docker-ferrol-1-27-v3", files)
	if err != nil {
		t.Fatal(err)
	}
	if r.Name.Tag() != "docker-ferrol-1-27-v3" || r.Metadata.KubernetesVersion().String() != "v1.27.3" ||
		r.Metadata.Versions.Components.ClusterAddon != (version.Version{Major: 2}) {
		t.Errorf("%+v", r.Metadata)
	}
	if d := cmp.Diff([]string{"Chart.yaml", "templates/a.yaml"}, r.Class.Names()); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]string{"cni", "metrics"}, slices.Sorted(maps.Keys(r.Addons.Charts))); d != "" {
		t.Error(d)
	}
	if string(r.Addons.Values["cni"]) != "values: |\n  a: b" || len(r.Addons.Values) != 1 {
		t.Errorf("values %q", r.Addons.Values)
	}
	want := []stack.Stage{
		{Name: "cni", Action: "apply", WaitForPostCondition: &stack.Condition{
			Objects:    []stack.ConditionObject{{Key: "ds", APIVersion: "apps/v1", Kind: "DaemonSet", Name: "cni", Namespace: "kube-system"}},
			Conditions: "ds.status.numberReady == ds.status.desiredNumberScheduled",
		}},
		{Name: "metrics", Action: "apply"},
	}
	if d := cmp.Diff(want, r.Addons.Config.AddonStages[stack.AfterControlPlaneInitialized]); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff(files, r.Files); d != "" {
		t.Error("files did not survive:", d)
	}
}

func TestLoadSingle(t *testing.T) {
	r, err := stack.Load("docker-ferrol-1-27-v3", single(t))
	if err != nil {
		t.Fatal(err)
	}
	if r.Addons.Config != nil || string(r.Addons.Charts[""]["Chart.yaml"]) != "name: addon" ||
		string(r.Addons.Values[""]) != "values: {{ .Cluster.metadata.name }}" {
		t.Errorf("%+v", r.Addons)
	}
}

func TestLoadPreRelease(t *testing.T) {
	r := archive.Tree{
		"metadata.yaml": []byte(strings.NewReplacer("v3", "v0-sha.hipstsw", "v2", "v0-sha.hipstsw").Replace(metadata)),
		"docker-ferrol-1-27-cluster-class-v0-sha.hipstsw.tgz": tgz(t, map[string]string{"c/Chart.yaml": ""}),
		"docker-ferrol-1-27-cluster-addon-v0-sha.hipstsw.tgz": tgz(t, map[string]string{"c/Chart.yaml": ""}),
	}
	for _, name := range []string{"docker-ferrol-1-27-v0-sha-hipstsw", "docker-ferrol-1-27-v0-sha.hipstsw"} {
		if got, err := stack.Load(name, r); err != nil || got.Name.Class() != "docker-ferrol-1-27-v0-sha.hipstsw" {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestLoadErrors(t *testing.T) {
	for name, c := range map[string]struct {
		release string
		change  func(archive.Tree)
		want    string
	}{
		"no name": {"ferrol", nil, `release "ferrol" is not of the form provider-name-1-36-v1`},
		"no metadata": {"", func(f archive.Tree) { delete(f, "metadata.yaml") },
			"release docker-ferrol-1-27-v3: metadata.yaml is missing, so this is no release"},
		"another version":      {"docker-ferrol-1-27-v4", nil, "metadata.yaml says version v3, its name v4"},
		"another Kubernetes":   {"docker-ferrol-1-28-v3", nil, "metadata.yaml says Kubernetes v1.27.3, its name 1.28"},
		"bad metadata":         {"", replace("clusterStack: v3", "clusterStack: three"), `version "three" is not of the form`},
		"no version in it":     {"", replace("clusterStack: v3", "other: v3"), "metadata.yaml:2: versions.clusterStack is missing"},
		"Kubernetes not exact": {"", replace("v1.27.3", `"1.27"`), `metadata.yaml:4: versions.kubernetes must be exact, for example v1.27.0, not "1.27"`},
		"of something else":    {"", replace("metadata.clusterstack", "metadata.example"), "metadata.yaml:1: apiVersion must be"},
		"no class": {"", func(f archive.Tree) { delete(f, "docker-ferrol-1-27-cluster-class-v3.tgz") },
			"docker-ferrol-1-27-cluster-class-v3.tgz is missing"},
		"no add-ons": {"", func(f archive.Tree) { delete(f, "docker-ferrol-1-27-cluster-addon-v2.tgz") },
			"docker-ferrol-1-27-cluster-addon-v2.tgz is missing"},
		"two that could be meant": {"", func(f archive.Tree) {
			b := f["docker-ferrol-1-27-cluster-class-v3.tgz"]
			delete(f, "docker-ferrol-1-27-cluster-class-v3.tgz")
			f["docker-ferrol-1-27-cluster-class-v30.tgz"], f["docker-ferrol-1-27-cluster-class-v3-beta.1.tgz"] = b, b
		}, "could be meant"},
		"a damaged archive": {"", func(f archive.Tree) { f["docker-ferrol-1-27-cluster-class-v3.tgz"] = []byte("x") },
			"docker-ferrol-1-27-cluster-class-v3.tgz: it is not a gzip-compressed archive"},
		"a class, no chart": {"", func(f archive.Tree) {
			f["docker-ferrol-1-27-cluster-class-v3.tgz"] = tgz(t, map[string]string{"a/b": ""})
		}, "cluster class: there is no Chart.yaml in its archive"},
		"bad stages": {"", func(f archive.Tree) { f["clusteraddon.yaml"] = []byte("addonStages: [a]\n") },
			"add-ons: clusteraddon.yaml:1: addonStages must be an object, not array"},
	} {
		t.Run(name, func(t *testing.T) {
			files := staged(t)
			if c.change != nil {
				c.change(files)
			}
			if c.release == "" {
				c.release = "docker-ferrol-1-27-v3"
			}
			if r, err := stack.Load(c.release, files); err == nil || r != nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %s", err, c.want)
			}
		})
	}
}

func replace(old, by string) func(archive.Tree) {
	return func(f archive.Tree) {
		f["metadata.yaml"] = bytes.ReplaceAll(f["metadata.yaml"], []byte(old), []byte(by))
	}
}

// v3 is found beside v30.
func TestLoadTakesTheExactArchive(t *testing.T) {
	files := staged(t)
	files["docker-ferrol-1-27-cluster-class-v30.tgz"] = []byte("another's")
	if _, err := stack.Load("docker-ferrol-1-27-v3", files); err != nil {
		t.Error(err)
	}
}

func TestMetadataIsWritten(t *testing.T) {
	m, err := stack.ParseMetadata([]byte(metadata))
	if err != nil {
		t.Fatal(err)
	}
	b, err := m.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	again, err := stack.ParseMetadata(b)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(m, again); d != "" {
		t.Error(d)
	}
	m.Versions.Components.NodeImage = nil
	if b, err = m.Marshal(); err != nil || !strings.Contains(string(b), "nodeImage: v1") {
		t.Errorf("%v\n%s", err, b)
	}
}

func FuzzLoad(f *testing.F) {
	f.Add([]byte(metadata), []byte("addonStages: {}"), tgz(f, map[string]string{"c/Chart.yaml": ""}))
	f.Fuzz(func(_ *testing.T, meta, addons, packed []byte) {
		_, _ = stack.Load("docker-ferrol-1-27-v3", archive.Tree{
			"metadata.yaml": meta, "clusteraddon.yaml": addons,
			"docker-ferrol-1-27-cluster-class-v3.tgz": packed, "docker-ferrol-1-27-cluster-addon-v2.tgz": packed,
		}) // it must only not panic
	})
}
