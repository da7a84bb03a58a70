// Package kubelet is what a local machine has in place of a kubelet: it runs static pods as
// processes, shows them to the cluster as mirror pods, registers the node, and answers the API
// server on the kubelet's port. Ordinary pods do not run; their simulation is not its business.
package kubelet

import (
	"context"
	"errors"
	"log/slog"
	"net/netip"
	"sync"
	"sync/atomic"

	"k8s.io/utils/clock"

	"github.com/polder-kaas/polder/internal/providers/local/hostapi"
	"github.com/polder-kaas/polder/internal/providers/local/process"
)

// Config is one machine. All fields but ServingCertificate, ClientCertificate and APIServerEnvironment are needed.
type Config struct {
	Machine         hostapi.MachineSpec
	Dir             hostapi.MachineDir
	Address         netip.Addr
	Cluster         netip.Prefix // the addresses of all machines of the cluster
	EmulatedVersion string       // minor of Kubernetes to emulate, or empty
	Binary          string       // of polderd, which is every program a static pod may be
	Forker          *process.Forker
	Watcher         *ManifestWatcher // nil: manifests are read at intervals
	// APIServerEnvironment is added to that of the API server.
	APIServerEnvironment []string
	AllowEverything      bool // see rewrite.Machine
	// ServingCertificate makes a certificate for the kubelet's port, signed by the cluster's CA; nil or an error: a
	// self-signed one is used, as by a kubelet without certificate of its own.
	ServingCertificate func(names []string, address netip.Addr) (cert, key []byte, err error)
	// ClientCertificate makes a certificate for the node itself, in place of the one of its boot when that is due; nil or
	// an error: it goes on with the one it has.
	ClientCertificate func(node string) (cert, key []byte, err error)
	OnChange          func() // called after every change of Status; must not block
	Clock             clock.WithTicker
	Log               *slog.Logger
}

// Kubelet is that of one machine. Its methods may be called at any time.
type Kubelet struct {
	cfg           Config
	pods          *staticPods
	node          atomic.Pointer[nodeState]
	mirrorTrigger chan struct{} // something that the mirror pods show has changed

	mu          sync.Mutex
	problems    map[string]string // by part
	partitioned bool
	reconnect   chan struct{} // closed when partitioned changes
}

// New prepares a kubelet; Run starts it.
func New(cfg Config) *Kubelet {
	k := &Kubelet{cfg: cfg, mirrorTrigger: make(chan struct{}, 1), problems: map[string]string{},
		reconnect: make(chan struct{})}
	k.node.Store(&nodeState{})
	k.pods = newStaticPods(cfg, k.notifyChange, func(err error) { k.setProblem("static pods", err) })
	return k
}

// Run serves until ctx ends, then stops the static pods in order: schedulers and controllers before the API server,
// etcd last.
func (k *Kubelet) Run(ctx context.Context) {
	var wg sync.WaitGroup
	if k.cfg.Machine.ControlPlane {
		wg.Go(func() { k.runWithRetry(ctx, "static pods", k.pods.run) })
	}
	wg.Go(func() { k.runWhileConnected(ctx) })
	wg.Wait()
}

// runWithRetry runs f until ctx ends, again and again if it fails; the reason is a problem of the machine.
func (k *Kubelet) runWithRetry(ctx context.Context, name string, f func(context.Context) error) {
	retry := newBackoff()
	for {
		err := f(ctx)
		if ctx.Err() != nil {
			return
		}
		if err == nil {
			err = errors.New("ended without reason")
		}
		k.setProblem(name, err)
		if !retry.wait(ctx) {
			return
		}
	}
}

func (k *Kubelet) setProblem(part string, err error) {
	text := ""
	if err != nil {
		text = part + ": " + err.Error()
	}
	k.mu.Lock()
	same := k.problems[part] == text
	k.problems[part] = text
	k.mu.Unlock()
	if same {
		return
	}
	if err != nil {
		k.cfg.Log.Warn("problem", "machine", k.cfg.Machine.Name, "part", part, "error", err)
	}
	k.cfg.OnChange()
}

// Kill ends all processes at once, as if the plug were pulled. Run must be ended as well.
func (k *Kubelet) Kill() { k.pods.kill() }

// Drain takes the API server out of service gracefully: it ends the requests it has and tells its clients to go
// elsewhere. The other processes run on.
func (k *Kubelet) Drain() { k.pods.drain() }

// IsServing says that the machine's API server may get requests.
func (k *Kubelet) IsServing() bool { return !k.IsPartitioned() && k.pods.isServing() }

// Endpoint is where the machine's API server listens.
func (k *Kubelet) Endpoint() netip.AddrPort {
	return netip.AddrPortFrom(k.cfg.Address, k.pods.apiServerPort())
}

// NotHonored lists static pods that cannot be run here, and why.
func (k *Kubelet) NotHonored() []string { return k.pods.rejectionMessages() }

// Status returns the state of the machine's processes, whether the cluster shows them, and what is wrong first of all.
func (k *Kubelet) Status() (processes []hostapi.ProcessStatus, registered bool, problem string) {
	k.mu.Lock()
	for _, p := range []string{"static pods", "kubelet endpoint", "node"} {
		if problem == "" {
			problem = k.problems[p]
		}
	}
	k.mu.Unlock()
	return k.pods.status(), k.node.Load().synced, problem
}

// notifyChange is called when a process started, ended, or became ready or not.
func (k *Kubelet) notifyChange() {
	select {
	case k.mirrorTrigger <- struct{}{}:
	default:
	}
	k.cfg.OnChange()
}

// IsDraining says that the API server ends the requests it still has.
func (k *Kubelet) IsDraining() bool { return !k.IsPartitioned() && k.pods.isDraining() }
