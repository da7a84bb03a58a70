package render

import (
	"cmp"
	"time"
)

// Limits bound one child process. Zero means the default.
type Limits struct {
	Memory int64         // bytes beyond what the program itself takes at its start
	CPU    time.Duration // of all charts together, in full seconds
	Time   time.Duration // until the child must have ended
	Output int64         // bytes, per chart
}

// DefaultLimits are far above what real charts need.
var DefaultLimits = Limits{Memory: 256 << 20, CPU: 5 * time.Second, Time: 30 * time.Second, Output: 10 << 20}

func (l Limits) withDefaults() Limits {
	return Limits{
		Memory: cmp.Or(l.Memory, DefaultLimits.Memory),
		CPU:    cmp.Or(l.CPU, DefaultLimits.CPU),
		Time:   cmp.Or(l.Time, DefaultLimits.Time),
		Output: cmp.Or(l.Output, DefaultLimits.Output),
	}
}
