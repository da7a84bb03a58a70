//go:build !fault

package confine

func isOff() bool { return false }

// Environment is what a confined process must hand on to what it starts.
func Environment() []string { return nil }
