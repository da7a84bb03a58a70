package hostapi

import (
	"fmt"
	"strings"
)

// Confinement is what the kernel does, or could do, to keep a cluster's processes apart from everything else.
type Confinement struct {
	Landlock   int    `json:"landlock"` // the version of its interface; 0: there is none
	Seccomp    bool   `json:"seccomp"`
	Namespaces bool   `json:"namespaces"`
	Cgroup     bool   `json:"cgroup,omitempty"`  // bounds all processes of a cluster together
	Missing    string `json:"missing,omitempty"` // why there is less than there could be
}

// minLandlock is the first version that guards against truncation.
const minLandlock = 3

// Complete says that it is enough for clusters of people who are not trusted.
func (c Confinement) Complete() bool { return c.Landlock >= minLandlock && c.Seccomp && c.Namespaces }

// String says what there is in a few words.
func (c Confinement) String() string {
	var have []string
	if c.Landlock > 0 {
		have = append(have, fmt.Sprintf("Landlock %d", c.Landlock))
	}
	if c.Seccomp {
		have = append(have, "seccomp")
	}
	if c.Namespaces {
		have = append(have, "namespaces")
	}
	if c.Cgroup {
		have = append(have, "cgroup")
	}
	text := "nothing"
	if len(have) > 0 {
		text = strings.Join(have, ", ")
	}
	if c.Missing != "" {
		text += "; " + c.Missing
	}
	return text
}
