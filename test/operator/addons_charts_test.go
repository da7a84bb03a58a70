package operator

import (
	"strings"
	"testing"

	"github.com/polder-kaas/polder/stack/archive"
)

// The add-ons of TestAddons: small charts, one for each thing that can go wrong.
const (
	addonConfig = `
apiVersion: clusteraddonconfig.x-k8s.io/v1alpha1
clusterAddonVersion: clusteraddons.clusterstack.x-k8s.io/v1alpha1
addonStages:
  AfterControlPlaneInitialized:
    - {name: base, action: apply}
    - {name: late, action: apply}
    - {name: hooks, action: apply}
    - {name: gone, action: apply}
  BeforeClusterUpgrade:
    - {name: base, action: apply}
    - {name: late, action: apply}
    - {name: hooks, action: apply}
    - {name: gone, action: delete}
`
	baseValues    = "greeting: none\n"
	baseOverwrite = `
{{- range .Cluster.spec.topology.variables }}
{{- if eq .name "greeting" }}
greeting: {{ .value | quote }}
{{- end }}
{{- end }}
`
	// What depends on others comes first here, and objects of different kinds have one name.
	base = `
apiVersion: example.com/v1
kind: Widget
metadata: {name: early, namespace: things}
spec: {size: 1}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: greeting, namespace: things}
data: {greeting: {{ .Values.greeting | quote }}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: same, namespace: things}
data: {kind: ConfigMap}
---
{{- $ca := genCA "test" 365 }}
apiVersion: v1
kind: Secret
metadata: {name: chance, namespace: things}
stringData: {password: {{ randAlphaNum 20 }}, cert: {{ $ca.Cert | b64enc }}}
---
apiVersion: v1
kind: Namespace
metadata: {name: things}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {kind: Widget, listKind: WidgetList, plural: widgets, singular: widget}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, x-kubernetes-preserve-unknown-fields: true}}}}
---
`
	twin = `
apiVersion: v1
kind: ServiceAccount
metadata: {name: same, namespace: things}
---
`
	late = `
{{- if .Capabilities.APIVersions.Has "example.com/v1/Widget" }}
apiVersion: example.com/v1
kind: Widget
metadata: {name: late, namespace: things}
{{- else }}
apiVersion: v1
kind: ConfigMap
metadata: {name: unknown, namespace: things}
{{- end }}
`
	hooksChart = `
{{- range $name, $h := dict
  "a-second" (dict "helm.sh/hook" "pre-install,pre-upgrade" "helm.sh/hook-weight" "5")
  "z-first"  (dict "helm.sh/hook" "pre-install" "helm.sh/hook-weight" "-5")
  "brief"    (dict "helm.sh/hook" "pre-install,pre-upgrade" "helm.sh/hook-delete-policy" "hook-succeeded")
  "after"    (dict "helm.sh/hook" "post-install")
  "never"    (dict "helm.sh/hook" "pre-delete")
  "no-hook"  dict
}}
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ $name }}
  namespace: default
  annotations: {{ toJson $h }}
{{- end }}
`
	gone = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: gone, namespace: kube-public}\n"

	invalidObject = `
apiVersion: v1
kind: Service
metadata: {name: invalid, namespace: things}
spec: {ports: [{port: 0}]}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: valid, namespace: things}
---
`
	theirObject    = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: theirs, namespace: default}\ndata: {whose: ours}\n---\n"
	kubeadmsObject = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: kubeadm-config, namespace: kube-system}\ndata: {ClusterConfiguration: evil}\n---\n"
)

// addonCharts are those charts, with more objects in the first of them, and a variable for its values.
func addonCharts(t *testing.T, more string) func(archive.Tree) {
	t.Helper()
	return func(files archive.Tree) {
		for _, name := range files.Names() {
			if strings.HasPrefix(name, "cluster-addon/") {
				delete(files, name)
			}
		}
		files["clusteraddon.yaml"] = []byte(addonConfig)
		for name, text := range map[string]string{"base": base + more, "late": late, "hooks": hooksChart, "gone": gone} {
			files["cluster-addon/"+name+"/Chart.yaml"] = []byte("apiVersion: v2\nname: " + name + "\nversion: 0.1.0\n")
			files["cluster-addon/"+name+"/templates/all.yaml"] = []byte(text)
		}
		files["cluster-addon/base/values.yaml"] = []byte(baseValues)
		files["cluster-addon/base/overwrite.yaml"] = []byte(baseOverwrite)
		const variables = "cluster-class/templates/_variables.tpl"
		was := string(files[variables])
		i := strings.LastIndex(was, "{{- end -}}")
		files[variables] = []byte(was[:i] + "- name: greeting\n  required: false\n  schema: {openAPIV3Schema: {type: string, default: hello}}\n" + was[i:])
	}
}
