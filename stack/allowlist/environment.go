package allowlist

import (
	"regexp"
	"strconv"
	"strings"
)

// environment is the variables that a component may have. Those of etcd would set any flag, those of Go and of its
// libraries change what is verified, looked up and asked.
var environment = map[string]kind{
	"GOGC": word, "GOMAXPROCS": number, "GOMEMLIMIT": word,
}

// gateVariable sets a feature gate of Kubernetes' client libraries.
var gateVariable = regexp.MustCompile(`^KUBE_FEATURE_[A-Za-z0-9]{1,100}$`)

// CheckVariable says whether a component may have a variable in its environment.
func CheckVariable(component, name, value string) []Refusal {
	refused := func(why string) []Refusal {
		return []Refusal{{component, "the environment variable " + shortName(name), why}}
	}
	if gateVariable.MatchString(name) {
		if _, err := strconv.ParseBool(value); err != nil {
			return refused("it is neither true nor false")
		}
		return nil
	}
	check := environment[name]
	switch {
	case check == nil && strings.HasPrefix(name, "ETCD_"):
		return refused("give it to etcd as a flag")
	case check == nil:
		return refused("it is not on the list of variables that a component may have on a local machine; leave it out")
	}
	if _, err := check(&checker{}, value); err != nil {
		return refused(err.Error())
	}
	return nil
}
