package restplane

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/polder-kaas/polder/api/v1alpha1"
	"github.com/polder-kaas/polder/client"
)

const (
	attemptTimeout = 10 * time.Second // of one request for access
	attemptPause   = time.Second      // before the next one
)

// createKubeconfigRequest asks for access. The REST API answers a request for it at once, and keeps nothing; what a
// command then lists, watches and deletes is kept here.
func (c *call) createKubeconfigRequest(ctx context.Context) (any, error) {
	q := &v1alpha1.KubeconfigRequest{}
	if err := json.Unmarshal(c.body, q); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	if err := c.askForAccess(ctx, q); err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	q.Name, q.Namespace = q.GenerateName+c.next(), c.namespace
	q.UID, q.ResourceVersion = types.UID(q.Name), c.next()
	c.requests[q.Name] = q.DeepCopy()
	return q, nil
}

// askForAccess asks once, and writes into the status what was said.
func (c *call) askForAccess(ctx context.Context, q *v1alpha1.KubeconfigRequest) error {
	cluster := q.Spec.ClusterName
	limited, cancel := context.WithTimeout(ctx, attemptTimeout)
	defer cancel()
	var k client.Kubeconfig
	var err error
	if namePattern.MatchString(cluster) {
		res, sendErr := c.api.CreateKubeconfig(limited, c.tenant(), cluster, client.KubeconfigRequest{
			Role: client.KubeconfigRequestRole(q.Spec.Role), ExpirationSeconds: q.Spec.ExpirationSeconds,
			CertificateRequest: q.Spec.CertificateRequest,
		})
		err = c.read(limited, res, sendErr, &k)
	} else {
		err = c.notFound(limited)
	}
	var status apierrors.APIStatus
	switch {
	case err == nil:
		q.Status.Certificate, q.Status.CertificateAuthority = k.Certificate, k.CertificateAuthority
		q.Status.Endpoint, q.Status.ExpirationTime = k.Endpoint, &metav1.Time{Time: k.ExpirationTime}
		setReady(q, metav1.ConditionTrue, v1alpha1.ReasonReady, "")
	case apierrors.IsNotFound(err) && q.Name == "": // it is refused at once
		return apierrors.NewNotFound(v1alpha1.GroupVersion.WithResource("workloadclusters").GroupResource(), cluster)
	case apierrors.IsNotFound(err): // it is gone meanwhile, in the words of the plane
		setReady(q, metav1.ConditionFalse, v1alpha1.ReasonClusterMissing, fmt.Sprintf(
			"there is no WorkloadCluster %s in namespace %s; create it, or make a request that names another", cluster,
			c.namespace))
	case apierrors.IsConflict(err) && errors.As(err, &status):
		message, final := strings.CutPrefix(status.Status().Message, "the plane grants no access: ")
		reason := v1alpha1.ReasonClusterNotReady
		if final {
			reason = v1alpha1.ReasonRequestInvalid
		}
		setReady(q, metav1.ConditionFalse, reason, message)
	case errors.Is(err, context.DeadlineExceeded):
		// It may be granted yet.
	default:
		return err
	}
	return nil
}

func setReady(q *v1alpha1.KubeconfigRequest, status metav1.ConditionStatus, reason, message string) {
	apimeta.SetStatusCondition(&q.Status.Conditions, metav1.Condition{
		Type: v1alpha1.ConditionReady, Status: status, Reason: reason, Message: message,
	})
}

// storedRequest returns a copy of one that was made here.
func (c *call) storedRequest(name string) *v1alpha1.KubeconfigRequest {
	c.mu.Lock()
	defer c.mu.Unlock()
	if q := c.requests[name]; q != nil && q.Namespace == c.namespace {
		return q.DeepCopy()
	}
	return nil
}

func (c *call) listKubeconfigRequests(context.Context) (any, error) {
	l := v1alpha1.KubeconfigRequestList{
		TypeMeta: metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "KubeconfigRequestList"},
		Items:    []v1alpha1.KubeconfigRequest{},
	}
	if q := c.storedRequest(c.selectedName()); q != nil {
		l.Items, l.ResourceVersion = append(l.Items, *q), q.ResourceVersion
	}
	return l, nil
}

// watchKubeconfigRequests asks again and again, until access is granted or refused.
func (c *call) watchKubeconfigRequests(ctx context.Context) (any, error) {
	q := c.storedRequest(c.selectedName())
	if q == nil {
		return nil, apierrors.NewResourceExpired("this list is not known any more: list again")
	}
	own := *c // the answer is written while the stream goes on
	return newStream(ctx, func(ctx context.Context, out *json.Encoder) error {
		for {
			pause := time.NewTimer(attemptPause)
			select {
			case <-ctx.Done():
				pause.Stop()
				return ctx.Err()
			case <-pause.C:
			}
			if err := own.askForAccess(ctx, q); err != nil {
				return err
			}
			if err := out.Encode(object{"type": watch.Modified, "object": q}); err != nil {
				return err
			}
		}
	}), nil
}

func (c *call) deleteKubeconfigRequest(context.Context) (any, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.requests, c.name)
	return success(), nil
}
