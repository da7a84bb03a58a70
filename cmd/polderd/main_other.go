//go:build !linux

// Command polderd is Polder's whole management plane in one process, for Linux only.
package main

import (
	"fmt"
	"os"
	"runtime"

	"github.com/polder-kaas/polder/internal/program/exit"
)

func main() {
	fmt.Fprintf(os.Stderr, "polderd: management planes and local clusters run on Linux only, and this is %s; "+
		"run polderd on a Linux machine\n", runtime.GOOS)
	os.Exit(exit.Failure)
}
