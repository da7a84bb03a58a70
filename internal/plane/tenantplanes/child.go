package tenantplanes

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/polder-kaas/polder/internal/files/atomicfile"
	"github.com/polder-kaas/polder/internal/plane/datadir"
	"github.com/polder-kaas/polder/internal/plane/lifecycle"
	"github.com/polder-kaas/polder/internal/plane/status"
	"github.com/polder-kaas/polder/internal/program/exit"
	"github.com/polder-kaas/polder/internal/tenancy"
)

// Times of a child.
const (
	firstPause    = time.Second // before it is started again
	longestPause  = time.Minute
	healthyAfter  = 5 * time.Minute // of running, after which pauses are short again
	startPatience = 2 * time.Minute
	readyPoll     = 50 * time.Millisecond
	probeInterval = 5 * time.Second
	probeTimeout  = 3 * time.Second
	maxUnanswered = 2               // probes, after which requests are refused at once
	maxSilence    = time.Minute     // after which it is ended, and started again
	dumpPatience  = 5 * time.Second // for it to write into its log what it hangs in
)

// authorityFile is what the child is told to trust, in its directory.
const authorityFile = "front-ca.crt"

// child is the plane of one namespace.
type child struct {
	planes            *Planes
	namespace, tenant string
	dir               string
	done              chan struct{} // closes when it was asked to stop, and has

	wanted bool               // it is to run; guarded by Planes.mu, as is:
	cancel context.CancelFunc // nil until it is launched

	mu       sync.Mutex
	state    tenancy.PlaneState
	accepted bool
	rejected string
	endpoint *endpoint // nil while there is none
	pid      int
}

// endpoint is where a child that is ready can be reached.
type endpoint struct {
	url       *url.URL
	transport *http.Transport // with the certificate of the front
	client    client.Client   // with all rights
	slots     chan struct{}   // a place for each request that it is given
}

// run keeps the process running until ctx ends.
func (c *child) run(ctx context.Context) {
	clk := c.planes.cfg.Clock
	for pause := firstPause; ; pause = min(2*pause, longestPause) {
		began := clk.Now()
		err := c.serve(ctx)
		if ctx.Err() != nil {
			c.setState(tenancy.PlaneFailed, "it was stopped")
			return
		}
		if clk.Since(began) > healthyAfter || exit.Code(err) == exit.InUse {
			pause = firstPause
		}
		c.planes.cfg.Log.Error("the plane of a tenant ended", "namespace", c.namespace, "error", err, "again", pause.String())
		c.setState(tenancy.PlaneFailed, fmt.Sprintf("its process ended: %v; it is started again after %s", err, pause))
		select {
		case <-ctx.Done():
			return
		case <-clk.After(pause):
		}
	}
}

// serve runs one process, from its start to its end.
func (c *child) serve(ctx context.Context) error {
	select {
	case c.planes.starting <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	leave := sync.OnceFunc(func() { <-c.planes.starting })
	defer leave()
	c.setState(tenancy.PlaneStarting, "its process is starting")
	process, err := c.start()
	if err != nil {
		return err
	}
	stopped := context.AfterFunc(ctx, func() { _ = process.Stop() }) // it may have ended by itself
	defer stopped()
	defer c.setEndpoint(nil, 0)
	e, err := c.awaitReady(ctx, process)
	if err != nil {
		_ = process.Stop()
		<-process.Done()
		return err
	}
	leave()
	defer e.transport.CloseIdleConnections()
	c.setEndpoint(e, process.PID())
	c.watch(process, e)
	return process.Err()
}

// start starts the process. Its standard input ends with this process, and so does it, however that ends.
func (c *child) start() (*lifecycle.Child, error) {
	if err := datadir.Prepare(c.dir); err != nil {
		return nil, err
	}
	trusted := filepath.Join(c.dir, authorityFile)
	if err := atomicfile.Write(trusted, c.planes.authority.pem, 0o600); err != nil {
		return nil, err
	}
	in, out, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	l, err := lifecycle.New(c.dir)
	if err != nil {
		return nil, errors.Join(err, in.Close(), out.Close())
	}
	cfg := c.planes.cfg
	args := append([]string{
		"serve", "--data-dir=" + c.dir, "--listen=127.0.0.1:0", "--front-authority=" + trusted, "--stop-at-eof",
	}, cfg.Args...)
	if cfg.BackupDir != "" {
		args = append(args, "--backup-dir="+filepath.Join(cfg.BackupDir, c.namespace+"-"+filepath.Base(c.dir)))
	}
	process, err := l.StartChild(lifecycle.ChildOptions{
		Binary: cfg.Program, Name: "polderd", Args: args, Stdin: in, Env: environment(os.Environ()),
		// A terminal interrupts this process, which stops the child in its turn.
		Attributes: &syscall.SysProcAttr{Setpgid: true},
	})
	if err != nil {
		return nil, errors.Join(err, in.Close(), out.Close())
	}
	go func() {
		<-process.Done()
		_ = out.Close() // the kernel does it if this process ends first
	}()
	preferToEnd(process.PID())
	return process, in.Close()
}

// oomScore is what is added to a child when the kernel, short of memory, looks for a process to end: one tenant's plane
// goes before that of all.
const oomScore = "300"

func preferToEnd(pid int) {
	_ = os.WriteFile(fmt.Sprintf("/proc/%d/oom_score_adj", pid), []byte(oomScore), 0) // it may have ended
}

// environment is that of this process, without what systemd tells it alone.
func environment(all []string) []string {
	return slices.DeleteFunc(slices.Clone(all), func(v string) bool {
		return strings.HasPrefix(v, "NOTIFY_SOCKET=") || strings.HasPrefix(v, "WATCHDOG_")
	})
}

// awaitReady waits until the process says that it is ready.
func (c *child) awaitReady(ctx context.Context, process *lifecycle.Child) (*endpoint, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, startPatience,
		exit.Errorf(exit.Timeout, "it was not ready within %s", startPatience))
	defer cancel()
	t := c.planes.cfg.Clock.NewTicker(readyPoll)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-process.Done():
			return nil, process.Err()
		case <-t.C():
		}
		s, ok, err := status.Read(c.dir)
		if err != nil {
			return nil, err
		}
		if ok && s.PID == process.PID() && s.Phase == status.Ready {
			return c.newEndpoint(s)
		}
	}
}

