package instant

import (
	"context"
	"errors"
	"fmt"
	"net/netip"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// clusterReconciler gives each cluster an address at which its API answers.
type clusterReconciler struct{ reconcilerBase }

// Reconcile fulfils the contract of an infrastructure cluster.
func (r *clusterReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	s, gone, err := r.gather(ctx, clusterKind, req.NamespacedName)
	if gone {
		r.world.DeleteCluster(req.NamespacedName)
	}
	if s == nil {
		return ctrl.Result{}, err
	}
	previous, err := s.assignedAddress()
	if err != nil {
		return ctrl.Result{}, err
	}
	at, err := r.world.Endpoint(ctx, req.NamespacedName, previous)
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("giving cluster %s an address: %w", s.cluster.Name, err)
	}
	if err := r.ensureServing(ctx, s, at); err != nil {
		return ctrl.Result{}, err
	}
	before := s.object.DeepCopy()
	var domains []any
	for _, z := range zones() {
		domains = append(domains, map[string]any{"name": z, "controlPlane": true})
	}
	err = errors.Join(
		s.setField(map[string]any{"host": at.Addr().String(), "port": int64(at.Port())}, "spec", "controlPlaneEndpoint"),
		s.setField(true, "status", "initialization", "provisioned"),
		s.setField(domains, "status", "failureDomains"),
	)
	if err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{}, r.patchIfChanged(ctx, before, s.object)
}

// ensureServing makes the cluster's API answer, and writes Secrets that say how it is reached. Cluster API would have
// the control plane do so; but it looks for them once a cluster has its infrastructure, and if they are not there, not
// again for a while. Once a cluster answers, nothing is looked at again.
func (r *clusterReconciler) ensureServing(ctx context.Context, s *scope, at netip.AddrPort) error {
	name := client.ObjectKeyFromObject(s.object)
	if r.world.IsServing(name) {
		return nil
	}
	ca, err := r.ensureAuthority(ctx, s)
	if err != nil {
		return err
	}
	if err := errors.Join(r.ensureKubeconfig(ctx, s, ca, at), r.ensureBootstrapData(ctx, s)); err != nil {
		return fmt.Errorf("writing the Secrets of cluster %s: %w", s.cluster.Name, err)
	}
	return r.world.Serve(name, ca)
}

// assignedAddress is the address that the cluster was given before; zero if it has none.
func (s *scope) assignedAddress() (netip.Addr, error) {
	host, _, err := unstructured.NestedString(s.object.Object, "spec", "controlPlaneEndpoint", "host")
	if err != nil || host == "" {
		return netip.Addr{}, err
	}
	return netip.ParseAddr(host)
}

// patchIfChanged patches an object if it has changed.
func (b reconcilerBase) patchIfChanged(ctx context.Context, before, o *unstructured.Unstructured) error {
	patch := client.MergeFrom(before)
	if data, err := patch.Data(o); err != nil || string(data) == "{}" {
		return err
	}
	return client.IgnoreNotFound(b.client.Patch(ctx, o, patch))
}
