package measure

import (
	"fmt"
	"os"

	"github.com/polder-kaas/polder/bench/process"
	"github.com/polder-kaas/polder/bench/scenario"
)

// Columns are those of tables about a plane.
var Columns = []string{"WHAT", "MEASURED", "AIM", "RATIO", "MORE"}

// CPU is the CPU time that polderd has used so far.
func (p *Plane) CPU() (process.CPU, error) { return process.ReadCPU(p.PID()) }

// FormatChildren formats the part that children of polderd used.
func FormatChildren(c process.CPU) string { return "rendering " + scenario.FormatSeconds(c.Children) }

// Memory is the resident set of polderd in MiB now, and the largest since ResetPeakMemory.
func (p *Plane) Memory() (now, peak int, err error) {
	m, err := process.ReadMemory(p.PID(), "status", "VmRSS", "VmHWM")
	return int(m["VmRSS"] >> 20), int(m["VmHWM"] >> 20), err
}

// ResetPeakMemory makes the kernel record the largest resident set anew.
func (p *Plane) ResetPeakMemory() error {
	return os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", p.PID()), []byte("5"), 0)
}
