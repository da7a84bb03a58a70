package lint_test

import (
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/polder-kaas/polder/stack/archive"
	"github.com/polder-kaas/polder/stack/finding"
	"github.com/polder-kaas/polder/stack/lint"
	"github.com/polder-kaas/polder/stack/render"
	"github.com/polder-kaas/polder/stack/scaffold"
	"github.com/polder-kaas/polder/stack/version"
)

func TestMain(m *testing.M) {
	if code, child := render.Main(); child {
		os.Exit(code)
	}
	os.Exit(m.Run())
}

func clean(t *testing.T, provider string) archive.Tree {
	t.Helper()
	files, err := scaffold.New(version.ReleaseLine{Provider: provider, Name: "test", Kubernetes: version.Kubernetes{Major: 1, Minor: 36, Patch: 3}})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func run(t *testing.T, files archive.Tree) finding.List {
	t.Helper()
	found, err := lint.Run(t.Context(), files, lint.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func TestScaffoldsAreClean(t *testing.T) {
	for _, p := range scaffold.Providers() {
		if found := run(t, clean(t, p)); len(found) > 0 {
			t.Errorf("%s: %v", p, found)
		}
	}
}

const (
	config    = "stack.yaml"
	stages    = "clusteraddon.yaml"
	classYAML = "cluster-class/templates/clusterclass.yaml"
	classFile = "cluster-class/Chart.yaml"
	addonFile = "cluster-addon/about/Chart.yaml"
	addonYAML = "cluster-addon/about/templates/about.yaml"
)

// replace changes a text in a file, which must be there.
type replace struct{ file, from, to string }

// Every fault is one change of a clean stack. The finding must be the only error, and say where it is.
func TestFaults(t *testing.T) {
	for name, tc := range map[string]struct {
		change replace
		want   string // beginning of the finding
		also   []string
	}{
		// The configuration of the stack.
		"no configuration": {change: replace{config, "", "-"}, want: "stack.yaml: error: there is no stack.yaml, so this is no stack"},
		"a provider that is none": {change: replace{config, "provider: local", "provider: Local_1"},
			want: `stack.yaml[provider: Local_1]: error: provider "Local_1" must be`},
		"a name that is none": {change: replace{config, "Name: test", "Name: te_st"},
			want: `stack.yaml[clusterStackName: te_st]: error: stack name "te_st" must be`},
		"a version that is none": {change: replace{config, "kubernetesVersion: v1.36.3", "kubernetesVersion: latest"},
			want: `stack.yaml[kubernetesVersion: latest]: error: version "latest" of Kubernetes`},
		"a name that is too long": {change: replace{config, "Name: test", "Name: " + strings.Repeat("t", 50)},
			want: `stack.yaml[clusterStackName: tttttttttttttttttttttttttttttttttttttttttttttttttt]: error: the name of a release`, also: []string{"chart-name"}},
		"two configurations that disagree": {change: replace{"csctl.yaml", "",
			"config:\n  kubernetesVersion: v1.35.2\n  clusterStackName: test\n  provider: {type: local}\n"},
			want: `csctl.yaml[kubernetesVersion: v1.35.2]: error: csctl.yaml says local-test-1-35 with Kubernetes v1.35.2`},
		"YAML that is none": {change: replace{config, "provider:", "provider: ["}, want: "stack.yaml[provider: [ local]: error: this is not YAML"},
		// Charts.
		"a class chart of another name": {change: replace{classFile, "name: local-test-1-36", "name: local-test-1-35"},
			want: `cluster-class/Chart.yaml[name: local-test-1-35-cluster-class]: error: the chart is named "local-test-1-35-cluster-class"`},
		"no class chart": {change: replace{classFile, "", "-"}, want: "cluster-class/Chart.yaml: error: the chart is missing"},
		"a chart for another Kubernetes": {change: replace{addonFile, "type:", "kubeVersion: '<1.30.0'\ntype:"},
			want: `cluster-addon/about/Chart.yaml[kubeVersion: '<1.30.0']: error: the chart is for Kubernetes <1.30.0`, also: []string{"render"}},
		"a library as an add-on": {change: replace{addonFile, "type: application", "type: library"},
			want: `cluster-addon/about/Chart.yaml[type: library]: error: a chart of type "library"`, also: []string{"render"}},
		"a chart's version that is none": {change: replace{addonFile, "version: 0.1.0", "version: one"},
			want: `cluster-addon/about/Chart.yaml[version: one]: error: version "one" is none`, also: []string{"render"}},
		"a dependency that is nowhere": {change: replace{addonFile, "type:",
			"dependencies:\n  - {name: cilium, version: 1.x, repository: 'https://charts.example.org'}\ntype:"},
			want: `cluster-addon/about/Chart.yaml[- {name: cilium, version: 1.x, repository: 'https://charts.example.org'}]: error: the chart needs cilium 1.x of https://charts.example.org, which is neither`},
		"a dependency without a repository": {change: replace{addonFile, "type:", "dependencies:\n  - {name: sub, version: 1.x}\ntype:"},
			want: `cluster-addon/about/Chart.yaml[- {name: sub, version: 1.x}]: error: the chart needs sub 1.x, which is not in`},
		"a lock that is none": {change: replace{"stack.lock", "", "kind: Other\n"}, want: `stack.lock[kind: Other]: error: this is "Other" of ""`},
		"an unknown version to fill in": {change: replace{addonYAML, "\ndata:", "\n  labels: {v: '<< .Version >>'}\ndata:"},
			want: `cluster-addon/about/templates/about.yaml[labels: {v: '<< .Version >>'}]: error: << .Version >> is not known`, also: []string{"object"}},
		"a chart's name that is none": {change: replace{addonFile, "name: about", "name: about it"},
			want: `cluster-addon/about/Chart.yaml[name: about it]: error: "about it" is no name of a chart`, also: []string{"render"}},
		// Stages.
		"a stage without a chart": {change: replace{stages, "name: about\n      action: apply\n  Before", "name: abuot\n      action: apply\n  Before"},
			want: `clusteraddon.yaml[- name: abuot]: error: stage "abuot" of AfterControlPlaneInitialized has no chart`},
		"an unknown hook": {change: replace{stages, "BeforeClusterUpgrade", "BeforeClusterUpdate"},
			want: `clusteraddon.yaml[BeforeClusterUpdate: # before a cluster gets another release]: error: hook "BeforeClusterUpdate" is not known`},
		"an unknown field of a stage": {change: replace{stages, "action: apply\n  Before", "action: apply\n      waitForPostConditon: {}\n  Before"},
			want: "clusteraddon.yaml[waitForPostConditon: {}]: error: the field waitForPostConditon is not known"},
		"stages that are missing": {change: replace{stages, "", "-"},
			want: "clusteraddon.yaml: error: the file is missing, and there are charts of add-ons"},
		"an unknown action": {change: replace{stages, "action: apply\n  Before", "action: install\n  Before"},
			want: `clusteraddon.yaml[action: install]: error: action "install" of stage "about"`},
		"a stage twice": {change: replace{stages, "action: apply\n  Before", "action: apply\n    - {name: about, action: apply}\n  Before"},
			want: `clusteraddon.yaml[- {name: about, action: apply}]: error: stage "about" is in AfterControlPlaneInitialized twice`},
		"another apiVersion of stages": {change: replace{stages, "config.x-k8s.io/v1alpha1", "config.x-k8s.io/v2"},
			want: `clusteraddon.yaml[apiVersion: clusteraddonconfig.x-k8s.io/v2]: error: apiVersion is "clusteraddonconfig.x-k8s.io/v2"`},
		"no stages": {change: replace{stages, "addonStages:", "stages:"},
			want: "clusteraddon.yaml[stages:]: error: the field stages is not known", also: []string{"stages"}},
		"a condition that does not compile": {change: condition("[{key: a, apiVersion: v1, kind: Pod, name: a}]", "a.status =="),
			want: `clusteraddon.yaml[conditions: 'a.status =='}]: error: the expression of waitForPreCondition: 1:12: Syntax error`},
		"a condition on an unknown object": {change: condition("[{key: a, apiVersion: v1, kind: Pod, name: a}]", "a.x == b.x"),
			want: `clusteraddon.yaml[conditions: 'a.x == b.x'}]: error: the expression of waitForPreCondition: 1:8: undeclared reference to 'b'`},
		"a condition that is no truth value": {change: condition("[{key: a, apiVersion: v1, kind: Pod, name: a}]", "size(a)"),
			want: `clusteraddon.yaml[conditions: 'size(a)'}]: error: the expression of waitForPreCondition: the expression gives a value of type int`},
		"a condition that costs too much": {change: condition("[{key: a, apiVersion: v1, kind: Pod, name: a}]",
			"a.x == 1 && "+strings.Repeat("["+strings.Repeat("1,", 50)+"1].all(i, ", 5)+"true"+strings.Repeat(")", 5)),
			want: `clusteraddon.yaml[conditions: 'a.x == 1 && [1,1,`},
		"too many stages": {change: replace{stages, "addonStages:\n", "addonStages:\n  Sometime: [" +
			strings.Repeat("{name: about, action: apply}, ", 65) + "]\n"}, want: "clusteraddon.yaml[Sometime: [" +
			strings.Repeat("{name: about, action: apply}, ", 65) + "]]: error: Sometime has 65 stages; at most 64 are taken", also: []string{"stage-hook"}},
		"an object without a kind": {change: condition("[{key: a, apiVersion: v1, name: a}]", "a.x == 1"),
			want: `clusteraddon.yaml[waitForPreCondition: {objects: [{key: a, apiVersion: v1, name: a}],]: error: an object of waitForPreCondition has no kind`},
		"two objects with one key": {change: condition("[{key: a, apiVersion: v1, kind: Pod, name: a}, {key: a, apiVersion: v1, kind: Pod, name: b}]",
			"a.x == 1"), want: `clusteraddon.yaml[waitForPreCondition: {objects: [{key: a, apiVersion: v1, kind: Pod, name: a}, {key: a, apiVersion: v1, kind: Pod, name: b}],]: error: two objects of waitForPreCondition have the key "a"`},
		// The class.
		"a class of another name": {change: replace{classYAML, "metadata:\n  name: {{ $class }}", "metadata:\n  name: other"},
			want: `cluster-class/templates/clusterclass.yaml[kind: ClusterClass]: error: the ClusterClass is named other`},
		"no class": {change: replace{classYAML, "kind: ClusterClass", "kind: Other"},
			want: `cluster-class/Chart.yaml[name: local-test-1-36-cluster-class]: error: there is no ClusterClass`},
		"a template that is missing": {change: replace{classYAML, "kind: KubeadmConfigTemplate, name: {{ $class }}",
			"kind: KubeadmConfigTemplate, name: {{ $class }}-worker"},
			want: `cluster-class/templates/clusterclass.yaml[templateRef: {apiVersion: bootstrap.cluster.x-k8s.io/v1beta2, kind: KubeadmConfigTemplate, name: {{ $class }}-worker}]: error: workers.machineDeployments[0].bootstrap refers to KubeadmConfigTemplate`},
		"a patch on an unknown variable": {change: replace{classYAML, "valueFrom: {variable: certSANs}", "valueFrom: {variable: certSAN}"},
			want: `cluster-class/templates/clusterclass.yaml[path: /spec/template/spec/kubeadmConfigSpec/clusterConfiguration/apiServer/certSANs]: error: patch "certSANs" uses the variable certSAN, which is not declared`},
		"an unknown variable in a patch's template": {change: replace{classYAML, ".*\" .flavor", ".*\" .flavour"},
			want: "cluster-class/templates/clusterclass.yaml[{{ `{cpu: \"{{ regexReplaceAll \"^SCS-([0-9]+).*\" .flavour \"${1}\" }}\", memory: \"{{ regexReplaceAll \"^SCS-[0-9]+[A-Z]*-([0-9]+).*\" .flavor \"${1}Gi\" }}\"}` }}]: error: the template of patch \"flavor\" at /spec/template/spec/capacity uses the variable flavour"},
		"an unknown variable in a patch's condition": {change: replace{classYAML, "if .certSANs", "if .sans"},
			want: "cluster-class/templates/clusterclass.yaml[enabledIf: {{ `\"{{ if .sans }}true{{ end }}\"` }}]: error: enabledIf of patch \"certSANs\" uses the variable sans"},
		"a patch's template that does not parse": {change: replace{classYAML, "}}true{{ end }}", "}}true"},
			want: `cluster-class/templates/clusterclass.yaml[- name: certSANs]: error: enabledIf of patch "certSANs" does not parse`},
		"a patch of an unknown kind": {change: replace{classYAML, "kind: KubeadmControlPlaneTemplate\n            match",
			"kind: KubeadmControlPlane\n            match"},
			want: `cluster-class/templates/clusterclass.yaml[kind: KubeadmControlPlane]: error: patch "certSANs" selects KubeadmControlPlane of`},
		"a patch outside spec": {change: replace{classYAML, "path: /spec/template/spec/kubeadm", "path: /metadata/kubeadm"},
			want: `cluster-class/templates/clusterclass.yaml[path: /metadata/kubeadmConfigSpec/clusterConfiguration/apiServer/certSANs]: error: patch "certSANs" at /metadata/kubeadm`},
		"a patch's operation that is none": {change: replace{classYAML, "- op: add\n              path: /spec/template/spec/kubeadm",
			"- op: set\n              path: /spec/template/spec/kubeadm"},
			want: `cluster-class/templates/clusterclass.yaml[path: /spec/template/spec/kubeadmConfigSpec/clusterConfiguration/apiServer/certSANs]: error: patch "certSANs" at /spec/template/spec/kubeadmConfigSpec/clusterConfiguration/apiServer/certSANs: op "set" is not known`},
		"a patch without a value": {change: replace{classYAML, "              valueFrom: {variable: certSANs}\n", ""},
			want: `cluster-class/templates/clusterclass.yaml[path: /spec/template/spec/kubeadmConfigSpec/clusterConfiguration/apiServer/certSANs]: error: patch "certSANs" at /spec/template/spec/kubeadmConfigSpec/clusterConfiguration/apiServer/certSANs: add has 0 of value`},
		"a patch for workers that are none": {change: replace{classYAML, "names: [default-worker]", "names: [defalt-worker]"},
			want: `cluster-class/templates/clusterclass.yaml[machineDeploymentClass: {names: [defalt-worker]}]: error: patch "flavor" is for the workers defalt-worker`},
		"a patch that selects nothing": {change: replace{classYAML, "matchResources: {controlPlane: true}", "matchResources: {controlPlane: false}"},
			want: `cluster-class/templates/clusterclass.yaml[kind: KubeadmControlPlaneTemplate]: error: patch "certSANs" selects nothing`},
		"an unknown field of the class": {change: replace{classYAML, "  controlPlane:\n", "  healthChek: {}\n  controlPlane:\n"},
			want: "cluster-class/templates/clusterclass.yaml[healthChek: {}]: error: ClusterClass has no field healthChek"},
		"an unknown field of kubeadm": {change: replace{"cluster-class/templates/control-plane.yaml", "clusterConfiguration:", "clusterConfigration:"},
			want: "cluster-class/templates/control-plane.yaml[clusterConfigration:]: error: KubeadmControlPlaneTemplate has no field clusterConfigration"},
		"no control plane": {change: replace{classYAML,
			"    templateRef: {apiVersion: controlplane.cluster.x-k8s.io/v1beta2, kind: KubeadmControlPlaneTemplate, name: {{ $class }}}\n", ""},
			want: "cluster-class/templates/clusterclass.yaml[spec:]: error: the class refers to no template for its controlPlane", also: []string{"patch-selector"}},
		"a secret in the class": {change: replace{"cluster-class/templates/control-plane.yaml", "spec:\n",
			"  labels: {x: '{{ randAlphaNum 8 }}'}\nspec:\n"}, want: "cluster-class/templates/control-plane.yaml[labels: {x: '{{ randAlphaNum 8 }}'}]: error: "},
		// Schemas of variables.
		"a schema with an unknown type": {change: replace{classYAML, "type: array", "type: list"},
			want: `cluster-class/templates/clusterclass.yaml[- name: certSANs]: error: variable certSANs: the type "list" is none of`, also: []string{"schema"}},
		"a default that does not fit": {change: replace{"cluster-class/values.yaml", "SCS-2V-4", "large"},
			want: `cluster-class/templates/clusterclass.yaml[- name: flavor]: error: variable flavor: the default does not fit: 'large' does not match pattern`},
		"a pattern that is none": {change: replace{classYAML, "pattern: ^SCS-", "pattern: ^(SCS-"},
			want: `cluster-class/templates/clusterclass.yaml[- name: flavor]: error: variable flavor: the pattern`},
		"an array without items": {change: replace{classYAML, "          items: {type: string, minLength: 1}\n", ""},
			want: `cluster-class/templates/clusterclass.yaml[- name: certSANs]: error: variable certSANs: an array must have items`},
		"an unknown field of a schema": {change: replace{classYAML, "items: {type: string, minLength: 1}", "items: {type: string, minimumLength: 1}"},
			want: `cluster-class/templates/clusterclass.yaml[- name: certSANs]: error: variable certSANs: []: the field minimumLength is not known`, also: []string{
				"field",
			}},
		"a variable twice": {change: replace{classYAML, "    - name: certSANs\n      required", "    - name: flavor\n      required"},
			want: `cluster-class/templates/clusterclass.yaml[- name: flavor]: error: there are two variables flavor`, also: []string{"patch-variable"}},
		"a rule that does not parse": {change: replace{classYAML, "items: {type: string, minLength: 1}",
			"items: {type: string, x-kubernetes-validations: [{rule: 'self =='}]}"},
			want: `cluster-class/templates/clusterclass.yaml[- name: certSANs]: error: variable certSANs: []: the rule`},
		"a rule that does not compile": {change: replace{classYAML, "items: {type: string, minLength: 1}",
			"items: {type: string, x-kubernetes-validations: [{rule: self.a == 1}]}"},
			want: `cluster-class/templates/clusterclass.yaml[- name: certSANs]: error: variable certSANs: []: the rule "self.a == 1" does not compile: 1:5: type 'string' does not support field selection`},
		"a rule that costs too much": {change: replace{classYAML, "items: {type: string, minLength: 1}",
			"items: {type: array, items: {type: string}, x-kubernetes-validations: [{rule: 'self.all(a, self.all(b, a <= b))'}]}"},
			want: `cluster-class/templates/clusterclass.yaml[- name: certSANs]: error: variable certSANs: []: the rule "self.all(a, self.all(b, a <= b))" may cost more than 100 times what is allowed`},
		"a schema not structural": {change: replace{classYAML, "items: {type: string, minLength: 1}", "items: {type: string, anyOf: [{type: string}]}"},
			want: `cluster-class/templates/clusterclass.yaml[- name: certSANs]: error: variable certSANs: [].anyOf[0].type: the schema is not structural: must be empty to be structural`},
		"an example that does not fit": {change: replace{classYAML, "items: {type: string, minLength: 1}", "items: {type: string, example: 5}"},
			want: `cluster-class/templates/clusterclass.yaml[- name: certSANs]: error: variable certSANs: []: the example does not fit: got number, want string`},
		// What is rendered.
		"a template that does not render": {change: replace{addonYAML, "\ndata:", "\ndata: {{ .Values.a.b.c }}"},
			want: `cluster-addon/about/templates/about.yaml[data: {{ .Values.a.b.c }}]: error: `},
		"values that do not render": {change: replace{"cluster-addon/about/overwrite.yaml", ".Cluster.metadata.namespace",
			".Cluster.metadata.namespace | nope"},
			want: `cluster-addon/about/overwrite.yaml[cluster: {{ .Cluster.metadata.namespace | nope }}/{{ .Cluster.metadata.name }}]: error: function "nope" not defined`},
		"an object that is unsound": {change: replace{addonYAML, "name: cluster-stack", "name: Cluster Stack"},
			want: `cluster-addon/about/templates/about.yaml[kind: ConfigMap]: error: ConfigMap kube-public/Cluster Stack has the name`},
		"an unknown field of metadata": {change: replace{addonYAML, "  namespace:", "  label: {a: b}\n  namespace:"},
			want: `cluster-addon/about/templates/about.yaml[label: {a: b}]: error: ConfigMap kube-public/cluster-stack has the field metadata.label, which v1 does not know`},
		"an unknown field of metadata of any kind": {change: replace{"cluster-addon/about/templates/w.yaml", "",
			"apiVersion: example.org/v1\nkind: Widget\nmetadata:\n  name: w\n  namspace: x\nspec: {any: thing}\n"},
			want: `cluster-addon/about/templates/w.yaml[namspace: x]: error: Widget w has the field metadata.namspace, which example.org/v1 does not know`},
		"an unknown field in metadata of the class": {change: replace{classYAML, "metadata:\n  name: {{ $class }}", "metadata:\n  finaliser: []\n  name: {{ $class }}"},
			want: `cluster-class/templates/clusterclass.yaml[finaliser: []]: error: ClusterClass local-test-1-36-v0-lint.0 has the field metadata.finaliser`, also: []string{"field"}},
		"an unknown field of a built-in kind": {change: replace{"cluster-addon/about/templates/d.yaml", "", deployment("  replica: 2\n")},
			want: `cluster-addon/about/templates/d.yaml[replica: 2]: error: Deployment x/d has the field spec.replica, which apps/v1 does not know, so no API server takes it`},
		"a field deep within": {change: replace{"cluster-addon/about/templates/d.yaml", "",
			strings.Replace(deployment(""), "image: i", "imag: i", 1)},
			want: `cluster-addon/about/templates/d.yaml[spec: {containers: [{name: c, imag: i}]}]: error: Deployment x/d has the field spec.template.spec.containers[0].imag, which`},
		"a field of another type": {change: replace{"cluster-addon/about/templates/d.yaml", "", deployment("  replicas: two\n")},
			want: `cluster-addon/about/templates/d.yaml[replicas: two]: error: Deployment x/d: spec.replicas cannot be a string`},
		"a kind that is none": {change: replace{"cluster-addon/about/templates/d.yaml", "", strings.Replace(deployment(""), "kind: Deployment", "kind: Deploymet", 1)},
			want: `cluster-addon/about/templates/d.yaml[kind: Deploymet]: error: Deploymet x/d is of a kind that apps/v1 does not have`},
		"a version that is not served": {change: replace{"cluster-addon/about/templates/d.yaml", "", strings.Replace(deployment(""), "apps/v1", "apps/v2", 1)},
			want: `cluster-addon/about/templates/d.yaml[apiVersion: apps/v2]: error: Deployment x/d is of apps/v2, which Kubernetes does not serve`},
		"a label that is none": {change: replace{"cluster-addon/about/templates/d.yaml", "", strings.Replace(deployment(""), "name: d,", "name: d, labels: {a: '-'},", 1)},
			want: `cluster-addon/about/templates/d.yaml[metadata: {name: d, labels: {a: '-'}, namespace: x, creationTimestamp: null}]: error: Deployment x/d: metadata.labels has "-": a valid label must be`},
		"an object twice": {change: replace{"cluster-addon/about/templates/again.yaml", "",
			"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: cluster-stack, namespace: kube-public}\n"},
			want: `cluster-addon/about/templates/again.yaml[kind: ConfigMap]: error: ConfigMap kube-public/cluster-stack is rendered twice`},
		"values that do not fit the schema": {change: replace{"cluster-addon/about/values.schema.json", "", `{"properties": {"stack": {"type": "integer"}}}`},
			want: `cluster-addon/about/values.schema.json[{"properties": {"stack": {"type": "integer"}}}]: error: the values do not fit: stack: got string, want integer`},
		"a schema that refers elsewhere": {change: replace{"cluster-addon/about/values.schema.json", "", `{"$ref": "https://example.org/x.json"}`},
			want: `cluster-addon/about/values.schema.json[{"$ref": "https://example.org/x.json"}]: error: `},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			files := changed(t, clean(t, "local"), tc.change)
			var rest []string
			seen := false
			for _, f := range run(t, files).Errors() {
				switch text := shown(files, f); {
				case !seen && strings.HasPrefix(text, tc.want):
					seen = true
				case slices.Contains(tc.also, f.Rule):
				default:
					rest = append(rest, text)
				}
			}
			if !seen || len(rest) > 0 {
				t.Errorf("want %q alone, got\n%s", tc.want, strings.Join(rest, "\n"))
			}
		})
	}
}

// shown gives a finding with the text of its line, which tells more than a number.
func shown(files archive.Tree, f finding.Finding) string {
	lines := strings.Split(string(files[f.File]), "\n")
	if f.Line == 0 || f.Line > len(lines) {
		return f.String()
	}
	line := f.Line
	f.Line = 0
	return strings.Replace(f.String(), f.File, f.File+"["+strings.TrimSpace(lines[line-1])+"]", 1)
}

func deployment(spec string) string {
	return "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: d, namespace: x, creationTimestamp: null}\nspec:\n" + spec +
		"  selector: {matchLabels: {a: b}}\n  template:\n    metadata: {labels: {a: b}}\n    spec: {containers: [{name: c, image: i}]}\n"
}

func condition(objects, expression string) replace {
	return replace{
		stages, "action: apply\n  Before",
		"action: apply\n      waitForPreCondition: {objects: " + objects + ",\n        conditions: " + quote(expression) + "}\n  Before",
	}
}

func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }

