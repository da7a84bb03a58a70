package integrity

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"

	"go.uber.org/zap"

	"github.com/polder-kaas/polder/internal/files/atomicfile"
	"github.com/polder-kaas/polder/internal/plane/etcd/boltfile"
)

// closed describes a store that was closed in order.
type closed struct {
	Index    uint64 `json:"index"` // the last entry of the write-ahead log
	Pairs    int    `json:"pairs"`
	Checksum string `json:"checksum"` // of all pairs of all buckets
}

// MarkOpen forgets that the store was closed in order. Call it before it is opened.
func (s Store) MarkOpen() error {
	switch err := os.Remove(s.closedFile()); {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	}
	return syncDir(s.Dir)
}

// MarkClosed writes down what is in the store. Call it after it was closed in order. If ctx ends before all is read,
// the next start takes the store for one that was not closed, and compares it with its records.
func (s Store) MarkClosed(ctx context.Context) error {
	c := newContent(nil)
	err := boltfile.Walk(ctx, s.Database(), func(bucket, key, value []byte) error {
		c.pairs++
		c.hash.add(bucket, key, value)
		c.addMeta(bucket, key, value)
		return nil
	})
	if err != nil {
		return err
	}
	b, err := json.Marshal(closed{Index: c.index, Pairs: c.pairs, Checksum: c.hash.total()})
	if err != nil {
		return err
	}
	return atomicfile.Write(s.closedFile(), append(b, '\n'), 0o600)
}

// compareClosed is the last step of a verification.
func (s Store) compareClosed(c *content) (Report, error) {
	r := Report{Pairs: c.pairs, Verified: c.verified}
	b, err := os.ReadFile(s.closedFile())
	if errors.Is(err, fs.ErrNotExist) {
		return r, nil
	}
	if err != nil {
		return r, err
	}
	var want closed
	if err := json.Unmarshal(b, &want); err != nil {
		s.Log.Warn("what is known of the closed store cannot be read", zap.Error(err))
		return r, nil
	}
	if c.index > want.Index {
		// An older polderd, which knows nothing of this file, has worked with the store. Its records hold nevertheless.
		s.Log.Info("the store was used since it was closed", zap.Uint64("index", c.index))
		return r, nil
	}
	if c.index != want.Index || c.pairs != want.Pairs || c.hash.total() != want.Checksum {
		return r, damagef(true, "its content is not what it was when it was closed")
	}
	r.Closed, r.Verified = true, c.pairs
	return r, nil
}
