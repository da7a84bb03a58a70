package providertest

import (
	"github.com/polder-kaas/polder/provider"
)

// SampleReleases are releases of all generations of cluster stacks: with one variable for the size of all machines,
// with one for each sort of them, with the old spelling, and with none at all.
func SampleReleases() []provider.Release {
	workers := []string{"default-worker"}
	return []provider.Release{
		{
			Name: "sample-scs-1-37-v1", Kubernetes: "v1.37.1", Workers: workers,
			Variables: []provider.Variable{
				stringVariable("flavor"), integerVariable("rootDisk"),
				oidcVariable("oidcConfig", "issuerURL", "clientID", "usernameClaim", "groupsClaim", "usernamePrefix",
					"groupsPrefix"),
				stringVariable("note"),
			},
		},
		{
			Name: "sample-split-1-37-v1", Kubernetes: "v1.37.1", Workers: append([]string{"large-worker"}, workers...),
			Variables: []provider.Variable{
				stringVariable("controlPlaneFlavor"), stringVariable("workerFlavor"), integerVariable("controlPlaneRootDisk"),
				integerVariable("workerRootDisk"),
			},
		},
		{
			Name: "sample-old-1-36-v1", Kubernetes: "v1.36.6", Workers: workers,
			Variables: []provider.Variable{
				stringVariable("controller_flavor"), stringVariable("worker_flavor"), integerVariable("controller_root_disk"),
				integerVariable("worker_root_disk"),
				oidcVariable("oidc_config", "issuer_url", "client_id", "username_claim", "groups_claim", "username_prefix",
					"groups_prefix"),
			},
		},
		{Name: "sample-bare-1-37-v1", Kubernetes: "v1.37.1", Workers: workers},
	}
}

func stringVariable(name string) provider.Variable {
	return provider.Variable{Name: name, Schema: map[string]any{"type": "string"}}
}

func integerVariable(name string) provider.Variable {
	return provider.Variable{Name: name, Schema: map[string]any{"type": "integer", "minimum": int64(1)}}
}

func oidcVariable(name string, fields ...string) provider.Variable {
	properties := map[string]any{}
	for _, f := range fields {
		properties[f] = map[string]any{"type": "string"}
	}
	return provider.Variable{Name: name, Schema: map[string]any{"type": "object", "properties": properties}}
}
