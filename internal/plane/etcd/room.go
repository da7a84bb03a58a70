package etcd

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.uber.org/zap"
	"golang.org/x/sys/unix"
)

// What is kept free on the disk. etcd ends the process when a write fails, so it must be stopped from writing before
// that: below lowRoom it takes no changes, and above enoughRoom it does again. Between a look and the next, a busy
// plane writes some tens of MB.
const (
	lowRoom     = 64 << 20
	enoughRoom  = 96 << 20
	reserveSize = 32 << 20 // of a file that is given up when the disk is full nevertheless
)

// defaultQuota is the size of the store at which it takes no changes any more.
const defaultQuota = 4 << 30

// segmentSize is that of a file of the write-ahead log. They are allocated as a whole, the next one in advance: when
// that fails, etcd ends at the next change of files. With its own 64 MB, a nearly full disk would come to that.
const segmentSize = 16 << 20

// room is why the store takes no changes, as far as it depends on space.
type room struct {
	free     uint64 // on the disk
	diskLow  bool
	size     int64 // of the database
	quota    int64
	hasAlarm bool // etcd takes no changes
}

// full says that the store itself has no room, whatever the disk has.
func (r room) full() bool { return r.size >= r.quota-r.quota/20 }

// isNearLimit says that the store will be full before long.
func (r room) isNearLimit() bool { return r.size >= r.quota/5*4 }

// problem is one sentence about what to do.
func (r room) problem(dir string) error {
	switch {
	case r.diskLow:
		return fmt.Errorf("the disk that holds %s is full (%d MB are free, %d MB are needed), so nothing can be changed; free some space, then it goes on by itself",
			dir, r.free/1e6, enoughRoom/1_000_000)
	case r.hasAlarm:
		return fmt.Errorf("the store has %d MB and may have %d MB, so nothing can be changed; delete what is not needed, then run: polder maintain",
			r.size/1e6, r.quota/1e6)
	}
	return nil
}

// look measures the room there is, and lets etcd take changes or not.
func (e *Etcd) look(ctx context.Context) room {
	before := e.room()
	r := room{
		size: e.server.Server.Backend().Size(), quota: e.cfg.Quota, diskLow: before.diskLow, hasAlarm: e.hasSpaceAlarm(),
	}
	if free, known := e.cfg.FreeBytes(e.cfg.Dir); known {
		r.free = free
		r.diskLow = free < lowRoom || r.diskLow && free < enoughRoom
		e.adjustReserve(free)
	}
	switch {
	case r.diskLow && !r.hasAlarm:
		r.hasAlarm = e.setSpaceAlarm(ctx, pb.AlarmRequest_ACTIVATE) || r.hasAlarm
	case r.hasAlarm && !r.diskLow && !r.full():
		r.hasAlarm = !e.setSpaceAlarm(ctx, pb.AlarmRequest_DEACTIVATE)
	}
	e.tell(before, r)
	e.mu.Lock()
	defer e.mu.Unlock()
	e.lastRoom = r
	return r
}

// room is what the last look found.
func (e *Etcd) room() room {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.lastRoom
}

func (e *Etcd) hasSpaceAlarm() bool {
	for _, a := range e.server.Server.Alarms() {
		if a.GetAlarm() == pb.AlarmType_NOSPACE {
			return true
		}
	}
	return false
}

// setSpaceAlarm tells etcd to take changes or not, and says whether it has heard.
func (e *Etcd) setSpaceAlarm(ctx context.Context, action pb.AlarmRequest_AlarmAction) bool {
	s := e.server.Server
	_, err := s.Alarm(ctx, &pb.AlarmRequest{Action: action, MemberID: uint64(s.MemberID()), Alarm: pb.AlarmType_NOSPACE})
	if err != nil && ctx.Err() == nil {
		e.cfg.Log.Warn("the alarm of the store could not be set", zap.Error(err))
	}
	return err == nil
}

func (e *Etcd) reserveFile() string { return filepath.Join(e.cfg.Dir, "reserve") }

// adjustReserve keeps a file that nobody needs, and gives it up when others have filled the disk faster than the store
// could stop writing: raising an alarm is a write, too.
func (e *Etcd) adjustReserve(free uint64) {
	_, err := os.Stat(e.reserveFile())
	exists := err == nil
	switch {
	case exists && free < lowRoom/2:
		err = os.Remove(e.reserveFile())
	case !exists && free > enoughRoom+reserveSize:
		err = allocate(e.reserveFile(), reserveSize)
	default:
		return
	}
	if err != nil && !errors.Is(err, unix.EOPNOTSUPP) {
		e.cfg.Log.Warn("the reserve of disk space could not be changed", zap.Error(err))
	}
}

func allocate(path string, size int64) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	if err := unix.Fallocate(int(f.Fd()), 0, 0, size); err != nil {
		return errors.Join(err, f.Close(), os.Remove(path))
	}
	return f.Close()
}
