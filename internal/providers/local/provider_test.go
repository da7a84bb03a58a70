package local

import (
	"strings"
	"testing"

	"github.com/polder-kaas/polder/api/v1alpha1"
	"github.com/polder-kaas/polder/provider"
)

func TestValidate(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*provider.Input)
		want   []string
	}{
		"nothing is said":    {func(*provider.Input) {}, nil},
		"IPv4":               {withRanges([]string{"10.0.0.0/16"}, []string{"10.96.0.0/16"}), nil},
		"both families":      {withRanges([]string{"fd00::/56", "10.0.0.0/16"}, []string{"fd01::/112", "10.96.0.0/16"}), nil},
		"IPv6 alone":         {withRanges([]string{"fd00::/56"}, []string{"fd01::/112"}), []string{"spec.network.podCIDRs", "spec.network.serviceCIDRs"}},
		"services of IPv6":   {withRanges([]string{"fd00::/56", "10.0.0.0/16"}, []string{"fd01::/112"}), []string{"spec.network.serviceCIDRs"}},
		"what is no range":   {withRanges([]string{"x"}, []string{"y"}), nil}, // said by others
		"a version of old":   {func(in *provider.Input) { in.Release.Kubernetes = "v1.20.0" }, []string{"spec.stack.kubernetesVersion"}},
		"it is made already": {func(in *provider.Input) { in.Cluster.Status.ClusterUID = "uid" }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			in := provider.Input{Cluster: &v1alpha1.WorkloadCluster{}, Release: provider.Release{Kubernetes: "v1.37.1"}}
			c.change(&in)
			errs := Provider{Kubernetes: "v1.37.1"}.Validate(t.Context(), in)
			var got []string
			for _, e := range errs {
				got = append(got, e.Field)
			}
			for _, field := range c.want {
				if !strings.Contains(strings.Join(got, " "), field) {
					t.Errorf("%v, want %v", errs, c.want)
				}
			}
			if len(got) != len(c.want) {
				t.Errorf("%v, want %v", errs, c.want)
			}
		})
	}
}

// A data directory that is not there cannot be looked at, which refuses nobody.
func TestRoomOfNothing(t *testing.T) {
	p := Provider{Kubernetes: "v1.37.1", DataDir: t.TempDir() + "/none"}
	if err := p.checkRoom(&v1alpha1.WorkloadCluster{}); err != nil {
		t.Error(err)
	}
}

func withRanges(pods, services []string) func(*provider.Input) {
	return func(in *provider.Input) {
		in.Cluster.Spec.Network = v1alpha1.Network{PodCIDRs: pods, ServiceCIDRs: services}
	}
}
