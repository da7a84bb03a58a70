// Package apiserver runs the plane's Kubernetes API: the generic control plane of Kubernetes
// (namespaces, secrets, configmaps, events, leases, RBAC, quota, custom resources, admission
// webhooks and policies), without pods and nodes.
package apiserver

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/polder-kaas/polder/internal/plane/quotaevaluator"
)

// Check is a check of /readyz beyond the API server's own.
type Check struct {
	Name  string
	Check func(ctx context.Context) error
}

// Config says what to serve and to whom. All fields without a comment are needed.
type Config struct {
	Listener         net.Listener
	Etcd             string // endpoint
	Certificate      string // file with certificate and key
	ClientCA         string // file
	SAKey            string // file: signs and verifies service-account tokens
	EncryptionConfig string // file
	// FrontAuthority is a file with the authority of who may say whose requests it hands on; empty: nobody may.
	FrontAuthority string
	AuthConfig     string // file: AuthenticationConfiguration, read again when it changes
	AuditPolicy    string // file: what is recorded of requests
	AuditLog       string // path of the file it is recorded in, in a folder that is there
	WebhookHost    string // host:port whose webhooks are dialled by DialWebhook
	DialWebhook    func(ctx context.Context) (net.Conn, error)
	Checks         []Check         // further checks of /readyz
	Warnings       func() []string // what /readyz?verbose tells operators though it is ready; optional
	// Handlers are for further paths, behind authentication and authorisation; one that ends with a slash is for all that
	// begin with it.
	Handlers map[string]http.Handler
	// Route wraps all that is served here, behind authentication and authorisation. It may ask for namespaces; an answer
	// is not older than the namespace.
	Route      func(next http.Handler, namespace func(context.Context, string) (*corev1.Namespace, error)) http.Handler
	Quota      *quotaevaluator.Source // where quotas read what clusters ask for
	WatchCache bool                   // of custom resources; see plane.Config
	Profiling  bool                   // serve /debug/pprof to those RBAC allows it
	Log        *slog.Logger
}

// APIServer is the API as a component of the plane.
type APIServer struct {
	cfg              Config
	ready            chan struct{}
	openAPIRequested chan struct{} // see PublishOpenAPI
	configured       chan configResult

	// Set before ready closes.
	handler   http.Handler
	loopback  *rest.Config
	informers informers.SharedInformerFactory
}

// configResult is the outcome of the configuration, which needs no store.
type configResult struct {
	configs configs
	err     error
}

// New makes the component and, in the background, its configuration, while the store starts: a key is made for
// it, which takes a few tenths of a second. Run returns what goes wrong.
func New(ctx context.Context, cfg Config) *APIServer {
	a := &APIServer{
		cfg: cfg, ready: make(chan struct{}), openAPIRequested: make(chan struct{}), configured: make(chan configResult, 1),
	}
	go func() {
		cs, err := a.configure(context.WithoutCancel(ctx)) // as in Run, whose context ends later
		a.configured <- configResult{cs, err}
	}()
	return a
}

// Name is the component's name.
func (a *APIServer) Name() string { return "apiserver" }

// Ready closes when requests are served. The built-in roles may come later; see BootstrapRoles.
func (a *APIServer) Ready() <-chan struct{} { return a.ready }

// Client returns a client configuration with all rights for a part of this process, which names itself so that
// logs and metrics can tell who asks. It must not be used before Ready.
func (a *APIServer) Client(userAgent string) *rest.Config {
	c := rest.CopyConfig(a.loopback)
	c.UserAgent = userAgent
	c.QPS = -1 // in process; the API server's priority and fairness is the limit
	return c
}

// Handler returns what serves the API, with authentication and all that follows, for requests of this process. It must
// not be used before Ready.
func (a *APIServer) Handler() http.Handler { return a.handler }

// Informers returns the informers of the API server's own admission and authorisation. They must not be used
// before Ready.
func (a *APIServer) Informers() informers.SharedInformerFactory { return a.informers }

// Run serves until ctx ends.
func (a *APIServer) Run(ctx context.Context) error {
	servers, err := a.build()
	if err != nil {
		return fmt.Errorf("building the API server: %w", err)
	}
	prepared, err := servers.aggregator.PrepareRun()
	if err != nil {
		return fmt.Errorf("preparing the API server: %w", err)
	}
	a.handler = servers.aggregator.GenericAPIServer.Handler
	rctx, stop := context.WithCancel(ctx)
	defer stop()
	a.deferOpenAPI(rctx, servers.extensions)
	ended := make(chan error, 1)
	go func() { ended <- prepared.Run(rctx) }()
	if err := a.awaitReady(rctx); err != nil && ctx.Err() == nil {
		stop()
		return errors.Join(err, <-ended)
	}
	if ctx.Err() == nil {
		close(a.ready)
	}
	if err := <-ended; err != nil {
		return fmt.Errorf("serving the API: %w", err)
	}
	return nil
}

// awaitReady waits for the server's own readiness, without the checks of components which start after it.
func (a *APIServer) awaitReady(ctx context.Context) error {
	excludedChecks := []string{rolesCheck}
	for _, c := range a.cfg.Checks {
		excludedChecks = append(excludedChecks, c.Name)
	}
	return a.waitForPath(ctx, "/readyz", excludedChecks...)
}

// waitForPath requests a path until it answers with status 200.
func (a *APIServer) waitForPath(ctx context.Context, path string, excludedChecks ...string) error {
	client, err := kubernetes.NewForConfig(a.loopback)
	if err != nil {
		return err
	}
	req := client.Discovery().RESTClient().Get().AbsPath(path)
	for _, name := range excludedChecks {
		req.Param("exclude", name)
	}
	var last string
	err = wait.PollUntilContextTimeout(ctx, 20*time.Millisecond, time.Minute, true,
		func(ctx context.Context) (bool, error) {
			code := 0
			res := req.Do(ctx).StatusCode(&code)
			if body, err := res.Raw(); err != nil {
				last = strings.TrimSpace(fmt.Sprintf("%v %s", err, body))
			}
			return code == http.StatusOK, nil
		})
	if err != nil {
		return fmt.Errorf("waiting for the API server: %w: %s", err, last)
	}
	return nil
}
