//go:build fault && linux

// Package clockfault lets tests set the wall clock of a program, while it runs, and of nothing else: importing it puts
// a function between the Go runtime and the kernel's clock. It is in no program that people run.
package clockfault

import (
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Variable is the environment variable that names a file with the seconds to add, as eight bytes, least first. The
// program follows every change of the file.
const Variable = "POLDER_CLOCK"

// Read by the assembly.
var (
	kernelClock uintptr //nolint:unused // the kernel's function
	seconds     *int64  // what to add
)

// runtimeClock is what the runtime calls to know the time. The linker must be told to allow that (-checklinkname=0).
//
//go:linkname runtimeClock runtime.vdsoClockgettimeSym
var runtimeClock uintptr

// jumpingClockAddress returns the address of the function that is called instead.
func jumpingClockAddress() uintptr

func init() {
	path := os.Getenv(Variable) //nolint:forbidigo // for tests
	if path == "" {
		return
	}
	if err := follow(path); err != nil {
		panic(err) //nolint:forbidigo // nobody to return it to, and the test would be about nothing
	}
}

// follow makes the clock add the seconds in a file.
func follow(path string) error {
	f, err := os.Open(path) //nolint:gosec // the test's own
	if err != nil {
		return err
	}
	defer f.Close() //nolint:errcheck // it is only read
	b, err := unix.Mmap(int(f.Fd()), 0, int(unsafe.Sizeof(*seconds)), unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return err
	}
	seconds = (*int64)(unsafe.Pointer(&b[0])) //nolint:gosec // as long as that
	kernelClock, runtimeClock = runtimeClock, jumpingClockAddress()
	return nil
}
