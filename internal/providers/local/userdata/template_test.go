package userdata

import (
	"strings"
	"testing"
)

// parseTemplate returns the content of a file whose content in the template is s.
func parseTemplate(s string, m Metadata) (string, error) {
	d, err := Parse([]byte("## template: jinja\n"+documentWithFile("path: /a", "content: |", "  "+s)), m)
	if err != nil {
		return "", err
	}
	b, _ := d.FileContent("/a")
	return strings.TrimSuffix(string(b), "\n"), nil
}

func TestTemplate(t *testing.T) {
	tests := map[string]struct{ in, want string }{
		"no braces":             {"a }} b %} c", "a }} b %} c"},
		"host":                  {"{{ ds.meta_data.hostname }}", "cp-0"},
		"host from cloud-init":  {"{{ v1.local_hostname }} {{ local_hostname }}", "cp-0 cp-0"},
		"no spaces":             {"a{{ds.meta_data.local_hostname}}b", "acp-0b"},
		"many spaces":           {"{{   ds.meta_data.local_hostname \t}}", "cp-0"},
		"subscripts":            {`{{ ds.meta_data["instance-id"] }}{{ ds.meta_data[ 'instance_id' ] }}{{ v1["instance_id"] }}`, "i-1i-1i-1"},
		"instance":              {"{{ ds.meta_data.instance_id }} {{ v1.instance_id }} {{ instance_id }}", "i-1 i-1 i-1"},
		"zone":                  {"{{ ds.meta_data.availability_zone }} {{ v1.availability_zone }} {{ availability_zone }}", "eu eu eu"},
		"address":               {"{{ ds.meta_data.local_ipv4 }}", "127.0.0.7"},
		"provider id":           {"{{ ds.meta_data.provider_id }}", "local:///eu/cp-0"},
		"a brace after":         {"{{ instance_id }}}", "i-1}"},
		"raw":                   {"{% raw %}{{ x }} {# {% y %}{% endraw %} b", "{{ x }} {# {% y %} b"},
		"raw takes its newline": {"{%raw%}a\n    b{%endraw%}\nc", "a\nbc"},
		"raw twice":             {"{% raw %}{{{% endraw %} {{ instance_id }} {% raw %}}}{% endraw %}.", "{{ i-1 }}."},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got, err := parseTemplate(tt.in, testMetadata); err != nil || got != tt.want {
				t.Errorf("rendered %q, %v, want %q", got, err, tt.want)
			}
		})
	}
}

func TestTemplateRefused(t *testing.T) {
	tests := map[string]struct{ in, want string }{
		"unknown variable":      {"{{ ds.meta_data.region }}", "line 6: the template asks for {{ ds.meta_data.region }}, which is not known here"},
		"not from cloud-init":   {"{{ v1.local_ipv4 }}", "the template asks for {{ v1.local_ipv4 }}, which is not known here"},
		"variable in a later":   {"{{ instance_id }}\n    {{ y }}", "line 7: the template asks for {{ y }}"},
		"not on this machine":   {"{{ availability_zone }}", "which this machine does not have"},
		"filter":                {"{{ instance_id | upper }}", "line 6: the template has {{ instance_id | upper }}, which is not supported"},
		"text":                  {"{{ '{{' }}", "the template has {{ '{{' }}, which is not supported"},
		"escaped by %q":         {`{{ v1[\"instance_id\"] }}`, `the template has {{ v1[\"instance_id\"] }}, which is not supported`},
		"space control":         {"{{- instance_id }}", "the template has {{- instance_id }}, which"},
		"statement":             {"{% if x %}", "the template has {% if x %}, which is not supported"},
		"comment":               {"{# x #}", "the template has {# x #}, which is not supported"},
		"length in a shell":     {"echo ${#x}", "line 6: the template has {# without #}"},
		"open variable":         {"{{ instance_id }", "the template has {{ without }}"},
		"open raw":              {"{% raw %}", "{% raw %} has no {% endraw %}"},
		"raw with space":        {"{% raw %} {%- endraw %} {% endraw %}", "the template has {%- endraw %}, which is not supported"},
		"lines in an address":   {"{{ ds.meta_data.local_ipv4 }}", `its value "127.0.0.1\nruncmd: [x]" would change the document`},
		"a long unknown":        {"{{ " + strings.Repeat("é ", 100) + "}}", "é…, which is not supported"},
		"more than is allowed":  {strings.Repeat("{{ instance_id }}", maxData/2000), "more than the 4194304 bytes allowed once it is rendered"},
		"more, in the last tag": {strings.Repeat("x", maxData-200) + "{{ instance_id }}", "more than the 4194304 bytes allowed once it is rendered"},
	}
	m := Metadata{InstanceID: strings.Repeat("a", 4000), Address: "127.0.0.1\nruncmd: [x]"}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got, err := parseTemplate(tt.in, m); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("rendered %.100q, %v, want a refusal with %q", got, err, tt.want)
			}
		})
	}
}

func TestTemplateHeader(t *testing.T) {
	tests := map[string]struct {
		in   string
		want string // the command, or of the refusal
	}{
		"as Cluster API has it": {"## template: jinja\n#cloud-config\n\nruncmd: ['{{ instance_id }}']", "i-1"},
		"in other letters":      {"## Template: Jinja \r\n\n#cloud-config\nruncmd: ['{{ instance_id }}']", "i-1"},
		"not there":             {"#cloud-config\nruncmd: ['{{ instance_id }}']", "{{ instance_id }}"},
		"not first":             {"#cloud-config\n## template: jinja\nruncmd: ['{{ instance_id }}']", "{{ instance_id }}"},
		"of another language":   {"## template: jinja3\n#cloud-config\n", "it is not cloud-config"},
		"of a script":           {"## template: jinja\n#!/bin/sh\n", "it is not cloud-config"},
		"alone":                 {"## template: jinja", "it is not cloud-config"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			d, err := Parse([]byte(tt.in), testMetadata)
			if err != nil {
				if !strings.Contains(err.Error(), tt.want) {
					t.Errorf("Parse() = %v, want %q", err, tt.want)
				}
				return
			}
			if len(d.Commands) != 1 || d.Commands[0].Line != tt.want {
				t.Errorf("commands %q, want %q", d.Commands, tt.want)
			}
		})
	}
}

func TestValuesThatMayBeInADocument(t *testing.T) {
	for value, want := range map[string]bool{
		"cp-0.example.org": true, "10.0.0.1": true, "::1": true, "fe80::1:2": true, "local:///eu/Cp-0": true, "7": true,
		"a b": false, "a:": false, "a\n": false, "\na": false, "'": false, `"`: false, "a#b": false, "-a": false, "/a": false, "$(a)": false,
		"a`b`": false, "{{a}}": false, "&a": false, "*a": false, "[a]": false, "a;b": false, "é": false, ":": false, "!a": false, `a\`: false,
	} {
		if _, err := parseTemplate("{{ instance_id }}", Metadata{InstanceID: value}); (err == nil) != want {
			t.Errorf("%q: %v", value, err)
		}
	}
}
