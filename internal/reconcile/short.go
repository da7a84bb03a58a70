package reconcile

import "strings"

// longest is how long a message in a status may be. Nobody reads more.
const longest = 1024

// Short makes of a message one line that fits into a status.
func Short(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	if len(s) <= longest {
		return s
	}
	return strings.ToValidUTF8(s[:longest-len("…")], "") + "…"
}
