package cluster

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/polder-kaas/polder/api/v1alpha1"
	"github.com/polder-kaas/polder/internal/cli/output"
	"github.com/polder-kaas/polder/internal/program/exit"
	"github.com/polder-kaas/polder/provider/machinetype"
)

// moveReport is what becomes of a cluster at another provider.
type moveReport struct {
	to       string
	same     []string // what is there as it is here
	changed  []string // what is written in another way, and is the same
	toReview []string // what polder cannot tell
	lost     []string // what is not there
}

// moveCluster makes of a cluster what can be had at another provider; what cannot is left out of it, and told.
// from is nil if nobody knows the provider it is from.
func moveCluster(c *v1alpha1.WorkloadCluster, from, to *v1alpha1.Provider) *moveReport {
	m := &moveReport{to: to.Name}
	c.Spec.Provider = to.Name
	m.moveMachine("control plane", &c.Spec.ControlPlane.MachineSelection, from, to)
	for i := range c.Spec.Workers {
		p := &c.Spec.Workers[i]
		m.moveMachine("pool "+p.Name, &p.MachineSelection, from, to)
		m.moveZones(p, to)
	}
	m.moveParameters(c, from, to)
	if c.Spec.OIDC != nil {
		m.toReview = append(m.toReview, fmt.Sprintf("oidc: the plane says if the stack for %s cannot set it", to.Name))
	}
	return m
}

// moveMachine finds the same machine elsewhere, and reports how sure that is: same, changed, to review or lost.
// Nothing is replaced in silence.
func (m *moveReport) moveMachine(part string, s *v1alpha1.MachineSelection, from, to *v1alpha1.Provider) {
	before := describeMachineSelection(*s)
	switch {
	case s.Machine == nil && s.MachineType == "":
		m.toReview = append(m.toReview, fmt.Sprintf("%s: %s is %s's, which may be another machine", part, before, to.Name))
		return
	case hasMachines(to, *s) && isSameMachine(*s, from, to):
		m.same = append(m.same, part+": "+before)
		return
	}
	for _, other := range equivalentSelections(*s, from) {
		if hasMachines(to, other) {
			*s = other
			m.changed = append(m.changed, fmt.Sprintf("%s: %s becomes %s", part, before, describeMachineSelection(other)))
			if other.Machine != nil {
				m.reviewPromises(part, before)
			}
			return
		}
	}
	if from == nil && hasMachines(to, *s) {
		m.toReview = append(m.toReview,
			fmt.Sprintf("%s: %s is a name of %s too, but nobody knows whether it is the same machine", part, before, to.Name))
		return
	}
	*s = v1alpha1.MachineSelection{}
	m.lost = append(m.lost, fmt.Sprintf("%s: %s has nothing like %s%s", part, to.Name, before, machineTypesHint(to)))
}

// reviewPromises says what a portable name has that a shape cannot say.
func (m *moveReport) reviewPromises(part, name string) {
	t, err := machinetype.Parse(name)
	if err != nil {
		return
	}
	if t.CPU == machinetype.Core || t.CPU == machinetype.Thread {
		m.toReview = append(m.toReview, fmt.Sprintf("%s: %s promises CPUs that are not shared, a shape does not", part, name))
	}
	if t.Disk == machinetype.SolidDisk || t.Disk == machinetype.NVMe {
		m.toReview = append(m.toReview, fmt.Sprintf("%s: %s promises a fast local disk, a shape does not", part, name))
	}
}

// moveZones goes by name alone: nothing else is known of zones.
func (m *moveReport) moveZones(p *v1alpha1.WorkerPool, to *v1alpha1.Provider) {
	var there []string
	for _, z := range p.Zones {
		if slices.Contains(to.Status.Zones, z) {
			there = append(there, z)
			m.same = append(m.same, fmt.Sprintf("pool %s: zone %s", p.Name, z))
			continue
		}
		text := "it has none that can be chosen"
		if len(to.Status.Zones) > 0 {
			text = "it has " + strings.Join(to.Status.Zones, ", ")
		}
		m.lost = append(m.lost, fmt.Sprintf("pool %s: %s has no zone %s; %s", p.Name, to.Name, z, text))
	}
	p.Zones = there
}

// print tells everything that is worth knowing before a cluster is made elsewhere.
func (m *moveReport) print(w io.Writer, name string) {
	fmt.Fprintf(w, "Cluster %s at provider %s:\n", name, m.to)
	for _, part := range []struct {
		word  string
		texts []string
	}{{"same", m.same}, {"changed", m.changed}, {"look at", m.toReview}, {"lost", m.lost}} {
		for _, t := range part.texts {
			fmt.Fprintf(w, "  %-8s %s\n", part.word, output.Sanitize(t))
		}
	}
}

// err refuses to lose anything without being told to.
func (m *moveReport) err(force bool) error {
	if len(m.lost) == 0 || force {
		return nil
	}
	return exit.Errorf(exit.Usage,
		"provider %s cannot make this cluster as it is (%d lost above); change the file, or leave those parts out with --force", m.to, len(m.lost))
}
