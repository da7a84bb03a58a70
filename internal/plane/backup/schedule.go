package backup

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/polder-kaas/polder/internal/plane/backup/backupfile"
	"github.com/polder-kaas/polder/internal/plane/status"
)

// Defaults and bounds of a schedule.
const (
	DefaultEvery = 6 * time.Hour
	DefaultKeep  = 14

	minEvery = 10 * time.Second
	maxRetry = time.Hour
)

// Schedule says when backups are written, where to, and how many are kept.
type Schedule struct {
	Dir           string // empty means that none are written
	Every         time.Duration
	Keep          int
	Keys          backupfile.Keys
	LocalClusters bool
}

// Check says what is wrong with the schedule of the plane in dataDir.
func (s Schedule) Check(dataDir string) error {
	if s.Dir == "" {
		if !s.Keys.IsEmpty() || s.LocalClusters {
			return errors.New("the other --backup flags are for --backup-dir, which is missing")
		}
		return nil
	}
	var errs []error
	if s.Every < minEvery {
		errs = append(errs, fmt.Errorf("--backup-every %s is too short; choose at least %s", s.Every, minEvery))
	}
	if s.Keep < 1 {
		errs = append(errs, fmt.Errorf("--backup-keep %d is out of range; choose at least 1", s.Keep))
	}
	switch err := s.Keys.Check(); {
	case errors.Is(err, backupfile.ErrNoKey):
		errs = append(errs, fmt.Errorf("--backup-dir: %w; name who can open it with --backup-recipient, --backup-recipients-file or --backup-passphrase-file, or choose --backup-plaintext", err))
	case err != nil:
		errs = append(errs, fmt.Errorf("--backup-dir: %w", err))
	}
	if isBelow(dataDir, s.Dir) {
		errs = append(errs, fmt.Errorf("--backup-dir %s is in the data directory and would be lost with it; choose another", s.Dir))
	}
	return errors.Join(errs...)
}

func isBelow(dir, path string) bool {
	a, err1 := filepath.Abs(dir)
	b, err2 := filepath.Abs(path)
	if err1 != nil || err2 != nil {
		return false
	}
	rel, err := filepath.Rel(a, b)
	return err == nil && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator))
}

// runSchedule writes backups when they are due. The files say when the last one was made, so that a restart neither
// skips one nor makes one too many.
func (b *Backup) runSchedule(ctx context.Context) {
	s := b.cfg.Schedule
	if s.Dir == "" {
		return
	}
	b.report(func(st *status.Backup) { st.Dir, st.Every, st.Keep = s.Dir, s.Every.String(), s.Keep })
	next, err := b.prepareSchedule()
	for {
		if err != nil {
			next = b.cfg.Clock.Now().Add(retryAfter(s.Every))
			b.reportFailure(err, next)
		}
		if !b.sleepUntil(ctx, next) {
			return
		}
		if err = b.writeScheduled(ctx); err == nil {
			next = b.cfg.Clock.Now().Add(s.Every)
		}
		if ctx.Err() != nil {
			return // stopped; that is no failure
		}
	}
}

// prepareSchedule makes the directory and returns when the first backup is due.
func (b *Backup) prepareSchedule() (time.Time, error) {
	s, now := b.cfg.Schedule, b.cfg.Clock.Now()
	if err := os.MkdirAll(s.Dir, 0o700); err != nil {
		return now, err
	}
	if err := backupfile.RemoveParts(s.Dir); err != nil {
		return now, err
	}
	all, err := backupfile.List(s.Dir)
	if err != nil || len(all) == 0 || all[0].CreatedAt.After(now) {
		return now, err
	}
	last := all[0]
	due := last.CreatedAt.Add(s.Every)
	b.report(func(st *status.Backup) {
		st.Last, st.Next = &status.BackupFile{Path: last.Path, CreatedAt: last.CreatedAt, Size: last.Size}, &due
	})
	return due, nil
}

// retryAfter is when a backup is tried again that failed: sooner than the next would be due.
func retryAfter(every time.Duration) time.Duration {
	return min(every, max(every/10, minEvery), maxRetry)
}

func (b *Backup) sleepUntil(ctx context.Context, at time.Time) bool {
	t := b.cfg.Clock.NewTimer(at.Sub(b.cfg.Clock.Now()))
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C():
		return ctx.Err() == nil
	}
}

// writeScheduled waits for its turn, writes a backup, and removes those that are too many.
func (b *Backup) writeScheduled(ctx context.Context) error {
	select {
	case <-b.turn:
		defer b.endTurn()
	case <-ctx.Done():
		return nil
	}
	s, begin := b.cfg.Schedule, b.cfg.Clock.Now()
	path := filepath.Join(s.Dir, backupfile.Name(begin, s.Keys))
	size, err := b.writeFile(ctx, path)
	if err != nil {
		return err
	}
	took := b.cfg.Clock.Since(begin)
	next := begin.Add(took).Add(s.Every)
	b.cfg.Log.Info("backup written", "file", path, "bytes", size, "took", took.Round(time.Millisecond).String())
	b.report(func(st *status.Backup) {
		st.Last = &status.BackupFile{Path: path, CreatedAt: begin, Size: size, Seconds: took.Seconds()}
		st.Problem, st.FailingSince, st.Next = "", nil, &next
	})
	if err := backupfile.Prune(s.Dir, s.Keep); err != nil {
		b.cfg.Log.Warn("old backups cannot be removed", "error", err)
	}
	return nil
}

func (b *Backup) writeFile(ctx context.Context, path string) (int64, error) {
	w, err := backupfile.Create(path, b.cfg.Schedule.Keys)
	if err != nil {
		return 0, err
	}
	if _, err := b.cfg.Source.Write(ctx, w, b.cfg.Schedule.LocalClusters); err != nil {
		w.Abort()
		return 0, err
	}
	return w.Commit()
}

func (b *Backup) reportFailure(err error, next time.Time) {
	b.cfg.Log.Error("the scheduled backup failed", "error", err, "next", next)
	now := b.cfg.Clock.Now()
	b.report(func(st *status.Backup) {
		st.Problem, st.Next = err.Error(), &next
		if st.FailingSince == nil {
			st.FailingSince = &now
		}
	})
}

func (b *Backup) report(change func(*status.Backup)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	change(&b.status)
	b.cfg.Report(b.status)
}

// Status says how the scheduled backups are, for metrics.
func (b *Backup) Status() status.Backup {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.status
}
