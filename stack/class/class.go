// Package class reads the ClusterClass a release renders to, as far as people and tools must know
// it: what it accepts, what it changes, what it refers to. It knows both versions of Cluster API's
// types that are in use.
package class

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/polder-kaas/polder/stack/render"
)

// Group of Cluster API's own kinds.
const Group = "cluster.x-k8s.io"

// The versions of Cluster API's types a class can be written in.
const (
	V1Beta1 = "v1beta1"
	V1Beta2 = "v1beta2"
)

// Class is a ClusterClass.
type Class struct {
	render.Object
	Version                  string // of the types: v1beta1 or v1beta2
	Variables                []Variable
	Patches                  []Patch
	Refs                     []Ref
	MachineDeploymentClasses []string // names of the classes of machine deployments
}

// Variable is one parameter of the class.
type Variable struct {
	Name     string `json:"name"`
	Required bool   `json:"required"`
	Schema   struct {
		OpenAPIV3Schema map[string]any `json:"openAPIV3Schema"`
	} `json:"schema"`
}

// Patch changes templates by the values of variables.
type Patch struct {
	Name        string       `json:"name"`
	EnabledIf   string       `json:"enabledIf"`
	Definitions []Definition `json:"definitions"`
	External    any          `json:"external"`
}

// Definition is the part of a patch for one kind of template.
type Definition struct {
	Selector struct {
		APIVersion     string          `json:"apiVersion"`
		Kind           string          `json:"kind"`
		MatchResources *MatchResources `json:"matchResources"`
	} `json:"selector"`
	JSONPatches []JSONPatch `json:"jsonPatches"`
}

// MatchResources says which of the templates of a kind a patch is for.
type MatchResources struct {
	ControlPlane           bool   `json:"controlPlane"`
	InfrastructureCluster  bool   `json:"infrastructureCluster"`
	MachineDeploymentClass *Names `json:"machineDeploymentClass"`
	MachinePoolClass       *Names `json:"machinePoolClass"`
}

// Names are those of classes of workers; * may be part of them.
type Names struct {
	Names []string `json:"names"`
}

// JSONPatch is one change.
type JSONPatch struct {
	Op        string `json:"op"`
	Path      string `json:"path"`
	Value     any    `json:"value"`
	ValueFrom *struct {
		Variable string `json:"variable"`
		Template string `json:"template"`
	} `json:"valueFrom"`
}

// Ref is a template the class refers to.
type Ref struct {
	Field      string // the field of the class
	APIVersion string
	Kind       string
	Name       string
}

type reference struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Name       string `json:"name"`
}

// refHolder holds a reference, in the field that either version of the types has for it.
type refHolder struct {
	Ref         *reference `json:"ref"`
	TemplateRef *reference `json:"templateRef"`
}

// workerClass is a class of workers. Its references are below template in v1beta1, and not in v1beta2.
type workerClass struct {
	Class          string     `json:"class"`
	Bootstrap      *refHolder `json:"bootstrap"`
	Infrastructure *refHolder `json:"infrastructure"`
	Template       *struct {
		Bootstrap      *refHolder `json:"bootstrap"`
		Infrastructure *refHolder `json:"infrastructure"`
	} `json:"template"`
}

type spec struct {
	Infrastructure refHolder `json:"infrastructure"`
	ControlPlane   struct {
		refHolder
		MachineInfrastructure *refHolder `json:"machineInfrastructure"`
	} `json:"controlPlane"`
	Workers struct {
		MachineDeployments []workerClass `json:"machineDeployments"`
		MachinePools       []workerClass `json:"machinePools"`
	} `json:"workers"`
	Variables []Variable `json:"variables"`
	Patches   []Patch    `json:"patches"`
}

// Find finds the class among the objects of a release; there must be exactly one.
func Find(objects []render.Object) (*Class, error) {
	var found *render.Object
	for i, o := range objects {
		if o.Group() != Group || o.Kind() != "ClusterClass" {
			continue
		}
		if found != nil {
			return nil, fmt.Errorf("there are two ClusterClasses, %s and %s; a release has one", found.Name(), o.Name())
		}
		found = &objects[i]
	}
	if found == nil {
		return nil, fmt.Errorf("there is no ClusterClass among what the cluster class renders to")
	}
	return parse(*found)
}

func parse(o render.Object) (*Class, error) {
	c := &Class{Object: o, Version: strings.TrimPrefix(o.APIVersion(), Group+"/")}
	if c.Version != V1Beta1 && c.Version != V1Beta2 {
		return nil, fmt.Errorf("%s has the apiVersion %s; %s/%s and %s are known", o, o.APIVersion(), Group, V1Beta1, V1Beta2)
	}
	b, err := json.Marshal(o.Value["spec"])
	if err != nil {
		return nil, err
	}
	var s spec
	if err := json.Unmarshal(b, &s); err != nil {
		return nil, fmt.Errorf("%s: its spec is not that of a class: %w", o, err)
	}
	c.Variables, c.Patches = s.Variables, s.Patches
	c.collectRefs(s)
	return c, nil
}

func (c *Class) collectRefs(s spec) {
	add := func(where string, h *refHolder) {
		if h == nil {
			return
		}
		for _, r := range []*reference{h.Ref, h.TemplateRef} {
			if r != nil {
				c.Refs = append(c.Refs, Ref{Field: where, APIVersion: r.APIVersion, Kind: r.Kind, Name: r.Name})
			}
		}
	}
	add("infrastructure", &s.Infrastructure)
	add("controlPlane", &s.ControlPlane.refHolder)
	add("controlPlane.machineInfrastructure", s.ControlPlane.MachineInfrastructure)
	for _, w := range s.Workers.MachineDeployments {
		c.MachineDeploymentClasses = append(c.MachineDeploymentClasses, w.Class)
	}
	for _, list := range []struct {
		field   string
		workers []workerClass
	}{{"workers.machineDeployments", s.Workers.MachineDeployments}, {"workers.machinePools", s.Workers.MachinePools}} {
		for i, w := range list.workers {
			where := fmt.Sprintf("%s[%d]", list.field, i)
			add(where+".bootstrap", w.Bootstrap)
			add(where+".infrastructure", w.Infrastructure)
			if w.Template != nil {
				add(where+".bootstrap", w.Template.Bootstrap)
				add(where+".infrastructure", w.Template.Infrastructure)
			}
		}
	}
}

// Defaults are the values variables have if a cluster says nothing, as Cluster API fills them in.
func (c *Class) Defaults() []any {
	var out []any
	for _, v := range c.Variables {
		if d, ok := v.Schema.OpenAPIV3Schema["default"]; ok {
			out = append(out, map[string]any{"name": v.Name, "value": d})
		}
	}
	return out
}
