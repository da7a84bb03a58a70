package etcd

import (
	"context"
	"errors"

	"go.uber.org/zap"

	"github.com/polder-kaas/polder/internal/plane/etcd/integrity"
	"github.com/polder-kaas/polder/internal/program/exit"
)

// Verify checks the store in dir before it is opened. What cannot be opened, or does not hold what was written to it,
// is refused with exit.StoreDamaged and nothing changed. A store that does not exist is in order.
func Verify(ctx context.Context, dir string, log *zap.Logger) error {
	r, err := integrity.Store{Dir: dir, Log: log}.Verify(ctx)
	var damage *integrity.DamageError
	switch {
	case errors.As(err, &damage) && damage.Readable:
		return exit.Errorf(exit.StoreDamaged,
			"the store in %s is not what was written: %w; restore a backup with polder restore, or, only if somebody has replaced the store on purpose, remove records and closed.json in that directory and start again",
			dir, err)
	case errors.As(err, &damage):
		return exit.Errorf(exit.StoreDamaged,
			"the store in %s is damaged: %w; nothing was changed, restore a backup with polder restore", dir, err)
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		return exit.Errorf(exit.StoreDamaged, "the store in %s cannot be read: %w; look at the disk, or restore a backup with polder restore", dir, err)
	}
	log.Info("the store is verified", zap.Int("pairs", r.Pairs), zap.Int("verified", r.Verified),
		zap.Bool("closedInOrder", r.Closed))
	return nil
}
