package providertest

import (
	"github.com/polder-kaas/polder/provider"
)

// Samples are releases of all generations of cluster stacks: with one variable for the size of all machines, with
// one for each sort of them, with old spelling, and with none at all.
func Samples() []provider.Release {
	workers := []string{"default-worker"}
	return []provider.Release{
		{
			Name: "sample-scs-1-37-v1", Kubernetes: "v1.37.1", Workers: workers,
			Variables: []provider.Variable{text("flavor"), number("rootDisk"), oidc("oidcConfig", "issuerURL", "clientID", "usernameClaim", "groupsClaim", "usernamePrefix", "groupsPrefix"), text("note")},
		},
		{
			Name: "sample-split-1-37-v1", Kubernetes: "v1.37.1", Workers: append([]string{"large-worker"}, workers...),
			Variables: []provider.Variable{text("controlPlaneFlavor"), text("workerFlavor"), number("controlPlaneRootDisk"), number("workerRootDisk")},
		},
		{
			Name: "sample-old-1-36-v1", Kubernetes: "v1.36.6", Workers: workers,
			Variables: []provider.Variable{
				text("controller_flavor"), text("worker_flavor"), number("controller_root_disk"), number("worker_root_disk"),
				oidc("oidc_config", "issuer_url", "client_id", "username_claim", "groups_claim", "username_prefix", "groups_prefix"),
			},
		},
		{Name: "sample-bare-1-37-v1", Kubernetes: "v1.37.1", Workers: workers},
	}
}

func text(name string) provider.Variable {
	return provider.Variable{Name: name, Schema: map[string]any{"type": "string"}}
}

func number(name string) provider.Variable {
	return provider.Variable{Name: name, Schema: map[string]any{"type": "integer", "minimum": int64(1)}}
}

func oidc(name string, fields ...string) provider.Variable {
	properties := map[string]any{}
	for _, f := range fields {
		properties[f] = map[string]any{"type": "string"}
	}
	return provider.Variable{Name: name, Schema: map[string]any{"type": "object", "properties": properties}}
}