// changed applies a change; to "-" removes the file, from "" writes it.
func changed(t *testing.T, files archive.Tree, r replace) archive.Tree {
	t.Helper()
	out := maps.Clone(files)
	switch {
	case r.to == "-":
		delete(out, r.file)
	case r.from == "":
		out[r.file] = []byte(r.to)
	default:
		before := string(out[r.file])
		after := strings.Replace(before, r.from, r.to, 1)
		if before == after {
			t.Fatalf("%s does not have %q", r.file, r.from)
		}
		out[r.file] = []byte(after)
	}
	return out
}

// Releases of a stack whose name has a dash cannot be read by the old operator.
func TestDashInName(t *testing.T) {
	files, err := scaffold.New(version.ReleaseLine{Provider: "local", Name: "te-st", Kubernetes: version.Kubernetes{Major: 1, Minor: 36, Patch: 3}})
	if err != nil {
		t.Fatal(err)
	}
	const want = "stack.yaml[clusterStackName: te-st]: warning: the cluster-stack-operator and csctl cannot read the name of a release such as local-te-st-1-36-v1"
	if found := run(t, files); len(found) != 1 || !strings.HasPrefix(shown(files, found[0]), want) {
		t.Error(found)
	}
}

// A Kubernetes that is newer than the types here may have more fields.
func TestNewerKubernetes(t *testing.T) {
	files, err := scaffold.New(version.ReleaseLine{Provider: "local", Name: "test", Kubernetes: version.Kubernetes{Major: 1, Minor: 99, Patch: 0}})
	if err != nil {
		t.Fatal(err)
	}
	files["cluster-addon/about/templates/d.yaml"] = []byte(deployment("  replica: 2\n"))
	if found := run(t, files); len(found) != 1 || found[0].Severity != finding.Warning || !strings.Contains(found[0].What, "spec.replica") {
		t.Error(found)
	}
}

