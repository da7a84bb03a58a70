package memory

import (
	"bufio"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// dropColdText unmaps the pages of the program file from this process's memory. The start uses code that is not
// needed again for a long time; what is needed comes back from the page cache, a few pages at a time, when it is
// next used. Only read-only mappings of the file are dropped: nothing in them can be lost.
func dropColdText() {
	exe, err := os.Executable()
	if err != nil {
		return // only an optimisation
	}
	f, err := os.Open("/proc/self/maps")
	if err != nil {
		return
	}
	defer f.Close() //nolint:errcheck // read only
	for s := bufio.NewScanner(f); s.Scan(); {
		if start, end, ok := readOnlyMapping(s.Text(), exe); ok {
			_, _, _ = unix.Syscall(unix.SYS_MADVISE, start, end-start, unix.MADV_DONTNEED) // as above
		}
	}
}

// readOnlyMapping parses a line of /proc/self/maps if it maps file without the right to write.
func readOnlyMapping(line, file string) (start, end uintptr, ok bool) {
	fields := strings.Fields(line)
	if len(fields) < 6 || fields[5] != file || (fields[1] != "r-xp" && fields[1] != "r--p") {
		return 0, 0, false
	}
	n, err := fmt.Sscanf(fields[0], "%x-%x", &start, &end)
	return start, end, err == nil && n == 2
}
