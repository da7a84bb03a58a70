// Command polderd is Polder's whole management plane in one process.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/polder-kaas/polder/internal/daemon"
	"github.com/polder-kaas/polder/internal/exit"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	err := daemon.Command().ExecuteContext(ctx)
	if err != nil && !errors.Is(err, context.Canceled) {
		fmt.Fprintln(os.Stderr, "polderd:", err)
	}
	os.Exit(exit.Code(err))
}
