package render

import (
	"bytes"
	"fmt"
	"os"
	"runtime/debug"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// enforce limits this process. The kernel counts memory that can be written, which Go takes only
// when it needs it; what is mapped already belongs to the program and is added to the limit.
func (l Limits) enforce() error {
	used, err := writableMemory()
	if err != nil {
		return err
	}
	debug.SetMemoryLimit(l.Memory / 2) // collect in time rather than fail
	most := uint64(used + l.Memory)    //nolint:gosec // both are positive
	if err := unix.Setrlimit(unix.RLIMIT_DATA, &unix.Rlimit{Cur: most, Max: most}); err != nil {
		return fmt.Errorf("memory: %w", err)
	}
	seconds := uint64(max(l.CPU, time.Second) / time.Second)
	if err := unix.Setrlimit(unix.RLIMIT_CPU, &unix.Rlimit{Cur: seconds, Max: seconds}); err != nil {
		return fmt.Errorf("CPU: %w", err)
	}
	// It opens no file and no connection from here on, and writes none but its output, a pipe.
	for name, resource := range map[string]int{"files": unix.RLIMIT_NOFILE, "file size": unix.RLIMIT_FSIZE,
		"core": unix.RLIMIT_CORE} {
		if err := unix.Setrlimit(resource, &unix.Rlimit{}); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

func writableMemory() (int64, error) {
	b, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0, err
	}
	for line := range bytes.Lines(b) {
		if rest, ok := bytes.CutPrefix(line, []byte("VmData:")); ok {
			kb, err := strconv.ParseInt(string(bytes.TrimSpace(bytes.TrimSuffix(bytes.TrimSpace(rest), []byte("kB")))), 10, 64)
			return kb << 10, err
		}
	}
	return 0, fmt.Errorf("the kernel does not say how much memory this process has")
}
