package plane

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1beta1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/polder-kaas/polder/test/testenv"
)

const wait = 2 * time.Minute

func TestTopologyCluster(t *testing.T) {
	p := shared.Get(t)
	c := p.Client(t)
	ns := p.CreateNamespace(t)
	testenv.InstallStubClass(t, c, ns)

	if err := c.Create(t.Context(), testenv.StubCluster(t, ns, "good")); err != nil {
		t.Fatal(err)
	}
	key := client.ObjectKey{Namespace: ns, Name: "good"}
	cluster := &clusterv1.Cluster{}
	if err := c.Get(t.Context(), key, cluster); err != nil {
		t.Fatal(err)
	}

	t.Run("is defaulted", func(t *testing.T) {
		if got := cluster.Spec.Topology.Version; got != "v1.36.0" {
			t.Errorf("version is %q, want v1.36.0", got)
		}
		want := []clusterv1.ClusterVariable{{Name: "auditLogMaxAge"}}
		want[0].Value.Raw = []byte("30")
		if diff := cmp.Diff(want, cluster.Spec.Topology.Variables); diff != "" {
			t.Errorf("variables (-want +got):\n%s", diff)
		}
	})

	t.Run("yields control plane and machine deployments with its class's patches", func(t *testing.T) {
		testenv.Eventually(t, wait, func() error { return hasChildren(t, c, ns, "good") })
	})

	t.Run("reads the same as v1beta1", func(t *testing.T) {
		old := &clusterv1beta1.Cluster{}
		if err := c.Get(t.Context(), key, old); err != nil {
			t.Fatal(err)
		}
		if old.UID != cluster.UID || old.Spec.Topology.Class != "stub" || old.Spec.Topology.Version != "v1.36.0" {
			t.Errorf("v1beta1 reads class %q, version %q, UID %s", old.Spec.Topology.Class, old.Spec.Topology.Version, old.UID)
		}
		if got := len(old.Spec.Topology.Workers.MachineDeployments); got != 1 {
			t.Errorf("v1beta1 reads %d machine deployments, want 1", got)
		}
	})

	t.Run("references get their version back in v1beta1", func(t *testing.T) {
		old := &clusterv1beta1.Cluster{}
		testenv.Eventually(t, wait, func() error {
			if err := c.Get(t.Context(), key, old); err != nil {
				return err
			}
			if old.Spec.InfrastructureRef == nil {
				return fmt.Errorf("no reference to the infrastructure yet")
			}
			return nil
		})
		if got := old.Spec.InfrastructureRef.APIVersion; got != "infrastructure.cluster.x-k8s.io/v1beta1" {
			t.Errorf("infrastructureRef.apiVersion is %q", got)
		}
	})
}

func hasChildren(t *testing.T, c client.Client, ns, name string) error {
	kcps := &controlplanev1.KubeadmControlPlaneList{}
	if err := c.List(t.Context(), kcps, client.InNamespace(ns), client.MatchingLabels{clusterv1.ClusterNameLabel: name}); err != nil {
		return err
	}
	mds := &clusterv1.MachineDeploymentList{}
	if err := c.List(t.Context(), mds, client.InNamespace(ns), client.MatchingLabels{clusterv1.ClusterNameLabel: name}); err != nil {
		return err
	}
	if len(kcps.Items) != 1 || len(mds.Items) != 1 {
		return fmt.Errorf("found %d control planes and %d machine deployments, want one each", len(kcps.Items), len(mds.Items))
	}
	args := fmt.Sprint(kcps.Items[0].Spec.KubeadmConfigSpec.ClusterConfiguration.APIServer.ExtraArgs)
	if !strings.Contains(args, "audit-log-maxage") {
		return fmt.Errorf("the control plane lacks the class's patch: %s", args)
	}
	return nil
}

func TestWrongClusterIsRefusedWithClusterAPIsWords(t *testing.T) {
	p := shared.Get(t)
	c := p.Client(t)
	ns := p.CreateNamespace(t)
	testenv.InstallStubClass(t, c, ns)

	tests := map[string]struct {
		path  []string
		value any
		want  string
	}{
		"variable out of range": {[]string{"spec", "topology", "variables"}, []any{map[string]any{"name": "auditLogMaxAge", "value": int64(0)}},
			"should be greater than or equal to 1"},
		"unknown variable":  {[]string{"spec", "topology", "variables"}, []any{map[string]any{"name": "nope", "value": int64(1)}}, "variable is not defined"},
		"no version at all": {[]string{"spec", "topology", "version"}, "yesterday", "version must be a valid semantic version"},
		"unknown worker class": {[]string{"spec", "topology", "workers", "machineDeployments"},
			[]any{map[string]any{"class": "nope", "name": "a"}}, `MachineDeploymentClass with name "nope" does not exist`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			u := testenv.StubCluster(t, ns, "wrong")
			if err := unstructured.SetNestedField(u.Object, tt.value, tt.path...); err != nil {
				t.Fatal(err)
			}
			err := c.Create(t.Context(), u)
			if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want a refusal with %q", err, tt.want)
			}
		})
	}
}
