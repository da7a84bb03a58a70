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

// clusters gives each cluster an address, where its API answers.
type clusters struct{ base }

// Reconcile fulfils the contract of an infrastructure cluster.
func (r *clusters) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	s, gone, err := r.gather(ctx, clusterKind, req.NamespacedName)
	if gone {
		r.world.Forget(req.NamespacedName)
	}
	if s == nil {
		return ctrl.Result{}, err
	}
	had, err := s.address()
	if err != nil {
		return ctrl.Result{}, err
	}
	at, err := r.world.Endpoint(ctx, req.NamespacedName, had)
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("giving cluster %s an address: %w", s.cluster.Name, err)
	}
	if err := r.answer(ctx, s, at); err != nil {
		return ctrl.Result{}, err
	}
	before := s.object.DeepCopy()
	var domains []any
	for _, z := range zones() {
		domains = append(domains, map[string]any{"name": z, "controlPlane": true})
	}
	err = errors.Join(
		s.set(map[string]any{"host": at.Addr().String(), "port": int64(at.Port())}, "spec", "controlPlaneEndpoint"),
		s.set(true, "status", "initialization", "provisioned"),
		s.set(domains, "status", "failureDomains"),
	)
	if err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{}, r.write(ctx, before, s.object)
}

// answer lets the cluster's API answer, and keeps in Secrets how it is reached. Cluster API would have the control
// plane do so; but it looks for them once a cluster has its infrastructure, and if they are not there, not again for
// a while. Once a cluster answers, nothing is looked at again.
func (r *clusters) answer(ctx context.Context, s *scope, at netip.AddrPort) error {
	name := client.ObjectKeyFromObject(s.object)
	if r.world.Serves(name) {
		return nil
	}
	ca, err := r.authority(ctx, s)
	if err != nil {
		return err
	}
	if err := errors.Join(r.kubeconfig(ctx, s, ca, at), r.bootstrap(ctx, s)); err != nil {
		return fmt.Errorf("writing the Secrets of cluster %s: %w", s.cluster.Name, err)
	}
	return r.world.Serve(name, ca)
}

// address is the one that the cluster has been given before.
func (s *scope) address() (netip.Addr, error) {
	host, _, err := unstructured.NestedString(s.object.Object, "spec", "controlPlaneEndpoint", "host")
	if err != nil || host == "" {
		return netip.Addr{}, err
	}
	return netip.ParseAddr(host)
}

// write writes what has changed of an object.
func (b base) write(ctx context.Context, before, o *unstructured.Unstructured) error {
	patch := client.MergeFrom(before)
	if data, err := patch.Data(o); err != nil || string(data) == "{}" {
		return err
	}
	return client.IgnoreNotFound(b.client.Patch(ctx, o, patch))
}
