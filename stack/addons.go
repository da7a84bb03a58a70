package stack

import (
	"github.com/polder-kaas/polder/stack/document"
)

// The two runtime hooks of Cluster API that add-ons are applied on.
const (
	AfterControlPlaneInitialized = "AfterControlPlaneInitialized"
	BeforeClusterUpgrade         = "BeforeClusterUpgrade"

	// afterClusterUpgrade is a hook that stacks name, and that no operator runs stages on.
	afterClusterUpgrade = "AfterClusterUpgrade"
)

// The two things that are done with the add-on of a stage.
const (
	ActionApply  = "apply"
	ActionDelete = "delete"
)

// AddonConfig is what clusteraddon.yaml says: which add-ons, when, in which order.
type AddonConfig struct {
	APIVersion          string             `json:"apiVersion"`
	ClusterAddonVersion string             `json:"clusterAddonVersion"`
	AddonStages         map[string][]Stage `json:"addonStages"` // by runtime hook
}

// Stage is one add-on and what must be true before and after it.
type Stage struct {
	Name                 string     `json:"name"` // of the chart's directory
	Action               string     `json:"action"`
	WaitForPreCondition  *Condition `json:"waitForPreCondition,omitempty"`
	WaitForPostCondition *Condition `json:"waitForPostCondition,omitempty"`
}

// Condition is a CEL expression over objects of the workload cluster.
type Condition struct {
	Objects    []ConditionObject `json:"objects"`
	Conditions string            `json:"conditions"`
}

// ConditionObject is known to the expression by its key.
type ConditionObject struct {
	Key        string `json:"key"`
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Name       string `json:"name"`
	Namespace  string `json:"namespace,omitempty"`
}

// ParseAddonConfig reads clusteraddon.yaml. Whether what it names exists is checked when a stack is linted.
func ParseAddonConfig(b []byte) (AddonConfig, error) {
	var c AddonConfig
	d, err := document.ParseOne(addonConfigFile, b)
	if err != nil {
		return c, err
	}
	return c, d.Decode(&c)
}
