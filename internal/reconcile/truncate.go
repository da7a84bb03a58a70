package reconcile

import (
	"strings"

	"github.com/polder-kaas/polder/stack/text"
)

// maxMessageBytes is how long a condition message may be. Nobody reads more.
const maxMessageBytes = 1024

// TruncateMessage makes a text one line that is short enough for a condition message.
func TruncateMessage(s string) string {
	return text.Truncate(strings.Join(strings.Fields(s), " "), maxMessageBytes)
}
