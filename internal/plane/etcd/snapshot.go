package etcd

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"go.etcd.io/etcd/etcdutl/v3/snapshot"
	"go.uber.org/zap"
)

// Identity of the only member, as embedConfig has it: etcd writes it into its log when a store is made.
const (
	memberName  = "polder"
	peerURL     = "http://localhost:2380"
	clusterName = "etcd-cluster"
)

// revisionBump is how far the revision of a restored store jumps. Clients may have seen revisions that came after the
// snapshot; were those used again for other changes, a client that continues a watch would miss them without a word.
// Nobody writes so much between two backups, and int64 has room for billions of restores.
const revisionBump = 1_000_000_000

// Snapshot is the content of the store at one moment. The store serves on; Close must be called.
type Snapshot struct {
	Revision int64 // at least this much is in it
	Size     int64 // bytes that WriteTo writes

	snapshot interface {
		Size() int64
		WriteTo(w io.Writer) (int64, error)
		Close() error
	}
}

// Snapshot takes a snapshot, which holds all that was acknowledged before the call. The store must be ready.
func (e *Etcd) Snapshot(ctx context.Context) (*Snapshot, error) {
	select {
	case <-e.ready:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	revision := e.server.Server.KV().Rev()
	s := e.server.Server.Backend().Snapshot()
	return &Snapshot{Revision: revision, Size: s.Size() + sha256.Size, snapshot: s}, nil
}

// WriteTo writes the snapshot in the form of `etcdctl snapshot save`: the database, then its SHA-256.
func (s *Snapshot) WriteTo(w io.Writer) (int64, error) {
	h := sha256.New()
	n, err := s.snapshot.WriteTo(io.MultiWriter(w, h))
	if err != nil {
		return n, fmt.Errorf("reading the store: %w", err)
	}
	m, err := w.Write(h.Sum(nil))
	return n + int64(m), err
}

// Close lets go of the snapshot: until then the store reuses no space.
func (s *Snapshot) Close() error { return s.snapshot.Close() }

// RestoreConfig says what to make a store of.
type RestoreConfig struct {
	Snapshot string // file, as WriteTo writes it; it is not changed
	Dir      string // of the new store; must not exist
	Revision int64  // the snapshot must have at least this one
	Log      *zap.Logger
}

// Restore makes a new store of a snapshot after checking that it is whole. Its revision is far beyond that of the
// snapshot, and all that was before counts as compacted: who continues a watch is told to list again. It returns the
// revision of the snapshot.
func Restore(cfg RestoreConfig) (revision int64, err error) {
	defer func() {
		if p := recover(); p != nil { // etcd's way to say that a database cannot be opened
			err = fmt.Errorf("the snapshot of the store is damaged: %v", p)
		}
	}()
	m := snapshot.NewV3(cfg.Log)
	// etcd's own check walks over all pages and keys; the sum alone would pass a database that was broken before.
	st, err := m.Status(cfg.Snapshot)
	if err != nil {
		return 0, fmt.Errorf("the snapshot of the store is damaged: %w", err)
	}
	if st.Revision < cfg.Revision {
		return 0, fmt.Errorf("the snapshot of the store ends at revision %d, but should reach %d", st.Revision, cfg.Revision)
	}
	err = m.Restore(snapshot.RestoreConfig{
		SnapshotPath: cfg.Snapshot, Name: memberName, OutputDataDir: cfg.Dir, PeerURLs: []string{peerURL},
		InitialCluster: memberName + "=" + peerURL, InitialClusterToken: clusterName,
		RevisionBump: revisionBump, MarkCompacted: true,
	})
	if err != nil {
		return 0, fmt.Errorf("making the store of its snapshot: %w", err)
	}
	return st.Revision, os.Chmod(filepath.Join(cfg.Dir, "member"), 0o700)
}
