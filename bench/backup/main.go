// Command backup measures backup and restore of a plane: how long both take, what clients notice meanwhile, and how
// long a lost plane is away.
//
//	backup [-size MIB] [-seconds N]
//
// It starts bin/polderd on an empty directory, fills its store, and leaves nothing behind. Wall-clock times depend on
// the machine and on who else uses it, so requests are measured before and during backups in one run.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/polder-kaas/polder/bench/measure"
	"github.com/polder-kaas/polder/bench/scenario"
)

const program = "bin/polder"

// Aims, for each GiB of the store.
const (
	backupAim  = 10 * time.Second
	restoreAim = 60 * time.Second
	latencyAim = 2 // times as slow as without a backup
)

// bench is one run.
type bench struct {
	size    int // MiB in the store
	seconds int // for which requests are measured, before and meanwhile
	*measure.Plane
	dir  string // for backups
	file string // the last one
}

func main() {
	var b bench
	flag.IntVar(&b.size, "size", 1024, "`MiB` to fill the store with")
	flag.IntVar(&b.seconds, "seconds", 20, "for which requests are measured, without backups and with them")
	os.Exit(scenario.Main(scenario.Benchmark{Columns: measure.Columns, Validate: b.validate, Run: b.run}))
}

func (b *bench) validate() error {
	if b.size < 1 || b.size > 3000 || b.seconds < 1 {
		return errors.New("-size must be 1 to 3000, -seconds at least 1")
	}
	return nil
}

func (b *bench) run(ctx context.Context, r *scenario.Runner) (err error) {
	if b.dir, err = os.MkdirTemp("", "polder-bench-backups-"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(b.dir)) }()
	if err := os.WriteFile(b.passphraseFile(), []byte("correct horse battery staple\n"), 0o600); err != nil {
		return err
	}
	return measure.WithPlane(ctx, func(p *measure.Plane) error {
		b.Plane = p
		scenario.Logf("writing %d MiB into the store", b.size)
		if err := b.fillStore(ctx); err != nil {
			return err
		}
		return r.Run(ctx,
			scenario.Scene{Name: "backup", Run: b.measureBackup},
			scenario.Scene{Name: "requests meanwhile", Run: b.measureRequests},
			scenario.Scene{Name: "restore", Run: b.measureRestore},
		)
	}, "--no-shipped-stacks")
}

func (b *bench) passphraseFile() string { return filepath.Join(b.dir, "passphrase") }

// aim is what is wanted for this size.
func (b *bench) aim(perGiB time.Duration) time.Duration {
	return time.Duration(float64(perGiB) * float64(b.size) / 1024)
}

// backup writes one and returns how long that took.
func (b *bench) backup(ctx context.Context) (time.Duration, error) {
	b.file = filepath.Join(b.dir, fmt.Sprintf("%d.tar.zst.age", time.Now().UnixNano()))
	begin := time.Now()
	err := b.polder(ctx, "backup", b.file)
	return time.Since(begin), err
}

func (b *bench) polder(ctx context.Context, args ...string) error {
	args = append(args, "--data-dir", b.Data(), "--passphrase-file", b.passphraseFile())
	out, err := exec.CommandContext(ctx, program, args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("polder %s: %w: %s", args[0], err, out)
	}
	return nil
}

func (b *bench) measureBackup(ctx context.Context) (rows scenario.Rows, err error) {
	took, err := b.backup(ctx)
	if err != nil {
		return rows, err
	}
	info, err := os.Stat(b.file)
	if err != nil {
		return rows, err
	}
	rows.AddDuration(fmt.Sprintf("a backup of %d MiB", b.size), took, b.aim(backupAim),
		fmt.Sprintf("%d MiB in the file", info.Size()>>20))
	return rows, nil
}

// measureRestore takes the time from a lost directory to a plane that is ready.
func (b *bench) measureRestore(ctx context.Context) (rows scenario.Rows, err error) {
	if err := errors.Join(b.Stop(), os.RemoveAll(b.Data())); err != nil {
		return rows, err
	}
	begin := time.Now()
	if err := b.polder(ctx, "restore", b.file); err != nil {
		return rows, err
	}
	restored := time.Since(begin)
	if err := b.Start(ctx); err != nil {
		return rows, err
	}
	ready := time.Since(begin)
	rows.AddDuration("a lost plane is ready again", ready, b.aim(restoreAim),
		fmt.Sprintf("%s of it for polder restore", scenario.FormatSeconds(restored)))
	return rows, b.checkStore(ctx)
}
