// Command polderd is Polder's whole management plane in one process. Called by another name, it
// is one of the programs local clusters are made of.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/polder-kaas/polder/internal/daemon"
	"github.com/polder-kaas/polder/internal/providers/local/component"
	"github.com/polder-kaas/polder/stack/render"
)

func main() {
	if code, child := render.Main(); child {
		os.Exit(code)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	if run := component.ProgramFor(os.Args); run != nil {
		os.Exit(run(ctx))
	}
	err := daemon.Command().ExecuteContext(ctx)
	if err != nil && !errors.Is(err, context.Canceled) {
		fmt.Fprintln(os.Stderr, "polderd:", err)
	}
	os.Exit(daemon.ExitCode(err))
}
