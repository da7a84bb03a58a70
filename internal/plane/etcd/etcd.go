// Package etcd runs the plane's store inside the process. It listens on unix sockets in the
// data directory only, which nobody but the directory's owner can open; there is no TCP port.
package etcd

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v3client"
	"go.etcd.io/etcd/server/v3/storage/wal"
	"go.uber.org/zap"
	"k8s.io/utils/clock"

	"github.com/polder-kaas/polder/internal/plane/datadir"
)

// Names of the sockets. The limit of datadir for the length of its path counts on the longest socket name.
const (
	clientSocket = "etcd.sock"
	peerSocket   = "etcd-peer.sock"
)

// Config says where the store is kept.
type Config struct {
	Dir       string // the store itself
	SocketDir string // for the sockets; short, and closed to others
	Log       *zap.Logger
	// Seed is called each time before the store is ready; it may put first content into it.
	Seed  func(context.Context, clientv3.KV) error
	Clock clock.WithTicker
	// RecordInterval is how often the content is recorded, for the next start to be compared with. 0: five minutes,
	// and at first after one.
	RecordInterval time.Duration
	// Quota is the size at which the store takes no changes any more. 0: 4 GiB.
	Quota int64
	// FreeBytes says how much is free on the disk of a directory, if that is known. nil: as the system says.
	FreeBytes func(dir string) (free uint64, known bool)
}

// Etcd is the store as a component of the plane.
type Etcd struct {
	cfg   Config
	ready chan struct{}

	server *embed.Etcd // set before ready closes

	maintaining sync.Mutex // held during maintenance
	mu          sync.Mutex
	lastRoom    room // under mu
}

// New prepares the store; Run opens it.
func New(cfg Config) *Etcd {
	cfg.Quota = cmp.Or(cfg.Quota, defaultQuota)
	if cfg.FreeBytes == nil {
		cfg.FreeBytes = datadir.FreeBytes
	}
	return &Etcd{cfg: cfg, ready: make(chan struct{})}
}

// Name is the component's name.
func (e *Etcd) Name() string { return "etcd" }

// Ready closes when the store answers.
func (e *Etcd) Ready() <-chan struct{} { return e.ready }

// Endpoint is where clients in this process reach the store.
func (e *Etcd) Endpoint() string { return "unix://" + filepath.Join(e.cfg.SocketDir, clientSocket) }

// Exists says whether there is a store in dir already.
func Exists(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, "member"))
	return err == nil
}

// Run opens the store, which Verify must have looked at, and keeps it until ctx ends.
func (e *Etcd) Run(ctx context.Context) error {
	if err := e.files().MarkOpen(); err != nil {
		return fmt.Errorf("opening the store in %s: %w", e.cfg.Dir, err)
	}
	s, err := embed.StartEtcd(e.embedConfig())
	if err != nil {
		return fmt.Errorf("opening the store in %s: %w", e.cfg.Dir, err)
	}
	err = e.serve(ctx, s)
	s.Close()
	if err == nil {
		e.markClosed(ctx)
	}
	return err
}

// serve returns nil only if the store was to stop and had not failed before.
func (e *Etcd) serve(ctx context.Context, s *embed.Etcd) error {
	select {
	case <-s.Server.ReadyNotify():
	case <-s.Server.StopNotify():
		return fmt.Errorf("the store in %s stopped while starting", e.cfg.Dir)
	case <-ctx.Done():
		return nil
	}
	e.server = s
	e.look(ctx) // an alarm of an earlier run would refuse the first content
	if err := e.seed(ctx, s); err != nil {
		return fmt.Errorf("writing first content into the store: %w", err)
	}
	close(e.ready)
	kctx, stopKeeper := context.WithCancel(ctx)
	var keeper sync.WaitGroup
	defer keeper.Wait()
	defer stopKeeper()
	keeper.Go(func() { e.keep(kctx) })
	select {
	case <-ctx.Done():
		return nil
	case err := <-s.Err():
		return fmt.Errorf("serving the store: %w", err)
	case <-s.Server.StopNotify():
		return fmt.Errorf("the store stopped by itself")
	}
}

func (e *Etcd) seed(ctx context.Context, s *embed.Etcd) error {
	if e.cfg.Seed == nil {
		return nil
	}
	c := v3client.New(s.Server)
	defer c.Close() //nolint:errcheck // it has no connection of its own
	err := e.cfg.Seed(ctx, c)
	if ctx.Err() != nil {
		return nil // asked to stop
	}
	return err
}

func (e *Etcd) embedConfig() *embed.Config {
	c := embed.NewConfig()
	c.Name = "polder"
	c.Dir = e.cfg.Dir
	c.ListenClientUrls = []url.URL{{Scheme: "unix", Path: filepath.Join(e.cfg.SocketDir, clientSocket)}}
	// etcd takes the peer socket from the URL's host alone; with the path where it belongs it
	// would listen on an abstract socket, which every user of the machine can open.
	c.ListenPeerUrls = []url.URL{{Scheme: "unix", Host: filepath.Join(e.cfg.SocketDir, peerSocket)}}
	// etcd refuses to advertise a unix socket; a single member dials neither address.
	c.AdvertiseClientUrls = []url.URL{{Scheme: "http", Host: "localhost:2379"}}
	c.AdvertisePeerUrls = []url.URL{{Scheme: "http", Host: "localhost:2380"}}
	c.InitialCluster = c.InitialClusterFromName(c.Name)
	c.ZapLoggerBuilder = embed.NewZapLoggerBuilder(e.cfg.Log)
	c.EnableGRPCGateway = false
	// A single member waits for nobody's vote, but does wait for the election to time out.
	c.TickMs, c.ElectionMs = 50, 250
	c.QuotaBackendBytes = e.cfg.Quota
	wal.SegmentSizeBytes = segmentSize
	// The API server compacts history itself. The raft log of a single member serves nobody
	// but a restart, and every entry of it is held in memory.
	c.SnapshotCount = 1000
	c.SnapshotCatchUpEntries = 100
	c.MaxSnapFiles, c.MaxWalFiles = 2, 2
	// A request slower than this is worth a warning. (etcd's zero value warns of every one.)
	c.WarningApplyDuration, c.WarningUnaryRequestDuration = time.Second, time.Second
	return c
}

// Healthy reports that the store takes no changes or is corrupt, and a lost leadership.
func (e *Etcd) Healthy(context.Context) error {
	if err := e.room().problem(e.cfg.Dir); err != nil {
		return err
	}
	for _, a := range e.server.Server.Alarms() {
		return fmt.Errorf("etcd raised the alarm %s; restore a backup with polder restore if it does not go away", a.GetAlarm())
	}
	if e.server.Server.Leader() == 0 {
		return fmt.Errorf("no leader")
	}
	return nil
}