func (c *child) newEndpoint(s status.Status) (*endpoint, error) {
	u, err := url.Parse(s.Address)
	if err != nil {
		return nil, err
	}
	kubeconfig := filepath.Join(c.dir, "admin.kubeconfig")
	rc, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(rc.CAData) {
		return nil, fmt.Errorf("%s has no authority", kubeconfig)
	}
	e := &endpoint{url: u, slots: make(chan struct{}, c.planes.cfg.Requests), transport: &http.Transport{
		DialContext: (&net.Dialer{Timeout: probeTimeout}).DialContext,
		TLSClientConfig: &tls.Config{
			RootCAs: roots, Certificates: []tls.Certificate{c.planes.authority.leaf}, MinVersion: tls.VersionTLS13,
		},
		// Each watch is a stream.
		ForceAttemptHTTP2: true, IdleConnTimeout: time.Minute, MaxIdleConnsPerHost: c.planes.cfg.Requests,
	}}
	e.client, err = c.planes.cfg.NewClient(kubeconfig)
	return e, err
}

// watch asks the process whether it is alive until it ends. One that does not answer is given no more requests: they
// would hold places here that others need.
func (c *child) watch(process *lifecycle.Child, e *endpoint) {
	t := c.planes.cfg.Clock.NewTicker(probeInterval)
	defer t.Stop()
	answered := c.planes.cfg.Clock.Now()
	for unanswered := 0; ; {
		select {
		case <-process.Done():
			return
		case <-t.C():
		}
		if e.answers() {
			unanswered, answered = 0, c.planes.cfg.Clock.Now()
			c.setAnswering(true)
			continue
		}
		if unanswered++; unanswered >= maxUnanswered {
			c.setAnswering(false)
		}
		if c.planes.cfg.Clock.Since(answered) > maxSilence {
			c.planes.cfg.Log.Error("the plane of a tenant does not answer, and is ended", "namespace", c.namespace, "for", maxSilence.String())
			process.Kill(c.planes.cfg.Clock.After(dumpPatience))
			return
		}
	}
}

// answers asks for what needs no store and no rights.
func (e *endpoint) answers() bool {
	ctx, cancel := context.WithTimeout(context.Background(), probeTimeout) //nolint:forbidigo // of a process, not of a caller
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, e.url.JoinPath("version").String(), http.NoBody)
	if err != nil {
		return false
	}
	res, err := e.transport.RoundTrip(r)
	if err != nil {
		return false
	}
	_ = res.Body.Close() // nothing is read of it
	return true
}

// stop ends the process, for good.
func (c *child) stop(ctx context.Context) error {
	c.planes.mu.Lock()
	cancel := c.cancel
	c.planes.mu.Unlock()
	if cancel == nil {
		return nil
	}
	cancel()
	select {
	case <-c.done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("waiting for its process to stop: %w", ctx.Err())
	}
}
