package output

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
)

// Sanitize makes one line of a text from anywhere, without what would do something to a terminal.
func Sanitize(s string) string {
	return strings.Join(strings.Fields(strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, s)), " ")
}

// JoinNonEmpty joins texts, and leaves out those that are empty. It changes the slice it is given.
func JoinNonEmpty(by string, texts ...string) string {
	return strings.Join(slices.DeleteFunc(texts, func(t string) bool { return t == "" }), by)
}

// JoinOr lists choices as people do: "a, b or c".
func JoinOr(choices []string) string {
	last := len(choices) - 1
	if last < 1 {
		return strings.Join(choices, "")
	}
	return strings.Join(choices[:last], ", ") + " or " + choices[last]
}

// Megabytes is a number of bytes as people read it, rounded down.
func Megabytes(n uint64) string { return fmt.Sprintf("%d MB", n>>20) }
