package machine

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/polder-kaas/polder/internal/cli/connect"
	"github.com/polder-kaas/polder/internal/cli/output"
	"github.com/polder-kaas/polder/internal/program/exit"
	"github.com/polder-kaas/polder/internal/providers/local/hostapi"
)

// Logs that are shown if none is named.
const (
	bootLog = "boot"
	apiLog  = "kube-apiserver"
)

// followInterval is how often a followed log is looked at.
const followInterval = 200 * time.Millisecond

// newLogsCommand is polder machine logs.
func newLogsCommand(g *connect.Globals) *cobra.Command {
	t := logTail{pollInterval: followInterval}
	c := &cobra.Command{
		Use:   "logs NAME [PROCESS]",
		Short: "Print what a process of a machine, or its boot, has logged",
		Long: `logs prints the log of a process, also of one that has ended and of a machine that is off: all that is
kept, or the last lines. PROCESS is boot or a static pod; without it, boot is shown while the machine
boots, and then kube-apiserver.`,
		Args:              nameArgs(1),
		ValidArgsFunction: completeProcesses(g),
		RunE: func(c *cobra.Command, args []string) error {
			if t.lines < allLines {
				return exit.Errorf(exit.Usage, "--tail %d is no number of lines; see: %s --help", t.lines, c.CommandPath())
			}
			these, err := readMachines(c.Context(), g)
			if err != nil {
				return err
			}
			m, err := these.find(g, args[0])
			if err != nil {
				return err
			}
			name := m.defaultLog()
			if len(args) > 1 {
				name = args[1]
			}
			if t.path, err = m.logFile(name); err != nil {
				return err
			}
			err = t.copy(c.Context(), c.OutOrStdout())
			if errors.Is(err, fs.ErrNotExist) {
				_, err = fmt.Fprintf(c.ErrOrStderr(), "%s of machine %s has logged nothing yet.\n", name, m.Name)
			}
			return err
		},
	}
	c.Flags().BoolVarP(&t.follow, "follow", "f", false, "go on with what is added, until interrupted")
	c.Flags().IntVar(&t.lines, "tail", allLines, "how many of the last `lines` to print; -1: all that are kept")
	return c
}

// defaultLog is the one that tells most.
func (m report) defaultLog() string {
	if m.Boot.Done && slices.Contains(m.logNames(), apiLog) {
		return apiLog
	}
	return bootLog
}

// logFile is the file of the boot's log or of a process's.
func (m report) logFile(name string) (string, error) {
	names := m.logNames()
	if !slices.Contains(names, name) {
		return "", exit.Errorf(exit.Usage, "machine %s has no process %q; choose %s", m.Name, name, output.JoinOr(names))
	}
	for _, p := range m.Processes {
		if p.Name == name {
			return p.Log, nil
		}
	}
	return hostapi.MachineDir(m.Dir).LogFile(name), nil
}

// logNames are boot, the processes, and those of which only a log is left: without host, or while
// the machine is off, nobody tells about processes.
func (m report) logNames() []string {
	var names []string
	for _, p := range m.Processes {
		names = append(names, p.Name)
	}
	entries, _ := os.ReadDir(hostapi.MachineDir(m.Dir).LogDir()) // without a folder there are no further logs
	for _, e := range entries {
		if name, ok := strings.CutSuffix(e.Name(), ".log"); ok && e.Type().IsRegular() && name != bootLog {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return append([]string{bootLog}, slices.Compact(names)...)
}
