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

// Answer is the last answer of a provider about a cluster, with digests of the input it was given. It is kept on the
// Cluster: as long as the input is the same, so is the answer, whatever the provider would say today. A machine type
// that it sells since, or does not sell any more, replaces no machines and stops no cluster.
type Answer struct {
	InputDigest string            `json:"question"` // digest of all that the provider was given
	PartDigests map[string]string `json:"parts"`    // digest of the input for each part
	Topology    provider.Topology `json:"topology"`
}

// controlPlanePart is the key of the control plane in PartDigests, beside the names of pools. No pool can have this
// name.
const controlPlanePart = "/"

// ReadAnswer reads the answer that is kept on a Cluster. It is empty if there is none.
func ReadAnswer(c *clusterv1.Cluster) (a Answer) {
	if c != nil {
		d := json.NewDecoder(strings.NewReader(c.Annotations[v1alpha1.AnswerAnnotation]))
		d.UseNumber()    // a large number would lose digits as a float64, and the change would replace machines
		_ = d.Decode(&a) // with an annotation that cannot be read the provider is asked again
	}
	return a
}

// DigestInput returns an Answer that has only the digests of the input: of all that the provider's answer depends on,
// which the number of machines is not. The answer for one part may depend on the provider's own parameters and on
// spec.oidc, but not on parameters of the stack.
func DigestInput(o *v1alpha1.WorkloadCluster, release string, d provider.Description) (Answer, error) {
	// The digests are kept on Clusters. Another name or order of these fields would change them, and an update of
	// Polder would have providers asked again about machines that run.
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
	}{
		Release: release, ControlPlane: o.Spec.ControlPlane.MachineSelection, OIDC: o.Spec.OIDC,
		Parameters: o.Spec.Parameters,
	}
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

// digestOf returns a digest of v as JSON, where maps are sorted by key.
func digestOf(v any) (string, error) {
	b, err := json.Marshal(v)
	if err != nil {
		return "", fmt.Errorf("writing down what a provider is asked: %w", err)
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:16]), nil
}

// HasPart reports whether the answer has machines for a part: a pool or the control plane.
func (a Answer) HasPart(part string) bool {
	_, ok := a.Topology.Pools[part]
	return ok || part == controlPlanePart && a.PartDigests[part] != ""
}

// KeepUnchangedParts takes over from an earlier answer the machines of all parts whose input is the same.
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
