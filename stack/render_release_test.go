package stack_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/polder-kaas/polder/stack"
	"github.com/polder-kaas/polder/stack/archive"
	"github.com/polder-kaas/polder/stack/class"
	"github.com/polder-kaas/polder/stack/render"
)

// oldClass is written for the older types of Cluster API, as all that is published today.
const oldClass = `apiVersion: cluster.x-k8s.io/v1beta1
kind: ClusterClass
metadata:
  name: {{ .Release.Name }}-{{ .Chart.Version }}
spec:
  variables:
    - {name: size, required: false, schema: {openAPIV3Schema: {type: string, default: small}}}
`

// oldValues see fields as they are in those types, and search variables by hand.
const oldValues = `values: |
  name: {{ .Cluster.metadata.name }}
  class: {{ .Cluster.spec.topology.class }}
  version: {{ .Cluster.apiVersion }}
  host: "{{ .Cluster.spec.controlPlaneEndpoint.host }}"
  infra: {{ .InfraCluster.metadata.name | upper }}
  {{- range .Cluster.spec.topology.variables }}
  {{- if and (eq .name "size") .value }}
  size: {{ .value }}
  {{- end }}
  {{- end }}
`

const showValues = `apiVersion: v1
kind: ConfigMap
metadata: {name: shown}
data:
{{ toYaml .Values | indent 2 }}
`

