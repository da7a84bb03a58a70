package clusteraddon

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/polder-kaas/polder/internal/apierror"
	"github.com/polder-kaas/polder/stack"
	"github.com/polder-kaas/polder/stack/render"
)

// recordKey is the key of the record in the Secret of a cluster's add-ons.
const recordKey = "record"

// maxRecordSize bounds a record to which keys are added. What it leaves of a Secret has room for a renewal.
const maxRecordSize = corev1.MaxSecretSize - 4<<10

// storedRecord is what charts of a cluster get in place of randomness and time, with the Secret it was read from.
type storedRecord struct {
	render.Record
	secret *corev1.Secret
}

// recordFullError says that a record has no room for more keys.
type recordFullError struct{ reason string }

func (e *recordFullError) Error() string { return e.reason }

// ensureRecord reads the record of the cluster. It is created once, before anything is rendered, and is in a Secret,
// since passwords and keys are in it or derived from it.
func (r *Reconciler) ensureRecord(ctx context.Context, s *scope) (storedRecord, error) {
	secret := &corev1.Secret{}
	key := client.ObjectKeyFromObject(s.addon)
	// A read from a cache that is behind would take a record for missing.
	err := r.Live.Get(ctx, key, secret)
	if apierror.IsObjectNotFound(err, "secrets", key.Name) {
		return r.createRecord(ctx, s)
	}
	if err != nil {
		return storedRecord{}, err
	}
	rec := storedRecord{secret: secret}
	if err := json.Unmarshal(secret.Data[recordKey], &rec.Record); err != nil || rec.Validate() != nil {
		return rec, fmt.Errorf("the key %s of Secret %s cannot be read; restore it, or delete the Secret to have all "+
			"generated passwords and certificates made anew", recordKey, key)
	}
	return rec, nil
}

// createRecord creates the record. If another run was faster, the create fails.
func (r *Reconciler) createRecord(ctx context.Context, s *scope) (storedRecord, error) {
	rec, err := render.NewRecord(rand.Reader, r.Clock.Now())
	if err != nil {
		return storedRecord{}, err
	}
	b, err := json.Marshal(rec)
	if err != nil {
		return storedRecord{}, err
	}
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: s.addon.Namespace, Name: s.addon.Name,
			OwnerReferences: []metav1.OwnerReference{ownerReferenceTo(s.cluster)},
			Labels:          map[string]string{clusterv1.ClusterNameLabel: s.cluster.Name},
		},
		Type: "clusterstack.x-k8s.io/addon-record",
		Data: map[string][]byte{recordKey: b},
	}
	return storedRecord{Record: rec, secret: secret}, r.Live.Create(ctx, secret)
}

// updateRecord writes a record in place of the one that was read. The update carries the version that was read: a
// record that was changed or restored in between is not overwritten, and the update is a conflict.
func (r *Reconciler) updateRecord(ctx context.Context, was storedRecord, next render.Record) error {
	b, err := json.Marshal(next)
	if err != nil {
		return err
	}
	if added := len(next.Keys) - len(was.Keys); added > 0 && len(b) > maxRecordSize {
		return &recordFullError{fmt.Sprintf("the record in Secret %s has %d private keys of charts and no room for %d more, "+
			"which would make it larger than %d KiB; set keys to {} in it to have all keys made anew, passwords stay",
			client.ObjectKeyFromObject(was.secret), len(was.Keys), added, maxRecordSize>>10)}
	}
	secret := was.secret.DeepCopy()
	secret.Data[recordKey] = b
	return r.Live.Update(ctx, secret)
}

// isRecordConflict reports whether another run has created or changed the record first.
func isRecordConflict(err error) bool {
	return apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err)
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
