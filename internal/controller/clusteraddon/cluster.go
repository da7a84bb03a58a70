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

// connectCluster waits for the control plane and has access to it. The condition of the Cluster is followed,
// not Cluster API's hook, which is called only once.
func (r *Reconciler) connectCluster(ctx context.Context, s *scope) error {
	if !ptr.Deref(s.cluster.Status.Initialization.ControlPlaneInitialized, false) {
		s.setCondition(csv1.ConditionClusterReady, csv1.ReasonNotInitialized, "the control plane is not initialized yet")
		return reconcile.Wait(0, "the control plane") // a watch tells of changes
	}
	done, err := r.Limiter.Acquire(ctx, s.cluster.Namespace)
	if errors.Is(err, fairness.ErrBusy) {
		return reconcile.Wait(wait.Jitter(retryDelay, 1), "%v", err) // nothing is known to be otherwise than it was
	}
	if err != nil {
		return err
	}
	s.freeSlot = done
	w, err := r.Workload.Get(ctx, client.ObjectKeyFromObject(s.cluster))
	if err != nil {
		s.setCondition(csv1.ConditionClusterReady, csv1.ReasonUnreachable, err.Error())
		return err
	}
	s.workload = w
	return nil
}

// recordKey is where the Secret of a cluster's add-ons keeps its record.
const recordKey = "record"

// ensureRecord is what charts of this cluster get instead of chance. It is made once, before anything is
// rendered, and is a secret, since passwords and keys come from it.
func (r *Reconciler) ensureRecord(ctx context.Context, s *scope) (render.Record, error) {
	secret := &corev1.Secret{}
	key := client.ObjectKeyFromObject(s.addon)
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

// needsCertificateRenewal says that two thirds of the life of a certificate are over.
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

// renewCertificates makes all certificates of the cluster's charts begin anew; keys and passwords stay.
func (r *Reconciler) renewCertificates(ctx context.Context, s *scope, rec render.Record) (render.Record, error) {
	secret := &corev1.Secret{}
	if err := r.Live.Get(ctx, client.ObjectKeyFromObject(s.addon), secret); err != nil {
		return rec, err
	}
	rec.Renewed = time.Now().UTC().Truncate(time.Second)
	b, err := json.Marshal(rec)
	if err != nil {
		return rec, err
	}
	secret.Data[recordKey] = b
	return rec, r.Live.Update(ctx, secret)
}

func (r *Reconciler) createRecord(ctx context.Context, s *scope) (render.Record, error) {
	rec, err := render.NewRecord(rand.Reader, time.Now())
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
