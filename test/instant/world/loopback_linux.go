package world

import "syscall"

// onLoopback binds a socket to the loopback device: it takes connections to all of this machine's loopback
// addresses, and none from elsewhere.
func onLoopback(_, _ string, c syscall.RawConn) error {
	var err error
	if other := c.Control(func(fd uintptr) { err = syscall.BindToDevice(int(fd), "lo") }); other != nil {
		return other
	}
	return err
}
