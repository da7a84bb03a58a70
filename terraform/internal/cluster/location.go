package cluster

import (
	"strconv"
	"strings"
	"unicode"

	"github.com/hashicorp/terraform-plugin-framework/path"
)

// locate returns the attribute that has a field of the plane's object, such as spec.workers[0].machine.cpu.
func locate(location string) (path.Path, bool) {
	steps := strings.FieldsFunc(location, func(r rune) bool { return r == '.' || r == '[' || r == ']' })
	if len(steps) < 2 {
		return path.Empty(), false
	}
	first, rest := steps[0], steps[1:]
	switch {
	case first == "path" && rest[0] == "tenant":
		return path.Root("tenant"), true
	case first == "path" && rest[0] == "cluster", first == "metadata" && rest[0] == "name":
		return path.Root("name"), true
	case first == "metadata" && (rest[0] == "labels" || rest[0] == "annotations"):
		return path.Root(rest[0]), true
	case first != "spec":
		return path.Empty(), false
	}
	at := path.Root(attributeName(rest[0]))
	for i, s := range rest[1:] {
		if hasFreeNames(rest[i]) {
			return at.AtMapKey(s), true // names in it are those of customers
		}
		if n, err := strconv.Atoi(s); err == nil {
			at = at.AtListIndex(n)
			continue
		}
		at = at.AtName(attributeName(s))
	}
	return at, true
}

func hasFreeNames(field string) bool { return field == "parameters" || field == "labels" }

// attributeName is the attribute of a field of the spec. At the top of a resource, provider means something else.
func attributeName(field string) string {
	switch field {
	case "provider":
		return "provider_name"
	case "podCIDRs":
		return "pod_cidrs"
	case "serviceCIDRs":
		return "service_cidrs"
	}
	var b strings.Builder
	upper := true // URL is one word
	for _, r := range field {
		if unicode.IsUpper(r) && !upper {
			b.WriteByte('_')
		}
		upper = unicode.IsUpper(r)
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}
