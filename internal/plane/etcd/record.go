package etcd

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"time"

	"go.etcd.io/etcd/server/v3/etcdserver"
	"go.etcd.io/etcd/server/v3/storage/backend"
	"go.etcd.io/etcd/server/v3/storage/mvcc"
	"go.etcd.io/etcd/server/v3/storage/schema"
	"go.uber.org/zap"

	"github.com/polder-kaas/polder/internal/plane/etcd/integrity"
)

// How often the content of the store is recorded, if it has changed. Reading a GiB takes a second or two of one core,
// and holds up nobody.
const (
	firstRecord    = time.Minute
	recordInterval = 5 * time.Minute
)

// recordChunk is how many revisions are read at once; others can read between.
const recordChunk = 1000

// closeBudget is how long a stop may take to read the store once more. The supervisor leaves a stage four seconds.
const closeBudget = 2500 * time.Millisecond

// files is the store as it lies on disk.
func (e *Etcd) files() integrity.Store { return integrity.Store{Dir: e.cfg.Dir, Log: e.cfg.Log} }

// markClosed records what the store holds after it was closed in order.
func (e *Etcd) markClosed(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeBudget)
	defer cancel()
	if err := e.files().MarkClosed(ctx); err != nil {
		e.cfg.Log.Warn("the next start compares the store with its records only", zap.Error(err))
	}
}

// writeRecords records all revisions that are on disk now, and returns the last of them.
func (e *Etcd) writeRecords(ctx context.Context, s *etcdserver.EtcdServer) (int64, error) {
	last := s.KV().Rev()
	// Records must hold for what a power failure leaves: behind this, everything up to last is on disk.
	s.Backend().ForceCommit()
	w, err := e.files().NewRecordWriter(last)
	if err != nil {
		return 0, err
	}
	if err := addRevisions(ctx, s, w, last); err != nil {
		return 0, errors.Join(err, w.Discard())
	}
	return last, w.Commit()
}

func addRevisions(ctx context.Context, s *etcdserver.EtcdServer, w *integrity.RecordWriter, last int64) error {
	tx := s.Backend().ConcurrentReadTx()
	tx.RLock()
	defer tx.RUnlock()
	for from := int64(0); from <= last && ctx.Err() == nil; from += recordChunk {
		if err := addRange(tx, w, from, min(from+recordChunk, last+1)); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// addRange records the revisions from one on and below another. etcd may return a revision twice, from the database and
// from a buffer that it keeps longer than needed, and those of the buffer behind all others.
func addRange(tx backend.ReadTx, w *integrity.RecordWriter, from, end int64) error {
	key := func(main int64) []byte { return mvcc.RevToBytes(mvcc.Revision{Main: main}, mvcc.NewRevBytes()) }
	keys, values := tx.UnsafeRange(schema.Key, key(from), key(end), 0)
	order := make([]int, len(keys))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return bytes.Compare(keys[a], keys[b]) })
	for n, i := range order {
		if n > 0 && bytes.Equal(keys[i], keys[order[n-1]]) {
			continue
		}
		if err := w.Add(keys[i], values[i]); err != nil {
			return err
		}
	}
	return nil
}
