package datadir

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// minFreeBytes is the free space below which a start would only fail later, and with an error that is less clear.
const minFreeBytes = 16 << 20

// CheckSpace returns an error in one sentence if the disk is full.
func CheckSpace(path string) error {
	free, known := FreeBytes(path)
	if !known {
		return nil // writing will fail if there is too little
	}
	return checkFreeBytes(path, free)
}

// FreeBytes is how much this user may still write to the disk that holds path, if that is known.
func FreeBytes(path string) (free uint64, known bool) {
	var s unix.Statfs_t
	if unix.Statfs(path, &s) != nil || s.Blocks == 0 {
		return 0, false
	}
	return s.Bavail * uint64(s.Bsize), true //nolint:gosec // its type and sign differ between systems; it is never negative
}

func checkFreeBytes(path string, free uint64) error {
	if free >= minFreeBytes {
		return nil
	}
	return fmt.Errorf("the disk that holds %s is full (%d MB are free, %d MB are needed); free some space, then start again", path, free/1e6, minFreeBytes/1_000_000)
}
