package document

import "unicode/utf8"

// EstimateValues gives at least half of how many values a YAML text has, without parsing it: each value has
// one of these characters before or after it. A value takes some 200 bytes once it is parsed, so whoever
// parses much estimates first.
func EstimateValues(b []byte) (n int) {
	for i, c := range b {
		switch c {
		case '\n', '\r', '[', '?':
			n++
		case ',', '{': // a key and its value, as in {a,b}
			n += 2
		case '-', ':': // signs only before a space; lines may also end in characters beyond ASCII
			if i+1 == len(b) || b[i+1] <= ' ' || b[i+1] >= utf8.RuneSelf {
				n++
			}
		}
	}
	return n
}
