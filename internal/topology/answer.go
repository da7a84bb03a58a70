package topology

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/polder-kaas/polder/api/v1alpha1"
	"github.com/polder-kaas/polder/provider"
)

// Answer is what a provider last said about a cluster, and what it was asked. It is kept on the Cluster: as long as the
// question is the same, so is the answer, whatever the provider would say today. A machine type that it sells since,
// or does not sell any more, replaces no machines and stops no cluster.
type Answer struct {
	InputDigest string            `json:"question"` // digest of what the provider was asked
	PartDigests map[string]string `json:"parts"`    // and of what was asked about machines of one sort
	Topology    provider.Topology `json:"topology"`
}

// controlPlanePart is the name of the control plane among parts; pools cannot have it.
const controlPlanePart = "/"

// ReadAnswer reads the answer that a Cluster has; it is empty if there is none.
func ReadAnswer(c *clusterv1.Cluster) (a Answer) {
	if c != nil {
		d := json.NewDecoder(strings.NewReader(c.Annotations[v1alpha1.AnswerAnnotation]))
		d.UseNumber()    // a large one would become another, and with it machines
		_ = d.Decode(&a) // whoever spoiled it has the provider asked anew
	}
	return a
}

// DigestInput is what the answer of a provider depends on: not how many machines there are. What is said about machines
// of one sort may depend on the provider's own parameters and on who may log in, but not on parameters of the stack.
func DigestInput(o *v1alpha1.WorkloadCluster, release string, d provider.Description) (Answer, error) {
	type pool struct {
		Name string
		v1alpha1.MachineSelection
		Zones []string
	}
	asked := struct {
		Release      string
		ControlPlane v1alpha1.MachineSelection
		Pools        []pool
		OIDC         *v1alpha1.OIDC
		Parameters   map[string]provider.JSON
	}{Release: release, ControlPlane: o.Spec.ControlPlane.MachineSelection, OIDC: o.Spec.OIDC, Parameters: o.Spec.Parameters}
	own := map[string]provider.JSON{}
	for name := range d.Parameters {
		if v, ok := o.Spec.Parameters[name]; ok {
			own[name] = v
		}
	}
	a := Answer{PartDigests: map[string]string{}}
	var err error
	if a.PartDigests[controlPlanePart], err = digestOf([]any{release, asked.ControlPlane, o.Spec.OIDC, own}); err != nil {
		return a, err
	}
	for _, p := range o.Spec.Workers {
		one := pool{p.Name, p.MachineSelection, p.Zones}
		asked.Pools = append(asked.Pools, one)
		if a.PartDigests[p.Name], err = digestOf([]any{release, one, o.Spec.OIDC, own}); err != nil {
			return a, err
		}
	}
	a.InputDigest, err = digestOf(asked)
	return a, err
}

func digestOf(v any) (string, error) {
	b, err := json.Marshal(v)
	if err != nil {
		return "", fmt.Errorf("writing down what a provider is asked: %w", err)
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:16]), nil
}

// HasPart says that the provider said something about machines of one sort.
func (a Answer) HasPart(part string) bool {
	_, ok := a.Topology.Pools[part]
	return ok || part == controlPlanePart && a.PartDigests[part] != ""
}

// KeepUnchangedParts takes from an earlier answer what was said about machines that are asked for as before.
func (a *Answer) KeepUnchangedParts(was Answer) {
	if d := a.PartDigests[controlPlanePart]; d == was.PartDigests[controlPlanePart] {
		a.Topology.ControlPlane = was.Topology.ControlPlane
	}
	for name, d := range a.PartDigests {
		if m, ok := was.Topology.Pools[name]; ok && d == was.PartDigests[name] {
			if a.Topology.Pools == nil {
				a.Topology.Pools = map[string]provider.Machines{}
			}
			a.Topology.Pools[name] = m
		}
	}
}
