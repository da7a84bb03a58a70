package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	csv1 "github.com/polder-kaas/polder/api/clusterstack/v1alpha1"
	"github.com/polder-kaas/polder/api/v1alpha1"
	"github.com/polder-kaas/polder/internal/cli/connect"
	"github.com/polder-kaas/polder/internal/cli/objects"
	"github.com/polder-kaas/polder/internal/cli/output"
	"github.com/polder-kaas/polder/internal/program/exit"
	"github.com/polder-kaas/polder/internal/suggest"
	"github.com/polder-kaas/polder/stack/params"
)

// shownStack is one stack with the parameters of its newest release, as programs read it.
type shownStack struct {
	Provider   string           `json:"provider"`
	Stack      string           `json:"stack"`
	Kubernetes string           `json:"kubernetes"`
	Release    string           `json:"release"`
	Parameters []csv1.Parameter `json:"parameters"`
	// of the provider itself, whatever the stack; by the names of the providers that the stack is for
	ProviderParameters map[string][]csv1.Parameter `json:"providerParameters,omitempty"`
}

// showStack shows what clusters of a stack can choose: of its newest minor, or of another, for each provider that has
// it.
func showStack(c *cobra.Command, a *connect.Access, all []csv1.ClusterStack, name, minor string,
	out *output.Flag) error {
	chosen, err := chooseStacks(all, name, minor)
	if err != nil {
		return err
	}
	providers, err := listProviders(a, c)
	if err != nil {
		return err
	}
	shown := []shownStack{}
	for _, s := range chosen {
		one, err := readStack(c.Context(), a, s)
		if err != nil {
			return err
		}
		one.ProviderParameters = listProviderParameters(providers, s.Spec.Provider)
		shown = append(shown, one)
	}
	switch {
	case out.Format == output.FormatName:
		for _, s := range shown {
			fmt.Fprintf(c.OutOrStdout(), "clusterstackrelease/%s\n", s.Release)
		}
		return nil
	case !out.IsHumanReadable():
		return out.Print(c.OutOrStdout(), shown)
	}
	for i, s := range shown {
		if i > 0 {
			fmt.Fprintln(c.OutOrStdout())
		}
		if err := printStackParameters(c.OutOrStdout(), s); err != nil {
			return err
		}
	}
	return nil
}

// chooseStacks returns one stack for each provider: the one with the newest minor that has a release.
func chooseStacks(all []csv1.ClusterStack, name, minor string) ([]csv1.ClusterStack, error) {
	var names, minors []string
	newest := map[string]csv1.ClusterStack{} // they come ordered by minor
	for _, s := range all {
		names = append(names, s.Spec.Name)
		if s.Spec.Name != name {
			continue
		}
		minors = append(minors, s.Spec.KubernetesVersion)
		if s.Status.LatestRelease != nil && (minor == "" || s.Spec.KubernetesVersion == minor) {
			newest[s.Spec.Provider] = s
		}
	}
	slices.Sort(names)
	switch {
	case len(minors) == 0 && len(names) == 0:
		return nil, exit.Errorf(exit.Usage, "there is no stack %q, and no other", name)
	case len(minors) == 0:
		names = slices.Compact(names)
		return nil, exit.Errorf(exit.Usage, "there is no stack %q; choose from: %s%s", name, strings.Join(names, ", "),
			suggest.Hint(name, names))
	case len(newest) == 0 && minor != "" && !slices.Contains(minors, minor):
		return nil, exit.Errorf(exit.Usage, "stack %s is not there for Kubernetes %s; choose from: %s", name, minor,
			strings.Join(slices.Compact(minors), ", "))
	case len(newest) == 0:
		return nil, fmt.Errorf("stack %s has no release yet; why, says: polder stack status", name)
	}
	var out []csv1.ClusterStack
	for _, s := range all {
		if n, ok := newest[s.Spec.Provider]; ok && n.UID == s.UID && n.Namespace == s.Namespace && n.Name == s.Name {
			out = append(out, s)
		}
	}
	return out, nil
}

