// Package suggest finds the word that was probably meant.
package suggest

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// Max is how many names a sentence suggests. Where there are more, it says how to see them all.
const Max = 5

// maxWordLength is how many letters a word may have. Names have fewer, and to compare longer ones takes long.
const maxWordLength = 64

// Closest returns the word that is most like the given one, if it is like enough: at most a third of its letters
// differ.
func Closest(word string, among []string) (string, bool) {
	if utf8.RuneCountInString(word) > maxWordLength {
		return "", false
	}
	best, least := "", len([]rune(word))/3+1
	for _, w := range slices.Sorted(slices.Values(among)) {
		if d := Distance(fold(word), fold(w)); d < least {
			best, least = w, d
		}
	}
	return best, best != ""
}

// Hint returns the end of a sentence that names the word that was meant; "" if there is none.
func Hint(word string, among []string) string {
	if w, ok := Closest(word, among); ok {
		return "; did you mean " + w + "?"
	}
	return ""
}

// fold turns letters into lower case and drops separators: people mix up spellings.
func fold(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '-' || r == '_' || r == '.':
			return -1
		case r >= 'A' && r <= 'Z':
			return r + 'a' - 'A'
		}
		return r
	}, s)
}

// Distance is how many letters must be inserted, deleted or replaced to make one word of the other (Levenshtein). Upper
// and lower case differ.
func Distance(from, to string) int {
	a, b := []rune(from), []rune(to)
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range a {
		// Only one row of the matrix is kept; diagonal is the value that row[j] had before this letter.
		diagonal := row[0]
		row[0] = i + 1
		for j := range b {
			cost := diagonal
			if a[i] != b[j] {
				cost = min(diagonal, row[j], row[j+1]) + 1
			}
			diagonal, row[j+1] = row[j+1], cost
		}
	}
	return row[len(b)]
}
