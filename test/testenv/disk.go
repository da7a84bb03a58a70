package testenv

import (
	"fmt"
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// MountSmallDisk makes a directory that is a file system of its own with so many bytes, for the user the programs run as.
// That takes root, which tests of full disks therefore need.
func MountSmallDisk(t testing.TB, dir string, size int64) {
	t.Helper()
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	owner := os.Geteuid()
	if owner == 0 {
		owner = unprivilegedUID
	}
	options := fmt.Sprintf("size=%d,mode=0700,uid=%d,gid=%d", size, owner, owner)
	if err := unix.Mount("tmpfs", dir, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, options); err != nil {
		t.Fatalf("mounting a small disk: %v; run the tests of full disks as root", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Errorf("cleaning up: %v", err)
		}
	})
}
