//go:build !linux

package filelock

import (
	"errors"
	"os"
	"runtime"
)

var errNotLinux = errors.New("management planes run on Linux only, and this is " + runtime.GOOS)

func lock(*os.File) (bool, error)   { return false, errNotLinux }
func locked(*os.File) (bool, error) { return false, errNotLinux }
