package lint_test

import (
	"fmt"
	"strings"
	"testing"
)

// Customers choose the values of variables: none of them may become another field of what a patch makes.
func TestQuoting(t *testing.T) {
	const text = "{type: string}"
	for name, c := range map[string]struct {
		schema   string // of the variable v
		template string
		want     string // part of the finding; empty if there is none
	}{
		"a text as it is":             {text, "path: /etc/{{ .v }}/x", `puts v into YAML as it is: with "a\nb: c" in it`},
		"a text with quotes around":   {text, `path: "/etc/{{ .v }}/x"`, `puts v into YAML as it is: with "a\" b" in it`},
		"a text that is quoted":       {text, "path: {{ .v | quote }}", ""},
		"a text that is made quoted":  {text, `path: {{ printf "/etc/%s/x" .v | quote }}`, ""},
		"a text as JSON":              {text, "path: {{ .v | toJson }}", ""},
		"a text that is indented":     {text, "content: |\n  {{- .v | nindent 2 }}", `with "a\rb: c" in it`},
		"a text in a file of YAML":    {text, "content: |\n  a: {{ .v }}\n  b: c", "puts v into YAML as it is"},
		"quoted in a file of YAML":    {text, "content: |\n  a: {{ .v | quote }}\n  b: c", ""},
		"a choice":                    {"{type: string, enum: [k, l]}", "path: {{ .v }}", ""},
		"a pattern":                   {`{type: string, pattern: "^[a-z]+$", example: x}`, "path: /etc/{{ .v }}", ""},
		"a pattern that lets much in": {`{type: string, pattern: "^x?.+$"}`, "path: {{ .v }}", `with "a\rb: c" in it`},
		"a number":                    {"{type: integer}", "path: {{ .v }}", ""},
		"a text of a field":           {"{type: object, properties: {a: " + text + "}}", "path: {{ .v.a }}", "puts v.a into YAML"},
		"a text of a list": {
			"{type: array, items: {type: object, properties: {a: " + text + "}}}", "{{ range .v }}\n- path: {{ .a }}\n{{ end }}",
			"puts v[].a into YAML",
		},
		"a list without end": {text, "{{ range until 2000000000 }}{{ $.v }}{{ end }}", ""},
		"a text without end": {text, `path: {{ repeat 2000000000 "a" }}{{ .v }}`, ""},
		"a loop without end": {
			text, "{{ range until 9999 }}{{ range until 9999 }}{{ range until 9999 }}{{ end }}{{ end }}{{ end }}{{ .v }}", "",
		},
		"what Cluster API gives": {text, "path: {{ .v | quote }}\nname: {{ .builtin.cluster.name }}", ""},
		"what cannot be judged":  {text, `path: {{ .v }}{{ fail "no" }}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			patch := fmt.Sprintf(`
    - name: quoting
      definitions:
        - selector:
            apiVersion: controlplane.cluster.x-k8s.io/v1beta2
            kind: KubeadmControlPlaneTemplate
            matchResources: {controlPlane: true}
          jsonPatches:
            - op: add
              path: /spec/template/spec/kubeadmConfigSpec/files/-
              valueFrom:
                template: |
                  {{- %s | nindent 18 }}
`, "`"+c.template+"`")
			files := changed(t, clean(t, "local"), replace{classYAML, "  variables: # what",
				"  variables:\n    - {name: v, required: false, schema: {openAPIV3Schema: " + c.schema + "}} # what"})
			files = changed(t, files, replace{classYAML, "    - name: certSANs\n      enabledIf", patch[1:] + "    - name: certSANs\n      enabledIf"})
			var said []string
			for _, f := range run(t, files) {
				if f.Rule == "patch-quote" {
					said = append(said, f.String())
				} else {
					t.Errorf("something else is wrong: %s", f)
				}
			}
			switch {
			case c.want == "" && len(said) > 0:
				t.Errorf("got %q", said)
			case c.want != "" && (len(said) != 1 || !strings.Contains(said[0], c.want)):
				t.Errorf("got %q, want %q", said, c.want)
			}
		})
	}
}
