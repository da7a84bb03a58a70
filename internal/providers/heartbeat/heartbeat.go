// Package heartbeat publishes the Provider object of a provider that runs here: its description, and whether its
// infrastructure can be used.
package heartbeat

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/polder-kaas/polder/api/v1alpha1"
	"github.com/polder-kaas/polder/internal/apierror"
	"github.com/polder-kaas/polder/internal/providers/guard"
	"github.com/polder-kaas/polder/internal/reconcile"
	"github.com/polder-kaas/polder/provider"
)

// pollInterval is how often a provider is asked for its description and its health.
const pollInterval = 30 * time.Second

// RenewInterval is how often the heartbeat of a provider is written. A provider that was not seen for several
// times as long counts as not running.
const RenewInterval = 5 * time.Minute

// Publisher publishes the object of one provider. All fields but Admission are needed.
type Publisher struct {
	Client   client.Client // reads from the API: one object needs no cache
	Provider *guard.Guard
	Clock    clock.PassiveClock

	// Admission is where the plane reaches the provider's admission webhook; nil if it runs in the plane's own
	// process.
	Admission *v1alpha1.ProviderAdmission
}

// Start publishes the object until ctx ends.
func (k *Publisher) Start(ctx context.Context) error {
	log := ctrl.LoggerFrom(ctx).WithValues("provider", k.Provider.Name())
	t := time.NewTicker(pollInterval)
	defer t.Stop()
	for {
		err := k.PublishOnce(ctx)
		if apierrors.IsConflict(err) { // somebody has written to it meanwhile
			err = k.PublishOnce(ctx)
		}
		if err != nil && ctx.Err() == nil {
			log.Error(err, "Writing what the provider says of itself")
		}
		select {
		case <-ctx.Done():
			return nil
		case <-t.C:
		}
	}
}

// PublishOnce asks the provider and writes its object; nothing is written if nothing has changed.
func (k *Publisher) PublishOnce(ctx context.Context) error {
	o := &v1alpha1.Provider{}
	o.Name = k.Provider.Name()
	err := k.Client.Get(ctx, client.ObjectKeyFromObject(o), o)
	if apierror.IsObjectNotFound(err, "providers", o.Name) {
		if err = k.Client.Create(ctx, o); apierrors.IsAlreadyExists(err) { // another process of the provider was faster
			err = k.Client.Get(ctx, client.ObjectKeyFromObject(o), o)
		}
	}
	if err != nil {
		return err
	}
	before := o.DeepCopy()
	d, described := k.Provider.Describe(ctx)
	if described == nil {
		if err := setDescription(&o.Status, d); err != nil {
			described = err
		}
	}
	k.setStatus(o, errors.Join(described, k.Provider.Health(ctx)))
	err = reconcile.Write(ctx, k.Client, before, o)
	if !apierrors.IsInvalid(err) {
		return err
	}
	// The API server refuses the description. That the provider runs, where, and what is wrong, must be known all
	// the same.
	o = before.DeepCopy()
	k.setStatus(o, fmt.Errorf("what the provider says of itself is not taken: %w", err))
	return reconcile.Write(ctx, k.Client, before, o)
}

// setStatus sets the heartbeat, where the provider is reached, and its Ready condition. A time that is far from
// ours is that of a process with another clock, and is renewed, too.
func (k *Publisher) setStatus(o *v1alpha1.Provider, err error) {
	o.Status.Admission = k.Admission
	setReadyCondition(o, err)
	if now := k.Clock.Now().Truncate(time.Second); o.Status.LastSeenTime == nil ||
		now.Sub(o.Status.LastSeenTime.Time).Abs() >= RenewInterval {
		o.Status.LastSeenTime = &metav1.Time{Time: now}
	}
}

// setDescription writes a description into the status.
func setDescription(st *v1alpha1.ProviderStatus, d provider.Description) error {
	st.Title, st.Version, st.StackProvider = d.Title, d.Version, d.StackProviderName()
	st.Capabilities, st.MachineTypes, st.AnyShape, st.Zones = d.Capabilities, d.MachineTypes, d.AnyShape, d.Zones
	st.Isolation = d.Isolation
	st.Parameters = nil
	if len(d.Parameters) == 0 {
		return nil
	}
	b, err := json.Marshal(maps.Clone(d.Parameters))
	if err != nil {
		return fmt.Errorf("the schema of its parameters: %w", err)
	}
	st.Parameters = &provider.JSON{Raw: b}
	return nil
}

func setReadyCondition(o *v1alpha1.Provider, err error) {
	c := metav1.Condition{
		Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonReady,
		Message: "clusters can be made", ObservedGeneration: o.Generation,
	}
	if err != nil {
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, reasonFor(err), reconcile.TruncateMessage(err.Error())
	}
	meta.SetStatusCondition(&o.Status.Conditions, c)
}

func reasonFor(err error) string {
	switch {
	case errors.Is(err, guard.ErrPanicked):
		return v1alpha1.ReasonProviderPanicked
	case errors.Is(err, guard.ErrTimedOut):
		return v1alpha1.ReasonProviderTimedOut
	}
	return v1alpha1.ReasonProviderFailed
}
