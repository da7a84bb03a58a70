package scenario

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// FormatSeconds formats a time for people.
func FormatSeconds(d time.Duration) string { return fmt.Sprintf("%.2f s", d.Seconds()) }

// FormatPerItem formats the time for each of n.
func FormatPerItem(d time.Duration, n int) string {
	return fmt.Sprintf("%.0f ms each", d.Seconds()*1000/float64(n))
}

// FormatRange formats the shortest and the longest time.
func FormatRange(d []time.Duration) string {
	return fmt.Sprintf("%.2f to %.2f s", slices.Min(d).Seconds(), slices.Max(d).Seconds())
}

// JoinFew names at most five, and how many more there are.
func JoinFew(all []string) string {
	const most = 5
	s := slices.Sorted(slices.Values(all))
	if len(s) > most {
		return strings.Join(s[:most], ", ") + fmt.Sprintf(" and %d more", len(s)-most)
	}
	return strings.Join(s, ", ")
}

// Median is the one in the middle, the upper one if there are two.
func Median[T cmp.Ordered](all []T) T {
	s := slices.Sorted(slices.Values(all))
	return s[len(s)/2]
}
