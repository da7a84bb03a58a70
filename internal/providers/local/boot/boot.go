// Package boot does on a local machine what cloud-init and kubeadm do on a real one: it writes
// the files of the bootstrap data and runs kubeadm's own phases, with kubeadm's own code.
//
// It runs in a process of its own, for kubeadm prints to stdout, keeps its settings in global
// variables and cannot be cancelled. The process may be killed at any moment: every step can be
// done again, and what is finished is recorded and skipped.
package boot

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strings"

	"k8s.io/utils/clock"

	"github.com/polder-kaas/polder/internal/files/atomicfile"
	"github.com/polder-kaas/polder/internal/providers/local/allowance"
	"github.com/polder-kaas/polder/internal/providers/local/hostapi"
	"github.com/polder-kaas/polder/internal/providers/local/userdata"
)

// Where Cluster API's kubeadm bootstrap provider puts kubeadm's configuration.
const (
	initFile = "/run/kubeadm/kubeadm.yaml"
	joinFile = "/run/kubeadm/kubeadm-join-config.yaml"
)

// step is one thing to do. A step without runOnce is cheap and done again at each attempt, because later steps need
// what it finds out.
type step struct {
	name    string
	runOnce bool
	run     func(context.Context, *machine) error
}

// machine is what is known while booting.
type machine struct {
	hostapi.MachineSpec
	dir     hostapi.MachineDir
	address netip.Addr
	data    userdata.Data
	status  hostapi.BootStatus
	kubeadm kubeadmState
	clock   clock.PassiveClock
	// allowEverything is set by tests only; see allowance.
	allowEverything bool
	cluster         hostapi.Cluster
}

// Run boots the machine in dir. It returns nil at once if that was done before.
func Run(ctx context.Context, dir hostapi.MachineDir) error {
	m, err := loadMachine(dir)
	if err != nil || m.status.Done {
		return err
	}
	m.status.Attempts++
	m.status.Problem = ""
	steps, err := m.planSteps()
	if err == nil {
		err = m.runSteps(ctx, steps)
	}
	m.status.Step = ""
	if err != nil {
		m.status.Problem = oneLine(err)
		return errors.Join(err, m.saveStatus())
	}
	m.status.Done = true
	return m.saveStatus()
}

func loadMachine(dir hostapi.MachineDir) (*machine, error) {
	m := &machine{dir: dir, clock: clock.RealClock{}, allowEverything: allowance.IsEverythingAllowed(dir)}
	for file, into := range map[string]any{
		dir.SpecFile(): &m.MachineSpec, dir.BootFile(): &m.status, dir.ClusterFile(): &m.cluster,
	} {
		b, err := os.ReadFile(file)
		// Before the first attempt there is no boot status.
		if errors.Is(err, os.ErrNotExist) && file == dir.BootFile() {
			continue
		}
		if err != nil {
			return nil, err
		}
		if err := json.Unmarshal(b, into); err != nil {
			return nil, fmt.Errorf("reading %s: %w", file, err)
		}
	}
	b, err := os.ReadFile(dir.AddressFile())
	if err != nil {
		return nil, err
	}
	m.address, err = netip.ParseAddr(strings.TrimSpace(string(b)))
	return m, err
}

// planSteps reads the bootstrap data and says what is to be done.
func (m *machine) planSteps() ([]step, error) {
	var err error
	m.data, err = userdata.Parse(m.UserData, userdata.Metadata{
		Hostname: m.Node, InstanceID: m.UID, Address: m.address.String(), Zone: m.Zone, ProviderID: m.ProviderID,
	})
	if err != nil {
		return nil, fmt.Errorf("reading bootstrap data: %w", err)
	}
	m.recordIgnoredUserData()
	if err := m.checkFiles(); err != nil {
		return nil, err
	}
	if b, ok := m.data.FileContent(initFile); ok {
		return m.planInit(b)
	}
	if b, ok := m.data.FileContent(joinFile); ok {
		return m.planJoin(b)
	}
	return nil, fmt.Errorf("reading bootstrap data: there is neither %s nor %s in them; only kubeadm can be followed here",
		initFile, joinFile)
}

// recordIgnoredUserData records what a machine that is only processes cannot do: commands other than kubeadm's, and
// modules that are not supported.
func (m *machine) recordIgnoredUserData() {
	m.status.Commands = nil
	for _, c := range m.data.Commands {
		m.status.Commands = append(m.status.Commands, c.Line)
		if !strings.HasPrefix(c.Line, "kubeadm ") {
			m.recordNotHonored("%s: %s", c.Module, c.Line)
		}
	}
	for _, module := range m.data.Ignored {
		m.recordNotHonored("%s", module)
	}
}

func (m *machine) recordNotHonored(format string, args ...any) {
	m.status.NotHonored = appendUnique(m.status.NotHonored, fmt.Sprintf(format, args...))
}

func (m *machine) recordNote(format string, args ...any) {
	m.status.Notes = appendUnique(m.status.Notes, fmt.Sprintf(format, args...))
}

// appendUnique appends text unless an earlier attempt has recorded it already.
func appendUnique(all []string, text string) []string {
	if slices.Contains(all, text) {
		return all
	}
	return append(all, text)
}

func (m *machine) runSteps(ctx context.Context, steps []step) error {
	done := map[string]bool{}
	for _, s := range m.status.Steps {
		done[s.Name] = true
	}
	for _, s := range steps {
		if done[s.name] && s.runOnce {
			continue
		}
		// Saved before the step, so that the status names the step at work. That it is done is saved only afterwards: a
		// process that is killed in between does it again.
		m.status.Step = s.name
		if err := m.saveStatus(); err != nil {
			return err
		}
		begin := m.clock.Now()
		if err := s.run(ctx, m); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
		if !done[s.name] {
			m.status.Steps = append(m.status.Steps, hostapi.BootStep{Name: s.name, Took: m.clock.Since(begin)})
		}
		if err := errors.Join(m.saveStatus(), injectCrash(m.dir, s.name)); err != nil {
			return err
		}
	}
	return nil
}

func (m *machine) saveStatus() error { return writeJSON(m.dir.BootFile(), m.status) }

func writeJSON(file string, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return atomicfile.Write(file, b, 0o600)
}

func writeFiles(_ context.Context, m *machine) error {
	if err := os.MkdirAll(m.dir.RootFS(), 0o700); err != nil {
		return err
	}
	root, err := os.OpenRoot(m.dir.RootFS())
	if err != nil {
		return err
	}
	defer root.Close() //nolint:errcheck // read only
	notes, err := m.data.Write(root)
	for _, n := range notes {
		m.recordNote("%s", n)
	}
	return err
}

func oneLine(err error) string { return strings.Join(strings.Fields(err.Error()), " ") }