// readStack reads the newest release of a stack, which has its parameters.
func readStack(ctx context.Context, a *connect.Access, s csv1.ClusterStack) (shownStack, error) {
	name, kubernetes, _ := strings.Cut(*s.Status.LatestRelease, " | ")
	ctx, cancel := context.WithTimeout(ctx, connect.RequestTimeout)
	defer cancel()
	u, err := a.Client.Resource(csv1.GroupVersion.WithResource("clusterstackreleases")).Namespace(s.Namespace).
		Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return shownStack{}, a.Explain("reading release "+name, err)
	}
	r, err := objects.FromUnstructured[csv1.ClusterStackRelease](u)
	if err != nil {
		return shownStack{}, err
	}
	out := shownStack{
		Provider: s.Spec.Provider, Stack: s.Spec.Name, Kubernetes: kubernetes, Release: name,
		Parameters: r.Status.Parameters,
	}
	if out.Parameters == nil {
		out.Parameters = []csv1.Parameter{} // an empty list, not nothing
	}
	return out, nil
}

// listProviderParameters describes what the providers that a stack is for take themselves.
func listProviderParameters(all []v1alpha1.Provider, stackProvider string) map[string][]csv1.Parameter {
	out := map[string][]csv1.Parameter{}
	for _, p := range all {
		if p.Status.StackProvider != stackProvider || p.Status.Parameters == nil {
			continue
		}
		var schemas map[string]map[string]any
		_ = json.Unmarshal(p.Status.Parameters.Raw, &schemas) // what nobody can read has no names
		for _, name := range slices.Sorted(maps.Keys(schemas)) {
			for _, v := range params.ListSchema(name, schemas[name]) {
				out[p.Name] = append(out[p.Name], csv1.Parameter{
					Name: v.Name, Type: v.Type, Required: v.Required, Default: v.Default, Allowed: v.Allowed,
					Description: v.Description, Replaces: csv1.ReplacesUnknown,
				})
			}
		}
	}
	return out
}

func printStackParameters(w io.Writer, s shownStack) error {
	fmt.Fprintf(w, "Stack %s of provider %s, release %s, Kubernetes %s\n", output.Sanitize(s.Stack),
		output.Sanitize(s.Provider), output.Sanitize(s.Release), output.Sanitize(s.Kubernetes))
	if len(s.Parameters) == 0 {
		fmt.Fprintln(w, "It has no parameters, or the plane has not listed them yet.")
	} else {
		fmt.Fprintf(w, "Set these in spec.parameters. REPLACES names the machines that are replaced when one changes.\n"+
			"One that the provider sets from another field, such as machineType, is refused with the name of that field.\n\n")
		if err := printParameters(w, s.Parameters); err != nil {
			return err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.ProviderParameters)) {
		fmt.Fprintf(w, "\nAnd these, which provider %s takes whatever the stack:\n\n", output.Sanitize(name))
		if err := printParameters(w, s.ProviderParameters[name]); err != nil {
			return err
		}
	}
	return nil
}

func printParameters(w io.Writer, all []csv1.Parameter) error {
	rows := [][]string{{"PARAMETER", "TYPE", "DEFAULT", "ALLOWED", "REPLACES", "MEANING"}}
	for _, p := range all {
		name := p.Name
		if p.Required {
			name += " (required)"
		}
		rows = append(rows, []string{name, p.Type, p.Default, p.Allowed, describeReplaced(p.Replaces), p.Description})
	}
	return (&table{}).print(w, rows)
}

// describeReplaced says the value of the API in words.
func describeReplaced(r csv1.ReplacedMachines) string {
	switch r {
	case csv1.ReplacesNone:
		return "none"
	case csv1.ReplacesControlPlane:
		return "control plane"
	case csv1.ReplacesWorkers:
		return "workers"
	case csv1.ReplacesAll:
		return "all machines"
	case csv1.ReplacesUnknown:
		return "perhaps"
	}
	return string(r) // of a plane that is newer
}
