package datadir

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// minFreeBytes is the free space below which a start would only fail later, and with other words.
const minFreeBytes = 16 << 20

// CheckSpace says in one sentence that the disk is full, if it is.
func CheckSpace(path string) error {
	var s unix.Statfs_t
	if unix.Statfs(path, &s) != nil || s.Blocks == 0 {
		return nil // not known; writing will tell
	}
	return checkFreeBytes(path, s.Bavail*uint64(s.Bsize)) //nolint:gosec // its type and sign differ between systems; it is never negative
}

func checkFreeBytes(path string, free uint64) error {
	if free >= minFreeBytes {
		return nil
	}
	return fmt.Errorf("the disk that holds %s is full (%d MB are free, %d MB are needed); free some space, then start again", path, free/1e6, minFreeBytes/1_000_000)
}
