package reconcile

import "strings"

// maxMessageBytes is how long a condition message may be. Nobody reads more.
const maxMessageBytes = 1024

// TruncateMessage makes a text one line that is short enough for a condition message.
func TruncateMessage(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	if len(s) <= maxMessageBytes {
		return s
	}
	return strings.ToValidUTF8(s[:maxMessageBytes-len("…")], "") + "…"
}
