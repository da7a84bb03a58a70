package cluster

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"github.com/polder-kaas/polder/api/v1alpha1"
	"github.com/polder-kaas/polder/internal/cli/output"
	"github.com/polder-kaas/polder/internal/program/exit"
	"github.com/polder-kaas/polder/stack/version"
)

// defaultPool is the pool of those who do not name any.
const defaultPool = "default"

// specFlags describe a cluster in a few words; whoever needs more writes a file.
type specFlags struct {
	provider, stack, kubernetes, channel, version string
	controlPlanes, workers                        int32
	controlPlaneType, workerType                  string
	pools, parameters                             []string
}

// addFlags adds one flag for each field that people set often; the rest of a spec takes a file.
func (s *specFlags) addFlags(c *cobra.Command) {
	f := c.Flags()
	f.StringVar(&s.provider, "provider", "",
		"`name` of the provider; may be left out where there is only one; with -f, makes the file's cluster there")
	f.StringVar(&s.stack, "stack", "", "`name` of the stack; polder stacks shows them")
	f.StringVar(&s.kubernetes, "kubernetes", "",
		"`minor` of Kubernetes, for example 1.37 (default: the newest of the stack)")
	f.StringVar(&s.channel, "channel", "", "`channel` of releases: stable or custom (default: stable)")
	f.StringVar(&s.version, "version", "",
		"`version` of the stack to stay at, for example v3 (default: follow the newest)")
	f.Int32Var(&s.controlPlanes, "control-planes", 1, "`number` of machines of the control plane: 1, 3 or 5")
	f.StringVar(&s.controlPlaneType, "control-plane-type", "", "machine `type` of the control plane, for example SCS-2V-4")
	f.Int32Var(&s.workers, "workers", 1, "`number` of machines of the pool "+defaultPool)
	f.StringVar(&s.workerType, "worker-type", "", "machine `type` of the pool "+defaultPool)
	f.StringArrayVar(&s.pools, "pool", nil, "a pool of workers, `NAME=COUNT[:TYPE]`; may be repeated")
	f.StringArrayVar(&s.parameters, "set", nil,
		"a parameter of the stack, `KEY=VALUE`, where VALUE is YAML; may be repeated")
}

// flagsExcludedByFile are flags that say what a file says already.
var flagsExcludedByFile = []string{
	"stack", "kubernetes", "channel", "version", "control-planes", "control-plane-type", "workers", "worker-type", "pool",
	"set",
}

// buildSpec is the cluster that the flags describe. given says which of them were.
func (s *specFlags) buildSpec(given func(flag string) bool) (v1alpha1.WorkloadClusterSpec, error) {
	spec := v1alpha1.WorkloadClusterSpec{Provider: s.provider}
	if s.stack == "" {
		return spec, exit.Errorf(exit.Usage,
			"say what to make the cluster of, with --stack NAME or -f FILE; see which stacks there are with: polder stacks")
	}
	var err error
	if spec.Stack, err = s.stackReference(); err != nil {
		return spec, err
	}
	if !slices.Contains([]int32{1, 3, 5}, s.controlPlanes) {
		return spec, exit.Errorf(exit.Usage, "--control-planes %d is not possible; choose 1, 3 or 5", s.controlPlanes)
	}
	spec.ControlPlane.Replicas, spec.ControlPlane.MachineType = &s.controlPlanes, s.controlPlaneType
	if spec.Workers, err = s.workerPools(given); err != nil {
		return spec, err
	}
	spec.Parameters, err = parseParameters(s.parameters)
	return spec, err
}

// stackReference checks what can be checked without the plane; which stacks there are is for admission to say, with
// advice.
func (s *specFlags) stackReference() (v1alpha1.StackReference, error) {
	r := v1alpha1.StackReference{Name: s.stack, Channel: v1alpha1.Channel(s.channel), Version: s.version}
	if s.channel != "" && r.Channel != v1alpha1.ChannelStable && r.Channel != v1alpha1.ChannelCustom {
		return r, exit.Errorf(exit.Usage, "there is no channel %q; choose stable or custom", s.channel)
	}
	var err error
	r.KubernetesVersion, err = parseMinor(s.kubernetes)
	return r, err
}

