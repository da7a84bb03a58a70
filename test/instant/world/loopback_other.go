//go:build !linux

package world

import (
	"errors"
	"syscall"
)

// onLoopback refuses: elsewhere there is one loopback address, and clusters need one each.
func onLoopback(string, string, syscall.RawConn) error {
	return errors.New("instant clusters are served on Linux only")
}
