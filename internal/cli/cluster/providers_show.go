package cluster

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/polder-kaas/polder/api/v1alpha1"
	"github.com/polder-kaas/polder/internal/cli/objects"
	"github.com/polder-kaas/polder/internal/cli/output"
	"github.com/polder-kaas/polder/internal/program/exit"
)

// printProvider shows what a cluster can be made of there.
func printProvider(w io.Writer, all []v1alpha1.Provider, name string, out *output.Flag) error {
	i := slices.IndexFunc(all, func(p v1alpha1.Provider) bool { return p.Name == name })
	if i < 0 {
		var names []string
		for _, p := range all {
			names = append(names, p.Name)
		}
		if len(names) == 0 {
			return exit.Errorf(exit.Usage, "there is no provider %q, and no other", name)
		}
		return exit.Errorf(exit.Usage, "there is no provider %q; choose from: %s", name, strings.Join(names, ", "))
	}
	p := all[i]
	if !out.IsHumanReadable() {
		u, err := objects.ToUnstructured(p)
		if err != nil {
			return err
		}
		return out.PrintObject(w, u)
	}
	s := p.Status
	fmt.Fprintf(w, "Provider %s: %s\n", p.Name,
		output.JoinNonEmpty(", ", output.Sanitize(s.Title), output.Sanitize(s.Version)))
	fmt.Fprintf(w, "Ready: %s\n", output.JoinNonEmpty(": ", readyStatus(s.Conditions),
		output.Sanitize(readyMessage(s.Conditions))))
	if len(s.Capabilities) > 0 {
		fmt.Fprintf(w, "Capabilities: %s\n", output.Sanitize(strings.Join(s.Capabilities, ", ")))
	}
	if len(s.Zones) > 0 {
		fmt.Fprintf(w, "Zones: %s\n", output.Sanitize(strings.Join(s.Zones, ", ")))
	}
	if s.AnyShape {
		fmt.Fprintln(w, "Machines: any shape, so every portable name such as SCS-2V-4 works")
	}
	if len(s.MachineTypes) == 0 {
		return nil
	}
	fmt.Fprintln(w)
	return (&table{}).print(w, machineTypeRows(s.MachineTypes))
}

// machineTypeRows has the portable name beside the provider's own, since that one is for files that move.
func machineTypeRows(all []v1alpha1.MachineType) [][]string {
	rows := [][]string{{"MACHINE-TYPE", "PORTABLE", "CPU", "MEMORY", "DISK"}}
	for _, t := range all {
		disk := ""
		if t.DiskGB > 0 {
			disk = fmt.Sprintf("%d GB", t.DiskGB)
		}
		rows = append(rows, []string{
			t.Name, t.Portable, fmt.Sprint(t.CPU), fmt.Sprintf("%g GiB", float64(t.MemoryMiB)/1024), disk,
		})
	}
	return rows
}
