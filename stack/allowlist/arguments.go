package allowlist

import (
	"fmt"
	"strings"
)

// parse splits arguments into flags, as the flag packages of the components do: etcd takes one dash or two, the others
// two, and one before the only letter they know, v. What it cannot read it refuses, so that nothing is left to the
// component to read differently.
func parse(component string, rules map[string]rule, args []string) (flags []Flag, refused []Refusal) {
	for i := 0; i < len(args); i++ {
		name, value, hasValue, ok := splitArgument(component, args[i])
		if !ok {
			refused = append(refused, Refusal{component, quoteShort(args[i]), "it is no flag; write --NAME=VALUE"})
			continue
		}
		r, known := rules[name]
		if !known {
			refused = append(refused, Refusal{component, "--" + shortName(name), refusalReason(component, name)})
			if !hasValue && i+1 < len(args) && !strings.HasPrefix(args[i+1], "-") {
				i++ // it would be its value
			}
			continue
		}
		switch {
		case hasValue:
		case r.boolean:
			value = "true"
		case i+1 < len(args):
			i++
			value = args[i]
		default:
			refused = append(refused, Refusal{component, "--" + name, "it has no value"})
			continue
		}
		flags = append(flags, Flag{Name: name, Given: value})
	}
	return flags, refused
}

// splitArgument splits --name=value; ok is false if it is no flag.
func splitArgument(component, arg string) (name, value string, hasValue, ok bool) {
	rest, long := strings.CutPrefix(arg, "--")
	if !long {
		if rest, ok = strings.CutPrefix(arg, "-"); !ok || rest == "" {
			return "", "", false, false
		}
		if component != Etcd { // one dash: only letters, of which there is one
			return splitVerbosity(rest)
		}
	}
	name, value, hasValue = strings.Cut(rest, "=")
	name = normalizeName(component, name)
	return name, value, hasValue, name != "" && name[0] != '-'
}

// splitVerbosity splits v, v=4 and v4.
func splitVerbosity(rest string) (name, value string, hasValue, ok bool) {
	value, ok = strings.CutPrefix(rest, "v")
	if after, found := strings.CutPrefix(value, "="); found {
		return "v", after, true, ok
	}
	return "v", value, value != "", ok
}

func shortName(name string) string {
	if q := quoteShort(name); q != `"`+name+`"` {
		return q
	}
	return name
}

// refusalReason says why a flag is not on the list.
func refusalReason(component, name string) string {
	for _, r := range refusalReasons {
		if strings.HasPrefix(name, r.prefix) && (r.component == "" || r.component == component) {
			return r.why
		}
	}
	return fmt.Sprintf("it is not on the list of flags that %s may have on a local machine; leave it out", component)
}
