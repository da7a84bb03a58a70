package capi

import "testing"

func TestVersionFromLabels(t *testing.T) {
	tests := map[string]struct {
		labels map[string]string
		want   string
	}{
		"one version":                    {map[string]string{"cluster.x-k8s.io/v1beta2": "v1beta1"}, "v1beta1"},
		"the newest of several":          {map[string]string{"cluster.x-k8s.io/v1beta2": "v1alpha3_v1beta1_v1"}, "v1"},
		"numbers compare as numbers":     {map[string]string{"cluster.x-k8s.io/v1beta2": "v1beta10_v1beta9"}, "v1beta10"},
		"the newer contract wins":        {map[string]string{"cluster.x-k8s.io/v1beta1": "v1", "cluster.x-k8s.io/v1beta2": "v1alpha1"}, "v1alpha1"},
		"the older contract is accepted": {map[string]string{"cluster.x-k8s.io/v1beta1": "v1alpha1"}, "v1alpha1"},
		"an unknown contract is not":     {map[string]string{"cluster.x-k8s.io/v1alpha4": "v1"}, ""},
		"an empty label says nothing":    {map[string]string{"cluster.x-k8s.io/v1beta2": ""}, ""},
		"no labels":                      {nil, ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, ok := versionFromLabels(tt.labels)
			if got != tt.want || ok != (tt.want != "") {
				t.Errorf("versionFor() = %q, %v, want %q", got, ok, tt.want)
			}
		})
	}
}