// parseMinor takes also what other programs print: v1.37 and v1.36.2, of which the patch comes with the release.
func parseMinor(text string) (string, error) {
	if text == "" {
		return "", nil
	}
	k, err := version.ParseKubernetes(text)
	switch {
	case err != nil:
		return "", exit.Errorf(exit.Usage, "--kubernetes %q is no minor of Kubernetes; write, for example, 1.37", text)
	case k.HasPatch():
		return "", exit.Errorf(exit.Usage,
			"--kubernetes takes the minor, %s; the patch comes with the stack's release, which --version pins", k.MinorString())
	}
	return k.MinorString(), nil
}

// workerPools has the default pool unless others are named: who gives both --workers and --pool wants both.
func (s *specFlags) workerPools(given func(flag string) bool) ([]v1alpha1.WorkerPool, error) {
	var pools []v1alpha1.WorkerPool
	if len(s.pools) == 0 || given("workers") || given("worker-type") {
		if s.workers < 0 {
			return nil, exit.Errorf(exit.Usage, "--workers %d is no number of machines", s.workers)
		}
		p := v1alpha1.WorkerPool{Name: defaultPool, Replicas: &s.workers}
		p.MachineType = s.workerType
		pools = append(pools, p)
	}
	for _, text := range s.pools {
		p, err := parsePool(text)
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(pools, func(o v1alpha1.WorkerPool) bool { return o.Name == p.Name }) {
			return nil, exit.Errorf(exit.Usage, "there are two pools %q; give each a name of its own", p.Name)
		}
		pools = append(pools, p)
	}
	return pools, nil
}

// parsePool reads NAME=COUNT[:TYPE].
func parsePool(text string) (p v1alpha1.WorkerPool, err error) {
	name, rest, found := strings.Cut(text, "=")
	count, kind, typed := strings.Cut(rest, ":")
	n, bad := strconv.ParseUint(count, 10, 31)
	if !found || name == "" || bad != nil || typed && kind == "" {
		return p, exit.Errorf(exit.Usage,
			"--pool %q is no pool; write NAME=COUNT or NAME=COUNT:TYPE, for example a=3:SCS-4V-16", text)
	}
	replicas := int32(n)
	p.Name, p.Replicas, p.MachineType = name, &replicas, kind
	return p, nil
}

// parseParameters reads KEY=VALUE, where VALUE is YAML: 3 is a number, "3" and three are texts, {a: b} is a map.
func parseParameters(texts []string) (map[string]apiextensionsv1.JSON, error) {
	var all map[string]apiextensionsv1.JSON
	for _, text := range texts {
		key, value, found := strings.Cut(text, "=")
		if !found || key == "" {
			return nil, exit.Errorf(exit.Usage, "--set %q is no parameter; write KEY=VALUE", text)
		}
		if _, twice := all[key]; twice {
			return nil, exit.Errorf(exit.Usage, "--set gives %q twice; give it once", key)
		}
		b, err := yaml.YAMLToJSON([]byte(value))
		if err != nil || !json.Valid(b) {
			return nil, exit.Errorf(exit.Usage, "--set %s: %q is no YAML: %s", key, value,
				strings.TrimPrefix(output.Sanitize(fmt.Sprint(err)), "yaml: "))
		}
		if all == nil {
			all = map[string]apiextensionsv1.JSON{}
		}
		if value == "" {
			b = []byte(`""`) // nothing is a text, as in a shell
		}
		all[key] = apiextensionsv1.JSON{Raw: b}
	}
	return all, nil
}

// describeMachineSelection is a choice of machines in a few words.
func describeMachineSelection(m v1alpha1.MachineSelection) string {
	if m.Machine == nil {
		return cmp.Or(m.MachineType, "the provider's default")
	}
	text := fmt.Sprintf("a machine of at least %d CPUs and %s", m.Machine.CPU, m.Machine.Memory.String())
	if m.Machine.Disk != nil {
		text += " and a disk of " + m.Machine.Disk.String()
	}
	return text
}
