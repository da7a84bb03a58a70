package backup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strconv"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"github.com/polder-kaas/polder/internal/plane/status"
)

// SocketName is the socket in the data directory on which backups are handed out. Only the directory's owner can open
// it: who may read the keys anyway.
const SocketName = "backup.sock"

// Parts of the request and of its answer.
const (
	requestPath        = "/backup"
	localClustersParam = "local-clusters"
	errorTrailer       = "Polder-Backup-Error" // why the archive is not complete
)

// errBusy is what a second caller is told.
var errBusy = errors.New("another backup is being made; try again when it has ended")

// Config says what to back up, and when.
type Config struct {
	Source   Source
	Socket   string
	Schedule Schedule // its zero value means only when asked
	Clock    clock.WithTicker
	Log      *slog.Logger
	Report   func(status.Backup) // called with each change of the scheduled backups
}

// Backup is the maker of backups as a component of the plane.
type Backup struct {
	cfg   Config
	ready chan struct{}
	turn  chan struct{} // holds one token: one backup at a time, since each keeps the store from reusing space

	mu     sync.Mutex
	status status.Backup
}

// New prepares the component.
func New(cfg Config) *Backup {
	b := &Backup{cfg: cfg, ready: make(chan struct{}), turn: make(chan struct{}, 1)}
	b.turn <- struct{}{}
	return b
}

// Name is the component's name.
func (b *Backup) Name() string { return "backup" }

// Ready closes when backups can be asked for.
func (b *Backup) Ready() <-chan struct{} { return b.ready }

// Run hands out backups and makes those that are scheduled until ctx ends. A backup that fails does not end it.
func (b *Backup) Run(ctx context.Context) error {
	if err := b.cfg.Source.cleanUp(ctx); err != nil {
		b.cfg.Log.Warn("an earlier backup left something behind", "error", err)
	}
	l, err := b.listen(ctx)
	if err != nil {
		return fmt.Errorf("opening the socket for backups: %w", err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+requestPath, b.serve)
	srv := &http.Server{
		Handler: mux, ReadHeaderTimeout: 10 * time.Second, BaseContext: func(net.Listener) context.Context { return ctx },
	}
	ended := make(chan error, 1)
	go func() { ended <- srv.Serve(l) }()
	var scheduled sync.WaitGroup
	scheduled.Go(func() { b.runSchedule(ctx) })
	close(b.ready)
	select {
	case err = <-ended:
		return fmt.Errorf("serving backups: %w", err)
	case <-ctx.Done():
	}
	err = srv.Close() // the archive of a reader is not complete, and its reader knows
	if e := <-ended; !errors.Is(e, http.ErrServerClosed) {
		err = errors.Join(err, e)
	}
	scheduled.Wait()
	<-b.turn // nobody reads the store any more
	return err
}

func (b *Backup) listen(ctx context.Context) (net.Listener, error) {
	// A socket left by a killed process; the data directory's lock says that nobody listens.
	if err := os.Remove(b.cfg.Socket); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "unix", b.cfg.Socket)
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(b.cfg.Socket, 0o600); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

// serve streams an archive. What goes wrong when it has begun is told behind its end.
func (b *Backup) serve(w http.ResponseWriter, r *http.Request) {
	if !b.takeTurn() {
		http.Error(w, errBusy.Error(), http.StatusConflict)
		return
	}
	defer b.endTurn()
	localClusters, _ := strconv.ParseBool(r.URL.Query().Get(localClustersParam)) // anything else means no
	begin := b.cfg.Clock.Now()
	m, err := b.cfg.Source.Write(r.Context(), w, localClusters)
	if err != nil {
		b.cfg.Log.Warn("a backup was not completed", "error", err)
		w.Header().Set(http.TrailerPrefix+errorTrailer, err.Error())
		_, _ = io.WriteString(w, "") // so that there is an answer to put it behind
		return
	}
	b.cfg.Log.Info("backup handed out", "bytes", m.Size(), "revision", m.Store.Revision, "took",
		b.cfg.Clock.Since(begin).Round(time.Millisecond).String())
}

func (b *Backup) takeTurn() bool {
	select {
	case <-b.turn:
		return true
	default:
		return false
	}
}

func (b *Backup) endTurn() { b.turn <- struct{}{} }
