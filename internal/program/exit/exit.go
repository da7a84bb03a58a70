// Package exit gives every way a program of Polder can end a number that scripts and
// systemd units can rely on. Codes are part of the interface: never renumber one.
package exit

import (
	"errors"
	"fmt"
)

// Codes shared by polder and polderd. 30 to 39 belong to the management plane. Interrupted is what shells use,
// too.
const (
	OK              = 0
	Failure         = 1
	Usage           = 2
	NotReady        = 3
	Timeout         = 4
	DataDir         = 30
	InUse           = 31
	NewerData       = 32
	AddressTaken    = 33
	ComponentFailed = 34
	NoManifests     = 35
	StopTimeout     = 36
	StoreDamaged    = 37
	DaemonUsage     = 38
	BadBackup       = 39
	Interrupted     = 130
)

// Meaning is one row of the table of exit codes.
type Meaning struct {
	Code int
	Text string
}

// Meanings lists all codes in order, for help texts and the reference page.
func Meanings() []Meaning {
	return []Meaning{
		{OK, "done; for polderd: stopped in order after SIGTERM or SIGINT"},
		{Failure, "something failed that has no code of its own; the message says what"},
		{Usage, "polder: unknown command, flag or value; nothing was changed. polderd: a crash of the Go runtime, which is a bug; start it again"},
		{NotReady, "polder status: the plane does not run, or runs and is not ready; polder stack status: something it shows is not ready; polder describe: the cluster is not ready"},
		{Timeout, "what was waited for did not happen in time; it may still happen"},
		{DataDir, "the data directory cannot be used: not writable, not ours, or open to others"},
		{InUse, "another polderd already uses the data directory"},
		{NewerData, "the data directory was written by a newer version"},
		{AddressTaken, "the listen address is taken or not an address of this machine"},
		{ComponentFailed, "a component of the plane failed, so the whole process ended"},
		{NoManifests, "polderd was built without Cluster API's manifests"},
		{StopTimeout, "a component did not stop in time; stored data is safe"},
		{StoreDamaged, "the store is damaged or not what was written; nothing was changed. The message says what to do"},
		{DaemonUsage, "polderd: unknown command, flag or value; nothing was changed"},
		{BadBackup, "polder restore, polder backup verify: the backup is damaged, cut off or none at all, or the key does not open it; nothing was changed"},
		{Interrupted, "polder was told to stop while it waited; what it waited for goes on"},
	}
}

// Error carries the exit code an error ends the program with.
type Error struct {
	Code int
	Err  error
}

// With gives err an exit code. A nil err stays nil.
func With(code int, err error) error {
	if err == nil {
		return nil
	}
	return &Error{Code: code, Err: err}
}

// Errorf makes an error with an exit code.
func Errorf(code int, format string, args ...any) error {
	return &Error{Code: code, Err: fmt.Errorf(format, args...)}
}

func (e *Error) Error() string { return e.Err.Error() }
func (e *Error) Unwrap() error { return e.Err }

// Code returns the exit code of err: OK for nil, Failure if it has none.
func Code(err error) int {
	if err == nil {
		return OK
	}
	var e *Error
	if errors.As(err, &e) {
		return e.Code
	}
	return Failure
}
