// Package integrity notices a store whose bytes are not those that were written: cut, overwritten, mixed up with a
// copy. bbolt has no checksums of content, so a changed value would be served as if it were right.
//
// Two files beside the store say what must be in it. "records" has a checksum of each revision, from a moment while
// the store served. Revisions never change and only compaction removes them, so it holds for every later state, also
// after a crash. "closed.json" has one checksum of everything, and is there from a stop in order to the next start.
// They are made against disks that err and copies that are mixed up, not against people who may write here.
package integrity

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"go.etcd.io/etcd/server/v3/storage/schema"
	"go.etcd.io/etcd/server/v3/storage/wal"
	"go.uber.org/zap"

	"github.com/polder-kaas/polder/internal/plane/etcd/boltfile"
)

// Store is the directory of a store that nobody has open.
type Store struct {
	Dir string
	Log *zap.Logger
}

// Database is the file with all content.
func (s Store) Database() string { return filepath.Join(s.Dir, "member", "snap", "db") }

func (s Store) walDir() string      { return filepath.Join(s.Dir, "member", "wal") }
func (s Store) recordsFile() string { return filepath.Join(s.Dir, "records") }
func (s Store) closedFile() string  { return filepath.Join(s.Dir, "closed.json") }

// DamageError says what is wrong with a store, in words for the operator.
type DamageError struct {
	What string
	// Readable means that the store could be opened, but holds something else than it should.
	Readable bool
}

func (e *DamageError) Error() string { return e.What }

func damagef(readable bool, format string, args ...any) error {
	return &DamageError{What: fmt.Sprintf(format, args...), Readable: readable}
}

// Report is what a verification found out about a store in which nothing is wrong.
type Report struct {
	Pairs    int  // of all buckets
	Verified int  // of them, as checksums say
	Closed   bool // the store was closed in order, and nothing has changed since
}

// Verify checks the store before it is opened: whether bbolt and etcd can read it, whether database and write-ahead
// log fit together, and whether its content is what was recorded. A *DamageError says that something is wrong.
func (s Store) Verify(ctx context.Context) (Report, error) {
	hasWAL := wal.Exist(s.walDir())
	info, err := os.Stat(s.Database())
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return Report{}, s.checkAbsence(hasWAL)
	case err != nil:
		return Report{}, err
	case info.Size() == 0 && !hasWAL:
		return Report{}, nil // the very first start ended before anything was written
	}
	records, err := openRecords(s.recordsFile())
	if err != nil {
		s.Log.Warn("the store is not compared with its records", zap.Error(err))
	}
	defer records.close()
	c := newContent(records)
	if err := boltfile.Walk(ctx, s.Database(), c.add); err != nil {
		return Report{}, describeWalk(err)
	}
	if err := s.checkWAL(c.index); err != nil {
		return Report{}, err
	}
	if err := c.finish(); err != nil {
		return Report{}, err
	}
	return s.compareClosed(c)
}

// checkAbsence is for a store without a database: a new one has no write-ahead log either, and no records.
func (s Store) checkAbsence(hasWAL bool) error {
	if hasWAL {
		return damagef(false, "its database %s is missing", s.Database())
	}
	for _, f := range []string{s.recordsFile(), s.closedFile()} {
		if _, err := os.Stat(f); err == nil {
			return damagef(false, "its database and write-ahead log are missing, but %s is there", f)
		}
	}
	return nil
}

// describeWalk keeps errors of the system apart from damage.
func describeWalk(err error) error {
	var d *DamageError
	if errors.As(err, &d) || !errors.Is(err, boltfile.ErrDamaged) {
		return err
	}
	return damagef(false, "its database is %v", err)
}

// content gathers what is to be known of a database while it is read.
type content struct {
	hash    pairHash
	records *recordReader // nil if there are none

	pairs, verified int
	index           uint64 // the last entry of the write-ahead log that is in the database
	compacted       int64  // revisions up to here may have been removed
	missing         int64  // the highest revision that is recorded and not there
}

func newContent(r *recordReader) *content { return &content{hash: newPairHash(), records: r} }

// add is called for each pair.
func (c *content) add(bucket, key, value []byte) error {
	c.pairs++
	sum := c.hash.add(bucket, key, value)
	if bytes.Equal(bucket, schema.Key.Name()) {
		return c.addRevision(key, value, sum)
	}
	c.addMeta(bucket, key, value)
	return nil
}

// addMeta keeps what etcd says about the content as a whole.
func (c *content) addMeta(bucket, key, value []byte) {
	switch {
	case !bytes.Equal(bucket, schema.Meta.Name()) || len(value) < 8:
	case bytes.Equal(key, schema.MetaConsistentIndexKeyName):
		c.index = binary.BigEndian.Uint64(value)
	case bytes.Equal(key, schema.ScheduledCompactKeyName):
		c.compacted = int64(binary.BigEndian.Uint64(value)) //nolint:gosec // as etcd writes it
	}
}

func (c *content) addRevision(key, value []byte, sum pairSum) error {
	rev, ok := parseRevision(key)
	if !ok {
		return damagef(true, "it has a revision with a key of %d bytes", len(key))
	}
	if c.records == nil || rev.main > c.records.revision {
		return checkValue(rev, value)
	}
	have, missing, err := c.records.advance(rev)
	if err != nil {
		return err
	}
	c.missing = max(c.missing, missing)
	switch {
	case have == nil:
		return damagef(true, "revision %d (%s) is older than its records, but not in them", rev.main, nameOf(value))
	case *have != shorten(sum):
		return damagef(true, "revision %d (%s) has changed since it was written", rev.main, nameOf(value))
	}
	c.verified++
	return nil
}

// finish looks for records whose revision is not there. Compaction removes revisions, but none above its own.
func (c *content) finish() error {
	if c.records == nil {
		return nil
	}
	_, missing, err := c.records.advance(lastRevision)
	if err != nil {
		return err
	}
	if c.missing = max(c.missing, missing); c.missing > c.compacted {
		return damagef(true, "revision %d, which was written before, is missing", c.missing)
	}
	return nil
}
