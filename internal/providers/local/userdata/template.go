package userdata

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// Cluster API puts the header of a jinja template over every document and escapes nothing in
// it, so cloud-init renders file contents and commands too. Of jinja we know only the lookup of
// a variable and raw blocks, in which people put braces of their own; the rest is refused.
var (
	templateHeader = regexp.MustCompile(`(?i)^## template: jinja[ \t]*(\r?\n|$)`)
	tagStart       = regexp.MustCompile(`\{[{%#]`)
	variableTag    = regexp.MustCompile(
		`^\{\{\s*(?:(ds\.meta_data|v1)(?:\.(\w+)|\[\s*(?:"([\w-]+)"|'([\w-]+)')\s*\])|(\w+))\s*\}\}$`,
	)
	rawStart = regexp.MustCompile(`^\{%\s*raw\s*%\}`)
	// cloud-init sets trim_blocks: the line's end goes too
	rawEnd = regexp.MustCompile(`\{%([-+]?)\s*endraw\s*([-+]?)%\}(?:\r?\n)?`)
)

// safeValue matches values that mean themselves wherever they are put: they cannot end a quote, begin a key or a
// comment, or start a line, in YAML or in a shell.
var safeValue = regexp.MustCompile(`^:{0,2}[A-Za-z0-9]([A-Za-z0-9._:/-]*[A-Za-z0-9])?$`)

// renderTemplate replaces the tags of a template. The header stays, it is a comment.
func renderTemplate(text string, m Metadata) (string, error) {
	vars := m.templateVariables()
	var out strings.Builder
	rest := text
	for {
		at := tagStart.FindStringIndex(rest)
		if at == nil {
			at = []int{len(rest)}
		}
		out.WriteString(rest[:at[0]])
		if rest = rest[at[0]:]; rest == "" {
			break
		}
		value, length, err := renderTag(rest, vars)
		if err != nil {
			return "", fmt.Errorf("line %d: %w", 1+strings.Count(text[:len(text)-len(rest)], "\n"), err)
		}
		out.WriteString(value)
		rest = rest[length:]
		if out.Len() > maxData {
			break
		}
	}
	if out.Len() > maxData {
		return "", fmt.Errorf("it has more than the %d bytes allowed once it is rendered", maxData)
	}
	return out.String(), nil
}

// renderTag returns what the tag at the beginning of s stands for, and its length.
func renderTag(s string, vars map[string]string) (string, int, error) {
	if open := rawStart.FindString(s); open != "" {
		end := rawEnd.FindStringSubmatchIndex(s)
		if end == nil {
			return "", 0, errors.New("{% raw %} has no {% endraw %}")
		}
		if end[2] < end[3] || end[4] < end[5] {
			return "", 0, fmt.Errorf("the template has %s, which is not supported; write it without - and +",
				shorten(strings.TrimSpace(s[end[0]:end[1]])))
		}
		return s[len(open):end[0]], end[1], nil
	}
	closing := map[string]string{"{{": "}}", "{%": "%}", "{#": "#}"}[s[:2]]
	n := strings.Index(s[2:], closing)
	if n < 0 {
		return "", 0, fmt.Errorf(
			"the template has %s without %s; put text with braces between {%% raw %%} and {%% endraw %%}", s[:2], closing,
		)
	}
	n += len("{{}}")
	value, err := lookupVariable(s[:n], vars)
	return value, n, err
}

func lookupVariable(expr string, vars map[string]string) (string, error) {
	m := variableTag.FindStringSubmatch(expr)
	if m == nil {
		return "", fmt.Errorf(
			"the template has %s, which is not supported; put text with braces between {%% raw %%} and {%% endraw %%}",
			shorten(expr),
		)
	}
	// cloud-init knows each key with a dash under a second name with an underscore.
	name := strings.TrimPrefix(m[1]+"."+m[2]+strings.ReplaceAll(m[3]+m[4], "-", "_")+m[5], ".")
	value, known := vars[name]
	switch {
	case !known:
		return "", fmt.Errorf(
			"the template asks for %s, which is not known here; a machine has ds.meta_data.hostname, local_hostname, local_ipv4, instance_id, availability_zone and provider_id", shorten(expr),
		)
	case value == "":
		return "", fmt.Errorf("the template asks for %s, which this machine does not have", shorten(expr))
	case !safeValue.MatchString(value):
		return "", fmt.Errorf("the template asks for %s, but its value %s would change the document around it", shorten(expr),
			shorten(value))
	}
	return value, nil
}

// templateVariables lists what a template can look up. The names under v1, and without a prefix, are
// those cloud-init gives every machine; under ds.meta_data is the infrastructure's.
func (m Metadata) templateVariables() map[string]string {
	vars := map[string]string{
		"ds.meta_data.hostname":    m.Hostname,
		"ds.meta_data.local_ipv4":  m.Address,
		"ds.meta_data.provider_id": m.ProviderID,
	}
	for _, prefix := range []string{"", "v1.", "ds.meta_data."} {
		vars[prefix+"local_hostname"] = m.Hostname
		vars[prefix+"instance_id"] = m.InstanceID
		vars[prefix+"availability_zone"] = m.Zone
	}
	return vars
}
