package clusteraddon

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	csv1 "github.com/polder-kaas/polder/api/clusterstack/v1alpha1"
	"github.com/polder-kaas/polder/internal/apierror"
	"github.com/polder-kaas/polder/internal/reconcile"
	"github.com/polder-kaas/polder/internal/reconcile/fairness"
	"github.com/polder-kaas/polder/stack"
	"github.com/polder-kaas/polder/stack/render"
)

// connectCluster waits for the control plane and connects to it. It follows the Cluster's status and not the runtime
// hook AfterControlPlaneInitialized, which Cluster API calls only once.
func (r *Reconciler) connectCluster(ctx context.Context, s *scope) error {
	if !ptr.Deref(s.cluster.Status.Initialization.ControlPlaneInitialized, false) {
		s.conditions.SetFalse(csv1.ConditionClusterReady, csv1.ReasonNotInitialized, "the control plane is not initialized yet")
		return reconcile.Wait(0, "the control plane") // the watch of Clusters reports it
	}
	// From here on the run talks to the workload cluster, which may be slow: one namespace must not take all workers.
	done, err := r.Limiter.Acquire(ctx, s.cluster.Namespace)
	if errors.Is(err, fairness.ErrBusy) {
		// Nothing new is known of the cluster, so its conditions stay.
		return reconcile.Wait(wait.Jitter(retryDelay, 1), "%v", err)
	}
	if err != nil {
		return err
	}
	s.freeSlot = done
	w, err := r.Workload.Get(ctx, client.ObjectKeyFromObject(s.cluster))
	if err != nil {
		s.conditions.SetFalse(csv1.ConditionClusterReady, csv1.ReasonUnreachable, err.Error())
		return err
	}
	s.workload = w
	return nil
}

// recordKey is the key of the record in the Secret of a cluster's add-ons.
const recordKey = "record"

// ensureRecord returns what charts of this cluster get in place of randomness and time. It is created once, before
// anything is rendered, and is in a Secret, since passwords and keys are derived from it.
func (r *Reconciler) ensureRecord(ctx context.Context, s *scope) (render.Record, error) {
	secret := &corev1.Secret{}
	key := client.ObjectKeyFromObject(s.addon)
	// A read from a cache that is behind would take a record for missing.
	err := r.Live.Get(ctx, key, secret)
	if apierror.IsObjectNotFound(err, "secrets", key.Name) {
		return r.createRecord(ctx, s)
	}
	if err != nil {
		return render.Record{}, err
	}
	var rec render.Record
	if err := json.Unmarshal(secret.Data[recordKey], &rec); err != nil || len(rec.Seed) == 0 {
		return rec, fmt.Errorf("the key %s of Secret %s cannot be read; restore it, or delete the Secret to have all generated passwords and certificates made anew", recordKey, key)
	}
	return rec, nil
}

// needsCertificateRenewal reports whether two thirds of the life of a certificate are over.
func needsCertificateRenewal(rec render.Record, all []stack.RenderedStage, now time.Time) bool {
	begin := rec.Time
	if rec.Renewed.After(begin) {
		begin = rec.Renewed
	}
	for _, st := range all {
		if st.Expires != nil && now.After(begin.Add(st.Expires.Sub(begin)/3*2)) {
			return true
		}
	}
	return false
}

// renewCertificates issues all certificates of the cluster's charts again. Keys and passwords stay.
func (r *Reconciler) renewCertificates(ctx context.Context, s *scope, rec render.Record) (render.Record, error) {
	secret := &corev1.Secret{}
	if err := r.Live.Get(ctx, client.ObjectKeyFromObject(s.addon), secret); err != nil {
		return rec, err
	}
	rec.Renewed = r.Clock.Now().UTC().Truncate(time.Second)
	b, err := json.Marshal(rec)
	if err != nil {
		return rec, err
	}
	// The update carries the version that was read: a record that was restored in between is not overwritten.
	secret.Data[recordKey] = b
	return rec, r.Live.Update(ctx, secret)
}

// createRecord creates the record. If another run was faster, the create fails and the next run reads that record.
func (r *Reconciler) createRecord(ctx context.Context, s *scope) (render.Record, error) {
	rec, err := render.NewRecord(rand.Reader, r.Clock.Now())
	if err != nil {
		return rec, err
	}
	b, err := json.Marshal(rec)
	if err != nil {
		return rec, err
	}
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: s.addon.Namespace, Name: s.addon.Name, OwnerReferences: []metav1.OwnerReference{ownerReferenceTo(s.cluster)},
			Labels: map[string]string{clusterv1.ClusterNameLabel: s.cluster.Name},
		},
		Type: "clusterstack.x-k8s.io/addon-record",
		Data: map[string][]byte{recordKey: b},
	}
	return rec, r.Live.Create(ctx, secret)
}
