package plane

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"path/filepath"
	"strconv"
	"time"

	"k8s.io/utils/clock"

	"github.com/polder-kaas/polder/internal/plane/backup"
	"github.com/polder-kaas/polder/internal/program/exit"
	"github.com/polder-kaas/polder/internal/providers/local/outside"
)

// DefaultListen is where the API is served by default.
const DefaultListen = "127.0.0.1:7443"

// DefaultConcurrency keeps a small plane small; hundreds of clusters need more.
const DefaultConcurrency = 10

// Config is what an operator can choose about a plane.
type Config struct {
	DataDir             string        // needed
	Listen              string        // host:port; empty means DefaultListen, port 0 any free one
	REST                REST          // the API for customers
	TLSNames            []string      // further names and addresses the API is reached under
	CertificateLifetime time.Duration // of all but the authorities; 0 means a year
	Concurrency         int           // objects of one kind worked on at the same time; 0 means DefaultConcurrency
	WatchCache          bool          // of custom resources: recent history in memory, for many watching clients
	Profiling           bool          // serve /debug/pprof to those RBAC allows it
	// AuthenticationConfig is a file that says whose tokens are believed, as Kubernetes has it; empty: nobody's but ours.
	AuthenticationConfig string
	// FrontAuthority is a file with the authority of the plane that hands requests on to this one, which is a tenant's;
	// empty: there is none.
	FrontAuthority string
	// TenantArgs are flags that planes of tenants are started with.
	TenantArgs []string
	Stacks     Stacks           // where cluster stacks come from
	Local      Local            // what local clusters may
	Backups    backup.Schedule  // that the plane makes by itself
	Clock      clock.WithTicker // nil means the real one
	Log        *slog.Logger     // needed
	Notify     func(string)     // called with "READY=1" and "STOPPING=1", as systemd wants it; optional
}

// REST is what an operator can choose about the API for customers.
type REST struct {
	Listen      string // host:port; empty means that it is not served
	Certificate string // file; empty means a certificate of the plane's own authority
	Key         string // file
}

// check says what is wrong with it.
func (r REST) check() error {
	if (r.Certificate == "") != (r.Key == "") {
		return errors.New("--rest-certificate and --rest-key belong together; give both, or none")
	}
	if r.Certificate != "" && r.Listen == "" {
		return errors.New("--rest-certificate is of no use without --rest-listen")
	}
	if r.Listen == "" {
		return nil
	}
	return checkListen("--rest-listen", r.Listen, "127.0.0.1:8443")
}

// Local is what an operator can choose about local clusters.
type Local struct {
	Trusted         []string // HOST:PORT that clusters may reach though their addresses are not public
	AllowUnconfined bool     // customers may have clusters where the kernel offers too little to confine them
}

// minCertificateLifetime leaves time to notice a new certificate before the old one ends.
const minCertificateLifetime = time.Minute

// Complete fills in defaults and reports everything that is wrong at once.
func (c Config) Complete() (Config, error) {
	if c.Listen == "" {
		c.Listen = DefaultListen
	}
	if c.Concurrency == 0 {
		c.Concurrency = DefaultConcurrency
	}
	if c.Clock == nil {
		c.Clock = clock.RealClock{}
	}
	if c.Notify == nil {
		c.Notify = func(string) {}
	}
	var errs []error
	if c.DataDir == "" {
		errs = append(errs, errors.New("no data directory given; name one with --data-dir"))
	}
	if err := errors.Join(checkListen("--listen", c.Listen, DefaultListen), c.REST.check()); err != nil {
		errs = append(errs, err)
	}
	if c.CertificateLifetime != 0 && c.CertificateLifetime < minCertificateLifetime {
		errs = append(errs, fmt.Errorf("--certificate-lifetime %s is too short; choose at least %s", c.CertificateLifetime,
			minCertificateLifetime))
	}
	if c.Concurrency < 1 || c.Concurrency > 1000 {
		errs = append(errs, fmt.Errorf("--concurrency %d is out of range; choose 1 to 1000", c.Concurrency))
	}
	if c.AuthenticationConfig != "" {
		file, err := filepath.Abs(c.AuthenticationConfig)
		errs = append(errs, err)
		c.AuthenticationConfig = file
	}
	for _, t := range c.Local.Trusted {
		if err := outside.CheckTrusted(t); err != nil {
			errs = append(errs, fmt.Errorf("--local-trust %w", err))
		}
	}
	if _, err := c.Stacks.releaseSources(); err != nil {
		errs = append(errs, err)
	}
	if c.Backups.Dir != "" {
		dir, err := filepath.Abs(c.Backups.Dir)
		errs = append(errs, err)
		c.Backups.Dir = dir
	}
	if err := c.Backups.Check(c.DataDir); err != nil {
		errs = append(errs, err)
	}
	return c, exit.With(exit.Usage, errors.Join(errs...))
}

// checkListen wants an address, not a name: a name could mean several addresses or, tomorrow, another.
func checkListen(flag, s, example string) error {
	host, port, err := net.SplitHostPort(s)
	if err != nil {
		return fmt.Errorf("%s %q is not ADDRESS:PORT; an example is %s", flag, s, example)
	}
	if net.ParseIP(host) == nil {
		return fmt.Errorf("%s %q: %q is not an IP address; an example is %s", flag, s, host, example)
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n > 65535 {
		return fmt.Errorf("%s %q: %q is not a port; choose 0 to 65535", flag, s, port)
	}
	return nil
}
