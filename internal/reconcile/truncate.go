package reconcile

import "strings"

// maxMessageBytes is how long a message in a status may be. Nobody reads more.
const maxMessageBytes = 1024

// TruncateMessage makes of a message one line that fits into a status.
func TruncateMessage(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	if len(s) <= maxMessageBytes {
		return s
	}
	return strings.ToValidUTF8(s[:maxMessageBytes-len("…")], "") + "…"
}
