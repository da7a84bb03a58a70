// Package providermain makes a program of a provider: Main is all that its main function has to call.
package providermain

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/polder-kaas/polder/api/v1alpha1"
	"github.com/polder-kaas/polder/internal/program/cmdline"
	"github.com/polder-kaas/polder/internal/program/exit"
	"github.com/polder-kaas/polder/internal/program/logging"
	"github.com/polder-kaas/polder/internal/providers/standalone"
	"github.com/polder-kaas/polder/provider"
)

// Main is the whole program of a provider: it reads the command line, serves until it is told to stop, and ends the
// process.
func Main(p provider.Provider) {
	background := context.Background() //nolint:forbidigo // it is the program
	ctx, stop := signal.NotifyContext(background, syscall.SIGTERM, syscall.SIGINT)
	// A second signal ends the process at once.
	context.AfterFunc(ctx, stop)
	err := Command(p).ExecuteContext(ctx)
	if err != nil {
		fmt.Fprintln(os.Stderr, p.Describe().Name+":", err)
	}
	os.Exit(exit.Code(err)) //nolint:forbidigo // it is the program
}

// Command is the command line of a provider, for programs that have more to do than Main.
func Command(p provider.Provider) *cobra.Command {
	var cfg standalone.Config
	var kubeconfig string
	logs := logging.Options{Out: os.Stderr}
	d := p.Describe()
	c := &cobra.Command{
		Use:   d.Name,
		Short: fmt.Sprintf("The provider %s of Polder (%s), beside a plane", d.Name, d.Title),
		Args:  cmdline.NoArgs,
	}
	cmdline.Prepare(c)
	c.RunE = func(c *cobra.Command, _ []string) error {
		log, err := logging.New(logs)
		if err != nil {
			return exit.With(exit.Usage, err)
		}
		ctrl.SetLogger(logr.FromSlogHandler(log.Handler()))
		slog.SetDefault(log)
		klog.SetLoggerWithOptions(logr.FromSlogHandler(logging.NewLibraryHandler(log, "kubernetes")),
			klog.ContextualLogger(true))
		rules := clientcmd.NewDefaultClientConfigLoadingRules()
		rules.ExplicitPath = kubeconfig
		if cfg.Plane, err = clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, nil).ClientConfig(); err != nil {
			return exit.Errorf(exit.Usage, "the plane's kubeconfig cannot be used: %w; name one with --kubeconfig", err)
		}
		cfg.Plane.QPS = -1 // no limit in the client: the plane limits requests itself
		cfg.Plane.UserAgent = "polder-provider-" + d.Name
		return standalone.Run(c.Context(), p, cfg)
	}
	f := c.Flags()
	f.StringVar(&kubeconfig, "kubeconfig", "", "kubeconfig `FILE` of the plane (default $KUBECONFIG, or the Pod's own)")
	f.StringVar(&cfg.Listen, "listen", "127.0.0.1:0", "`ADDRESS:PORT` for admission; port 0 takes any free one")
	f.StringVar(&cfg.PublicURL, "url", "", "`URL` under which the plane reaches --listen (default that address)")
	f.StringVar(&cfg.Metrics, "metrics", "0", "`ADDRESS:PORT` for metrics; 0 serves none")
	f.StringVar(&cfg.Namespace, "lease-namespace", v1alpha1.ProvidersNamespace,
		"`namespace` of the lease by which one of several processes is chosen; empty if there is only one")
	f.IntVar(&cfg.Concurrency, "concurrency", 10, "clusters that are worked on at the same time")
	f.StringVar(&logs.Level, "log-level", "info", "error, warn, info, debug or trace")
	f.StringVar(&logs.Format, "log-format", logging.FormatAuto, "text, json, or auto: text on a terminal, JSON otherwise")
	return c
}
