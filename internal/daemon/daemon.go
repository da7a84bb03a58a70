// Package daemon is the command line of polderd.
package daemon

import (
	"fmt"
	"net"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/polder-kaas/polder/internal/plane"
	"github.com/polder-kaas/polder/internal/plane/datadir"
	"github.com/polder-kaas/polder/internal/program/buildinfo"
	"github.com/polder-kaas/polder/internal/program/cmdline"
	"github.com/polder-kaas/polder/internal/program/commanddocs"
	"github.com/polder-kaas/polder/internal/program/exit"
	"github.com/polder-kaas/polder/internal/program/logging"
)

// Command returns polderd with its subcommands.
func Command() *cobra.Command {
	// Kubernetes' programs, which polderd can run as well, register flags for the whole process, and cobra would
	// add them to ours.
	pflag.CommandLine = pflag.NewFlagSet("polderd", pflag.ContinueOnError)
	root := &cobra.Command{Use: "polderd", Short: "The Polder management plane in one process"}
	cmdline.Prepare(root)
	root.AddCommand(newServeCommand(), newRestoreStoreCommand(), newVersionCommand(), commanddocs.Command())
	return root
}

// ExitCode is the code that polderd ends with. A usage error has one of its own: 2, which it has elsewhere, is also
// what the Go runtime ends a crashed process with, and a service must be started again after that.
func ExitCode(err error) int {
	if code := exit.Code(err); code != exit.Usage {
		return code
	}
	return exit.DaemonUsage
}

func newServeCommand() *cobra.Command {
	cfg := plane.Config{}
	stopAtEOF := false
	logs := logging.Options{Out: os.Stderr}
	c := &cobra.Command{
		Use:   "serve",
		Short: "Serve in the foreground until SIGTERM or SIGINT",
		Args:  cmdline.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			log, err := logging.New(logs)
			if err != nil {
				return exit.With(exit.Usage, err)
			}
			cfg.Log = log
			cfg.Notify = newNotifier(os.Getenv("NOTIFY_SOCKET")) //nolint:forbidigo // systemd hands it over in this way
			cfg.TenantArgs = tenantArgs(c.Flags())
			ctx := c.Context()
			if stopAtEOF {
				ctx = withInput(ctx, os.Stdin)
			}
			return plane.Run(ctx, cfg)
		},
	}
	f := c.Flags()
	f.StringVar(&cfg.DataDir, "data-dir", datadir.Default(), "directory for all data, keys and sockets of the plane")
	f.StringVar(&cfg.Listen, "listen", plane.DefaultListen,
		"`ADDRESS:PORT` of the Kubernetes API; port 0 takes any free one")
	f.StringVar(&cfg.REST.Listen, "rest-listen", "",
		"`ADDRESS:PORT` of the REST API for customers; port 0 takes any free one (default: it is not served)")
	f.StringVar(&cfg.REST.Certificate, "rest-certificate", "",
		"`FILE` with the certificate of the REST API, read again when it changes (default: one of the plane's own authority)")
	f.StringVar(&cfg.REST.Key, "rest-key", "", "`FILE` with its key")
	f.StringSliceVar(&cfg.TLSNames, "tls-san", nil, "further `NAME` or address the API is reached under; may be repeated")
	f.DurationVar(&cfg.CertificateLifetime, "certificate-lifetime", 0,
		"life of serving and client certificates; they are renewed after two thirds of it (default one year)")
	f.IntVar(&cfg.Concurrency, "concurrency", plane.DefaultConcurrency,
		"objects of one kind Cluster API works on at the same time")
	f.BoolVar(&cfg.WatchCache, "watch-cache", false,
		"keep the recent history of custom resources in memory; worth its price with hundreds of watching clients")
	f.BoolVar(&cfg.Profiling, "profiling", false, "serve /debug/pprof to administrators")
	f.StringVar(&cfg.AuthenticationConfig, "authentication-config", "",
		"`FILE` that says whose tokens are believed: Kubernetes' AuthenticationConfiguration, read again when it changes")
	f.StringVar(&cfg.Stacks.Source, "stack-source", "",
		"where releases of cluster stacks are, for ClusterStacks that name no source: oci://HOST/REPOSITORY or a directory")
	f.StringVar(&cfg.Stacks.SourceCA, "stack-source-ca", "",
		"`FILE` with the certificates of who may vouch for --stack-source (default the system's)")
	f.StringVar(&cfg.Stacks.DockerConfig, "stack-docker-config", "",
		"config.json `FILE` with credentials for --stack-source")
	f.StringSliceVar(&cfg.Stacks.Directories, "stack-directory", nil,
		"`NAME=DIRECTORY` of releases that ClusterStacks may name; may be repeated")
	f.StringSliceVar(&cfg.Stacks.TrustedRegistries, "stack-trust", nil,
		"`HOST[:PORT]` of a registry with a private address that ClusterStacks may name; may be repeated")
	f.StringSliceVar(&cfg.Stacks.AllowedKinds, "stack-kinds", nil,
		"`GROUP/KIND` that releases may bring into the plane beside classes and templates; * may stand at either end of both; may be repeated")
	f.BoolVar(&cfg.Stacks.OmitShipped, "no-shipped-stacks", false, "do not offer the stacks that are in this binary")
	f.StringSliceVar(&cfg.Local.Trusted, "local-trust", nil,
		"`HOST:PORT` with a private address that local clusters may reach, an issuer of tokens for example; may be repeated")
	f.BoolVar(&cfg.Local.AllowUnconfined, "local-unconfined", false,
		"let customers have local clusters where the kernel offers too little to confine them")
	addBackupFlags(f, &cfg.Backups)
	addTenantFlags(f, &cfg, &stopAtEOF)
	f.StringVar(&logs.Level, "log-level", "info", "error, warn, info, debug or trace")
	f.StringVar(&logs.Format, "log-format", logging.FormatAuto, "text, json, or auto: text on a terminal, JSON otherwise")
	return c
}

func newVersionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Say what this binary is made of",
		Args:  cmdline.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			v := buildinfo.Get()
			_, err := fmt.Fprintf(c.OutOrStdout(), "polderd %s (Kubernetes %s, Cluster API %s, etcd %s, Go %s, %s)\n", v.Version,
				v.Kubernetes, v.ClusterAPI, v.Etcd, v.Go, v.Platform)
			return err
		},
	}
}

// newNotifier returns a function that tells systemd, if it asked to be told, how far the service is.
func newNotifier(socket string) func(string) {
	if socket == "" {
		return nil
	}
	return func(state string) {
		c, err := net.Dial("unixgram", socket) //nolint:gosec // systemd names it; a datagram socket does not block
		if err != nil {
			return // systemd will notice the missing message by itself
		}
		defer c.Close()               //nolint:errcheck // nothing to lose
		_, _ = c.Write([]byte(state)) // as above
	}
}