func published(t *testing.T, staged bool) *stack.Release {
	t.Helper()
	chart := func(name string) string { return "apiVersion: v2\nname: " + name + "\nversion: v3\n" }
	files := archive.Tree{
		"metadata.yaml": []byte(metadata),
		"docker-ferrol-1-27-cluster-class-v3.tgz": tgz(t, map[string]string{
			"docker-ferrol-1-27-cluster-class/Chart.yaml":           chart("docker-ferrol-1-27-cluster-class"),
			"docker-ferrol-1-27-cluster-class/templates/class.yaml": oldClass,
		}),
	}
	const name = "docker-ferrol-1-27-cluster-addon-v2.tgz"
	if staged {
		files["clusteraddon.yaml"] = []byte(
			"apiVersion: clusteraddonconfig.x-k8s.io/v1alpha1\naddonStages: {AfterControlPlaneInitialized: [{name: cni, action: apply}, {name: gone, action: apply}], BeforeClusterUpgrade: [{name: cni, action: apply}]}\n",
		)
		files[name] = tgz(t, map[string]string{
			"cni/Chart.yaml": chart("cni"), "cni/overwrite.yaml": oldValues, "cni/templates/x.yaml": showValues, ".helmignore": "",
		})
	} else {
		files["cluster-addon-values.yaml"] = []byte(oldValues)
		files[name] = tgz(t, map[string]string{
			"docker-ferrol-1-27-cluster-addon/Chart.yaml": chart("docker-ferrol-1-27-cluster-addon"), "docker-ferrol-1-27-cluster-addon/templates/x.yaml": showValues,
		})
	}
	r, err := stack.Load("docker-ferrol-1-27-v3", files)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// Releases of both conventions render, and their templates see the types they are written for.
func TestRenderPublished(t *testing.T) {
	recent := stack.ClusterData{
		Cluster: map[string]any{
			"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "metadata": map[string]any{"name": "demo", "namespace": "a"},
			"spec": map[string]any{
				"controlPlaneEndpoint": map[string]any{"host": "192.0.2.7", "port": 6443},
				"topology": map[string]any{
					"classRef": map[string]any{"name": "docker-ferrol-1-27-v3"}, "version": "v1.27.3", "variables": []any{map[string]any{"name": "size", "value": "large"}},
				},
			},
		},
		InfraCluster: map[string]any{"metadata": map[string]any{"name": "infra"}},
	}
	for name, staged := range map[string]bool{"one chart": false, "stages": true} {
		t.Run(name, func(t *testing.T) {
			r := published(t, staged)
			c, found, err := r.RenderClass(t.Context(), new(render.Renderer), "default")
			if err != nil || found != nil {
				t.Fatal(found, err)
			}
			if c.Version != class.V1Beta1 || c.Name() != "docker-ferrol-1-27-v3" {
				t.Errorf("%s %s", c.Version, c.Name())
			}
			data, err := recent.ConvertTo(c.Version)
			if err != nil {
				t.Fatal(err)
			}
			stages, found, err := r.RenderAddons(t.Context(), new(render.Renderer), stack.AddonInput{Cluster: data, Record: render.FixedRecord()})
			if err != nil {
				t.Fatal(err)
			}
			want := map[string]any{
				"name": "demo", "class": "docker-ferrol-1-27-v3", "version": "cluster.x-k8s.io/v1beta1", "host": "192.0.2.7", "infra": "INFRA", "size": "large",
			}
			for _, s := range stages {
				if d := cmp.Diff(want, s.Objects[0].Value["data"]); d != "" {
					t.Error(s.RuntimeHook, d)
				}
			}
			if len(stages) != 2 || stages[0].RuntimeHook != stack.AfterControlPlaneInitialized || stages[1].RuntimeHook != stack.BeforeClusterUpgrade {
				t.Errorf("%+v", stages)
			}
			if staged {
				if len(found) != 1 || !strings.Contains(found[0].String(), `stage "gone" of AfterControlPlaneInitialized has no chart`) {
					t.Error(found)
				}
			}
		})
	}
}

// The values of one chart are not those of the next, and a stage that deletes something renders it as the one
// that applied it did.
func TestRenderValuesOfEachChart(t *testing.T) {
	files := published(t, true).Files
	chart := func(name string) string { return "apiVersion: v2\nname: " + name + "\nversion: v3\n" }
	files["clusteraddon.yaml"] = []byte(
		"apiVersion: clusteraddonconfig.x-k8s.io/v1alpha1\naddonStages: {AfterControlPlaneInitialized: [{name: cni, action: apply}, {name: plain, action: apply}], BeforeClusterUpgrade: [{name: plain, action: apply}, {name: cni, action: delete}]}\n",
	)
	files["docker-ferrol-1-27-cluster-addon-v2.tgz"] = tgz(t, map[string]string{
		"cni/Chart.yaml": chart("cni"), "cni/values.yaml": "name: default\n", "cni/overwrite.yaml": "values: |\n  name: {{ .Cluster.metadata.name }}\n",
		"cni/templates/x.yaml": showValues,
		"plain/Chart.yaml":     chart("plain"), "plain/values.yaml": "name: default\n", "plain/templates/x.yaml": showValues,
	})
	r, err := stack.Load("docker-ferrol-1-27-v3", files)
	if err != nil {
		t.Fatal(err)
	}
	data := stack.ClusterData{Cluster: map[string]any{"metadata": map[string]any{"name": "demo"}}}
	stages, found, err := r.RenderAddons(t.Context(), new(render.Renderer), stack.AddonInput{Cluster: data, Record: render.FixedRecord()})
	if err != nil || len(found) > 0 {
		t.Fatal(err, found)
	}
	got := map[string]any{}
	for _, s := range stages {
		got[s.RuntimeHook+" "+s.Stage.Action+" "+s.Stage.Name] = s.Objects[0].Value["data"].(map[string]any)["name"]
	}
	want := map[string]any{
		"AfterControlPlaneInitialized apply cni": "demo", "AfterControlPlaneInitialized apply plain": "default",
		"BeforeClusterUpgrade apply plain": "default", "BeforeClusterUpgrade delete cni": "demo",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func TestSampleClusterData(t *testing.T) {
	r := published(t, true)
	c, _, err := r.RenderClass(t.Context(), new(render.Renderer), "default")
	if err != nil {
		t.Fatal(err)
	}
	d, err := r.SampleClusterData(c)
	if err != nil {
		t.Fatal(err)
	}
	spec := d.Cluster["spec"].(map[string]any)["topology"].(map[string]any)
	if spec["class"] != "docker-ferrol-1-27-v3" || cmp.Diff(spec["variables"], []any{map[string]any{"name": "size", "value": "small"}}) != "" {
		t.Error(spec)
	}
	back, err := d.ConvertTo(class.V1Beta2)
	if err != nil {
		t.Fatal(err)
	}
	if ref := back.Cluster["spec"].(map[string]any)["topology"].(map[string]any)["classRef"]; cmp.Diff(ref,
		map[string]any{"name": "docker-ferrol-1-27-v3"}) != "" {
		t.Error(ref)
	}
}

// Charts that cannot be rendered, and objects that cannot be applied, are findings with a file, and a line where
// it is known.
func TestRenderFindings(t *testing.T) {
	chart := "apiVersion: v2\nname: x\nversion: 1.0.0\n"
	for name, tc := range map[string]struct {
		files map[string]string // of the add-on
		want  string
	}{
		"a template that fails": {map[string]string{"templates/x.yaml": "a: 1\nb: {{ fail \"no\" }}\n"},
			"cluster-addon/cni/templates/x.yaml:2: error: no [render]"},
		"an object without a kind": {map[string]string{"templates/x.yaml": "apiVersion: v1\nmetadata: {name: a}\n"}, "has the kind \"<nil>\", which is none"},
		"a name that is none": {map[string]string{"templates/x.yaml": "apiVersion: v1\nkind: Secret\nmetadata: {name: a/b}\n"},
			`Secret a/b has the name "a/b", which is none`},
		"the same object twice": {map[string]string{"templates/x.yaml": "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\n---\napiVersion: v1\nkind: Secret\nmetadata: {name: a}\n"}, "Secret a is rendered twice, here and in templates/x.yaml"},
		"a label that is a number": {map[string]string{"templates/x.yaml": "apiVersion: v1\nkind: Secret\nmetadata: {name: a, labels: {b: 1}}\n"},
			`labels with "b": 1, which must be a string; quote it`},
		"a result that is no YAML": {map[string]string{"templates/x.yaml": "a: [\n"}, "what it renders to, at line"},
		"a key twice": {map[string]string{"templates/x.yaml": "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\nkind: Secret\n"},
			`warning: what it renders to, at line 4 of the result: "kind" is here a second time`},
		"an old truth value": {map[string]string{"templates/x.yaml": "apiVersion: v1\nkind: Secret\nmetadata: {name: a, labels: {b: yes}}\n"},
			`labels with "b": true, which must be a string; quote it`},
		"a hook of Helm": {map[string]string{"templates/x.yaml": "apiVersion: batch/v1\nkind: Job\nmetadata: {name: a, annotations: {helm.sh/hook: 'pre-delete, test'}}\n"}, "warning: Job a is a Helm hook (pre-delete, test) and will never be applied"},
		"objects in a list are told": {map[string]string{"templates/x.yaml": "apiVersion: v1\nkind: List\nitems: [{apiVersion: v1, kind: Secret, metadata: {}}]\n"},
			"Secret has the name"},
	} {
		t.Run(name, func(t *testing.T) {
			r := published(t, true)
			tree := archive.Tree{"Chart.yaml": []byte(chart)}
			for n, text := range tc.files {
				tree[n] = []byte(text)
			}
			r.Addons.Charts["cni"] = tree
			delete(r.Addons.Values, "cni")
			_, found, err := r.RenderAddons(t.Context(), new(render.Renderer), stack.AddonInput{Record: render.FixedRecord()})
			if err != nil {
				t.Fatal(err)
			}
			found = found[1:] // the stage without a chart
			if len(found) != 1 || !strings.Contains(found[0].String(), tc.want) {
				t.Errorf("got %v, want %s", found, tc.want)
			}
			if strings.HasPrefix(tc.want, "warning") != (found.Err() == nil) {
				t.Error("a warning is an error, or an error a warning")
			}
		})
	}
}

func TestParseClusterData(t *testing.T) {
	for text, want := range map[string]string{
		"":                            "values.yaml: there is no Cluster",
		"apiVersion: v1\nkind: Pod\n": `values.yaml:1: kind "Pod" is neither a Cluster`,
		"apiVersion: cluster.x-k8s.io/v1beta2\nkind: Cluster\n---\nkind: LocalCluster\n---\nkind: KubeadmControlPlane\n": "",
	} {
		_, err := stack.ParseClusterData("values.yaml", []byte(text))
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}
