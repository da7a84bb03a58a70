package host

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"strconv"
)

// anonymousMemory is the memory a process has for itself alone, in bytes; 0 if it is not known. What
// it shares with others, its program for example, does not count.
func anonymousMemory(pid int) uint64 {
	if pid == 0 {
		return 0
	}
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	lines := bufio.NewScanner(bytes.NewReader(b))
	for lines.Scan() {
		if f := bytes.Fields(lines.Bytes()); len(f) >= 2 && string(f[0]) == "RssAnon:" {
			n, _ := strconv.ParseUint(string(f[1]), 10, 64) // what is no number is 0
			return n << 10
		}
	}
	return 0
}
