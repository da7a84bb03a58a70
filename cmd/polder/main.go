// Command polder runs a management plane on this machine and works with it.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/polder-kaas/polder/internal/cli"
	"github.com/polder-kaas/polder/internal/cli/output"
	"github.com/polder-kaas/polder/internal/program/exit"
	"github.com/polder-kaas/polder/stack/render"
)

func main() {
	if code, child := render.Main(); child {
		os.Exit(code)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	err := cli.CommandAs(os.Args).ExecuteContext(ctx)
	if m := output.Message(err); m != "" {
		fmt.Fprintln(os.Stderr, "polder:", m)
	}
	os.Exit(exit.Code(err))
}
