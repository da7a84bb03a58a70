// Package boot does on a local machine what cloud-init and kubeadm do on a real one: it writes
// the files of the bootstrap data and runs kubeadm's own phases, with kubeadm's own code.
//
// It runs in a process of its own, for kubeadm prints to stdout, keeps its settings in global
// variables and cannot be cancelled. The process may be killed at any moment: every step can be
// done again, and what is finished is remembered and skipped.
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
	"time"

	"github.com/polder-kaas/polder/internal/atomicfile"
	"github.com/polder-kaas/polder/internal/provider/local/hostapi"
	"github.com/polder-kaas/polder/internal/provider/local/userdata"
)

// Where Cluster API's kubeadm bootstrap provider puts kubeadm's configuration.
const (
	initFile = "/run/kubeadm/kubeadm.yaml"
	joinFile = "/run/kubeadm/kubeadm-join-config.yaml"
)

// step is one thing to do. A step that is not kept is cheap and done again at each attempt,
// because later steps need what it finds out.
type step struct {
	name string
	kept bool
	do   func(context.Context, *machine) error
}

// machine is what is known while booting.
type machine struct {
	hostapi.Machine
	dir     hostapi.MachineDir
	address netip.Addr
	data    userdata.Data
	boot    hostapi.Boot
	kubeadm kubeadm
}

// Run boots the machine in dir. It returns nil at once if that was done before.
func Run(ctx context.Context, dir hostapi.MachineDir) error {
	m, err := load(dir)
	if err != nil || m.boot.Done {
		return err
	}
	m.boot.Attempts++
	m.boot.Problem = ""
	steps, err := m.plan()
	if err == nil {
		err = m.run(ctx, steps)
	}
	m.boot.Step = ""
	if err != nil {
		m.boot.Problem = oneLine(err)
		return errors.Join(err, m.save())
	}
	m.boot.Done = true
	return m.save()
}

func load(dir hostapi.MachineDir) (*machine, error) {
	m := &machine{dir: dir}
	for file, into := range map[string]any{dir.SpecFile(): &m.Machine, dir.BootFile(): &m.boot} {
		b, err := os.ReadFile(file)
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

// plan reads the bootstrap data and says what is to be done.
func (m *machine) plan() ([]step, error) {
	var err error
	m.data, err = userdata.Parse(m.UserData, userdata.Machine{Hostname: m.Node, InstanceID: m.UID, Address: m.address.String(), Zone: m.Zone, ProviderID: m.ProviderID})
	if err != nil {
		return nil, fmt.Errorf("reading bootstrap data: %w", err)
	}
	m.notHonored()
	if b, ok := m.data.File(initFile); ok {
		return m.planInit(b)
	}
	if b, ok := m.data.File(joinFile); ok {
		return m.planJoin(b)
	}
	return nil, fmt.Errorf("reading bootstrap data: there is neither %s nor %s in them; only kubeadm can be followed here", initFile, joinFile)
}

// notHonored notes what a machine that is only processes cannot do.
func (m *machine) notHonored() {
	m.boot.Commands = nil
	for _, c := range m.data.Commands {
		m.boot.Commands = append(m.boot.Commands, c.Line)
		if !strings.HasPrefix(c.Line, "kubeadm ") {
			m.cannot("%s: %s", c.Module, c.Line)
		}
	}
	for _, module := range m.data.Ignored {
		m.cannot("%s", module)
	}
}

func (m *machine) cannot(format string, args ...any) {
	m.boot.NotHonored = once(m.boot.NotHonored, fmt.Sprintf(format, args...))
}

func (m *machine) note(format string, args ...any) {
	m.boot.Notes = once(m.boot.Notes, fmt.Sprintf(format, args...))
}

// once adds what an earlier attempt has not found out already.
func once(all []string, text string) []string {
	if slices.Contains(all, text) {
		return all
	}
	return append(all, text)
}

func (m *machine) run(ctx context.Context, steps []step) error {
	done := map[string]bool{}
	for _, s := range m.boot.Steps {
		done[s.Name] = true
	}
	for _, s := range steps {
		if done[s.name] && s.kept {
			continue
		}
		m.boot.Step = s.name
		if err := m.save(); err != nil {
			return err
		}
		begin := time.Now()
		if err := s.do(ctx, m); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
		if !done[s.name] {
			m.boot.Steps = append(m.boot.Steps, hostapi.Step{Name: s.name, Took: time.Since(begin)})
		}
		if err := errors.Join(m.save(), interrupt(m.dir, s.name)); err != nil {
			return err
		}
	}
	return nil
}

func (m *machine) save() error { return writeJSON(m.dir.BootFile(), m.boot) }

func writeJSON(file string, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return atomicfile.Write(file, b, 0o600)
}

func writeFiles(_ context.Context, m *machine) error {
	if err := os.MkdirAll(m.dir.Files(), 0o700); err != nil {
		return err
	}
	root, err := os.OpenRoot(m.dir.Files())
	if err != nil {
		return err
	}
	defer root.Close() //nolint:errcheck // read only
	notes, err := m.data.Write(root)
	for _, n := range notes {
		m.note("%s", n)
	}
	return err
}

func oneLine(err error) string { return strings.Join(strings.Fields(err.Error()), " ") }
