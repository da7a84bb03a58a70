package integrity

import (
	"fmt"

	"go.etcd.io/etcd/server/v3/storage/wal"
	"go.etcd.io/etcd/server/v3/storage/wal/walpb"
)

// checkWAL reads the whole write-ahead log. It must reach as far as the database, which has all entries up to index:
// etcd would number new entries anew and take them for ones that the database has, so that each write would wait for
// ever. A torn end behind that is what a crash leaves, and etcd repairs it.
func (s Store) checkWAL(index uint64) (err error) {
	if !wal.Exist(s.walDir()) {
		if index == 0 {
			return nil // the first start ended before there was one
		}
		return damagef(false, "its write-ahead log %s is missing", s.walDir())
	}
	defer func() {
		if p := recover(); p != nil { // etcd panics at records that it cannot decode
			err = damagef(false, "its write-ahead log cannot be decoded (%v)", p)
		}
	}()
	last, err := s.readWAL()
	if err != nil {
		return damagef(false, "its write-ahead log cannot be read (%v)", err)
	}
	if last < index {
		return damagef(false, "its write-ahead log ends at entry %d, but the database has entry %d", last, index)
	}
	return nil
}

// readWAL returns the number of the last entry.
func (s Store) readWAL() (uint64, error) {
	snapshots, err := wal.ValidSnapshotEntries(s.Log, s.walDir())
	if err != nil {
		return 0, err
	}
	start := &walpb.Snapshot{}
	if n := len(snapshots); n > 0 {
		start = snapshots[n-1]
	}
	w, err := wal.OpenForRead(s.Log, s.walDir(), start)
	if err != nil {
		return 0, fmt.Errorf("opening it at entry %d: %w", start.GetIndex(), err)
	}
	defer w.Close() //nolint:errcheck // read only
	_, _, entries, err := w.ReadAll()
	if err != nil {
		return 0, fmt.Errorf("from entry %d on: %w", start.GetIndex(), err)
	}
	if n := len(entries); n > 0 {
		return entries[n-1].GetIndex(), nil
	}
	return start.GetIndex(), nil
}
