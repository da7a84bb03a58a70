package confine

import (
	"fmt"
	"os"

	"github.com/landlock-lsm/go-landlock/landlock"
	llsys "github.com/landlock-lsm/go-landlock/landlock/syscall"
)

// Rights to files. None holds the right to run one: only what is named as a program may be run.
const (
	readRights = landlock.AccessFSSet(llsys.AccessFSReadFile | llsys.AccessFSReadDir)
	fileRights = landlock.AccessFSSet(llsys.AccessFSReadFile | llsys.AccessFSWriteFile)
	ownRights  = readRights | landlock.AccessFSSet(llsys.AccessFSWriteFile|llsys.AccessFSTruncate|
		llsys.AccessFSRemoveDir|llsys.AccessFSRemoveFile|llsys.AccessFSMakeDir|llsys.AccessFSMakeReg|
		llsys.AccessFSMakeSym|llsys.AccessFSMakeSock|llsys.AccessFSRefer)
	runRights = landlock.AccessFSSet(llsys.AccessFSExecute | llsys.AccessFSReadFile)
)

// landlockVersion is that of the kernel; 0 if it has none.
func landlockVersion() int {
	v, err := llsys.LandlockGetABIVersion()
	if err != nil {
		return 0
	}
	return v
}

// restrictFiles leaves a process the files of dir to read and write, further ones to read, and one program to run, if
// any. With scoped, its signals and abstract sockets reach no process outside from then on; that is for a process that
// will replace itself, see Enter. Where the kernel lacks a part of it, the rest holds.
func restrictFiles(dir string, read []string, program string, scoped bool) error {
	rules := []landlock.Rule{
		landlock.PathAccess(ownRights, dir),
		landlock.PathAccess(fileRights, nullFile),
	}
	for _, p := range read {
		info, err := os.Stat(p)
		if err != nil {
			continue // not there
		}
		rights := readRights
		if !info.IsDir() {
			rights = landlock.AccessFSSet(llsys.AccessFSReadFile)
		}
		rules = append(rules, landlock.PathAccess(rights, p))
	}
	if program != "" {
		rules = append(rules, landlock.PathAccess(runRights, program))
	}
	// Ports are not restricted: they mean nothing without addresses, and the network is the cluster's own.
	c := landlock.V11
	c.HandledAccessNet = 0
	if !scoped {
		c.Scoped = 0
	}
	if err := c.BestEffort().Restrict(rules...); err != nil {
		return fmt.Errorf("restricting files to %s: %w", dir, err)
	}
	return nil
}
