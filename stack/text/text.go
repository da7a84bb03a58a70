// Package text makes texts fit where they are shown or stored.
package text

import "strings"

// ellipsis shows that something was left out.
const ellipsis = "…"

// Truncate returns s if it has at most limit bytes, else its beginning and an ellipsis, which together have at most
// limit bytes. So the limit may be the one of a field of the API, which counts characters. No character is cut in
// two, and what is cut is valid UTF-8. A limit that is too small for the ellipsis leaves nothing.
func Truncate(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	if limit < len(ellipsis) {
		return ""
	}
	return strings.ToValidUTF8(s[:limit-len(ellipsis)], "") + ellipsis
}