// The older file may leave out the patch that the newer one has.
func TestMinorBesidePatch(t *testing.T) {
	for _, v := range []string{"1.36", "v1.36", "v1.36.3"} {
		files := clean(t, "local")
		files["csctl.yaml"] = []byte("config:\n  kubernetesVersion: " + v + "\n  clusterStackName: test\n  provider: {type: local}\n")
		if found := run(t, files); len(found) > 0 {
			t.Errorf("%s: %v", v, found)
		}
	}
}

func TestWarnings(t *testing.T) {
	for name, tc := range map[string]struct {
		change replace
		want   string
	}{
		"a version without a patch": {replace{config, "kubernetesVersion: v1.36.3", "kubernetesVersion: 1.36"},
			`stack.yaml[kubernetesVersion: 1.36]: warning: kubernetesVersion 1.36 has no patch`},
		"a hook that is a no-op": {replace{stages, "  Before", "  AfterClusterUpgrade: [{name: about, action: apply}]\n  Before"},
			`clusteraddon.yaml[AfterClusterUpgrade: [{name: about, action: apply}]]: warning: nobody runs the stages of AfterClusterUpgrade`},
		"a version that is removed": {replace{"cluster-addon/about/templates/d.yaml", "", strings.Replace(deployment(""), "apps/v1", "apps/v1beta2", 1)},
			`cluster-addon/about/templates/d.yaml[apiVersion: apps/v1beta2]: warning: Deployment x/d is of apps/v1beta2, which Kubernetes 1.36 does not serve`},
		"a chart without a stage": {replace{"cluster-addon/extra/Chart.yaml", "", "apiVersion: v2\nname: extra\nversion: 0.1.0\n"},
			"cluster-addon/extra/Chart.yaml: warning: no stage uses the chart extra"},
		"a variable without a use": {replace{classYAML, "  variables: # what",
			"  variables:\n    - {name: lonely, required: false, schema: {openAPIV3Schema: {type: string}}} # what"},
			`cluster-class/templates/clusterclass.yaml[- {name: lonely, required: false, schema: {openAPIV3Schema: {type: string}}} # what clusters may choose]: warning: nothing uses the variable lonely`},
		"a template without a use": {replace{"cluster-class/templates/more.yaml", "",
			"apiVersion: bootstrap.cluster.x-k8s.io/v1beta2\nkind: KubeadmConfigTemplate\nmetadata: {name: more}\n"},
			`cluster-class/templates/more.yaml[kind: KubeadmConfigTemplate]: warning: the class does not refer to KubeadmConfigTemplate more`},
		"a Helm hook": {replace{addonYAML, "  namespace:", "  annotations: {helm.sh/hook: pre-delete}\n  namespace:"},
			`cluster-addon/about/templates/about.yaml[kind: ConfigMap]: warning: ConfigMap kube-public/cluster-stack is a Helm hook`},
		"a pod in the class": {replace{"cluster-class/templates/pod.yaml", "", "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\n"},
			`cluster-class/templates/pod.yaml[kind: Pod]: warning: Pod p is made in the management plane`},
		"text for what is missing": {replace{"cluster-addon/about/overwrite.yaml", ".Cluster.metadata.namespace", ".Cluster.metadata.missing"},
			`cluster-addon/about/overwrite.yaml[# Values from the cluster; they win over values.yaml. Templates see .Cluster, .ControlPlane and .InfraCluster.]: warning: the template asks for a field that the cluster does not have`},
		"required at the wrong place": {replace{classYAML, "          items: {type: string, minLength: 1}\n",
			"          required: [name]\n          items: {type: object, properties: {name: {type: string}}}\n"},
			`cluster-class/templates/clusterclass.yaml[- name: certSANs]: warning: variable certSANs: required means nothing in "array"; in a list it belongs below items`},
		"files of the other convention": {replace{"cluster-addon-values.yaml", "", "values: x\n"},
			"cluster-addon-values.yaml: warning: with clusteraddon.yaml this file has no effect"},
		"an object without a use": {condition("[{key: a, apiVersion: v1, kind: Pod, name: a}]", "true"),
			`clusteraddon.yaml[waitForPreCondition: {objects: [{key: a, apiVersion: v1, kind: Pod, name: a}],]: warning: the expression does not use the object "a"`},
		"the class's other version": {replace{classFile, "type:", "appVersion: v1.30.0\ntype:"},
			`cluster-class/Chart.yaml[appVersion: v1.30.0]: warning: appVersion is v1.30.0`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			files := changed(t, clean(t, "local"), tc.change)
			found := run(t, files)
			if len(found) != 1 || !strings.HasPrefix(shown(files, found[0]), tc.want) {
				t.Errorf("want %q alone, got\n%v", tc.want, found)
				for _, f := range found {
					t.Log(shown(files, f))
				}
			}
		})
	}
}
