package cluster

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/polder-kaas/polder/api/v1alpha1"
	"github.com/polder-kaas/polder/internal/cli/output"
	"github.com/polder-kaas/polder/internal/program/exit"
)

// question is asked before something is lost.
type question struct {
	toDo    string // what is done if the name is typed
	notDone string // what did not happen otherwise
}

// ask shows what would be lost, and wants the name typed.
func (q question) ask(ctx context.Context, in *bufio.Reader, out io.Writer, c *v1alpha1.WorkloadCluster,
	now time.Time) error {
	fmt.Fprintf(out, "Cluster %s/%s: provider %s, %s, %s old. All that is in it is lost.\nType its name to %s: ",
		c.Namespace, c.Name, cmp.Or(c.Spec.Provider, "not known"), machineCount(c), output.Age(now, c.CreationTimestamp.Time),
		q.toDo)
	typed := make(chan string, 1)
	// Nobody can interrupt a read of a terminal; the process ends soon after this gives up waiting.
	go func() {
		line, _ := in.ReadString('\n')
		typed <- strings.TrimSpace(line)
	}()
	select {
	case <-ctx.Done():
		fmt.Fprintln(out)
		return exit.Errorf(exit.Interrupted, "interrupted; cluster %q %s", c.Name, q.notDone)
	case name := <-typed:
		if name != c.Name {
			return exit.Errorf(exit.Usage, "that is not its name; cluster %q %s", c.Name, q.notDone)
		}
		return nil
	}
}
