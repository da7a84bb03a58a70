package runtimehooks

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	runtimehooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func panickingHandler(context.Context, client.Object, runtimehooksv1.RequestObject, runtimehooksv1.ResponseObject) error {
	var m map[string]string
	m["a"] = "b" //nolint:staticcheck // the panic is the point
	return nil
}

func exitingHandler(context.Context, client.Object, runtimehooksv1.RequestObject, runtimehooksv1.ResponseObject) error {
	runtime.Goexit()
	return nil
}

// newStuckHandler ignores its context until released, and then writes to all it was given.
func newStuckHandler(released <-chan struct{}) HandlerFunc {
	return func(_ context.Context, forObject client.Object, request runtimehooksv1.RequestObject, response runtimehooksv1.ResponseObject) error {
		<-released
		forObject.GetLabels()["kept"] = "no"
		request.(*runtimehooksv1.BeforeClusterUpgradeRequest).Cluster.Labels["kept"] = "no"
		response.SetMessage("too late")
		return nil
	}
}

func TestGoHandlerIsLeftBehindAfterTimeout(t *testing.T) {
	tests := map[string]struct {
		timeout time.Duration
		policy  runtimev1.FailurePolicy
		after   time.Duration
		want    string
	}{
		"default":       {after: 10 * time.Second, want: `"gate.polder": no answer within 10s`},
		"its own":       {timeout: 3 * time.Second, after: 3 * time.Second, want: "no answer within 3s"},
		"and ignored":   {timeout: 3 * time.Second, policy: runtimev1.FailurePolicyIgnore, after: 3 * time.Second},
		"not a default": {timeout: 20 * time.Second, after: 20 * time.Second, want: "no answer within 20s"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := warmClient(t)
				released := make(chan struct{})
				handle(t, c, Handler{
					Name: "gate.polder", Hook: runtimehooksv1.BeforeClusterUpgrade,
					Timeout: tt.timeout, FailurePolicy: tt.policy, Func: newStuckHandler(released),
				})
				object, request, response := cluster("gold"), upgrade(), &runtimehooksv1.BeforeClusterUpgradeResponse{}
				start := time.Now()
				err := c.CallExtension(t.Context(), runtimehooksv1.BeforeClusterUpgrade, object, "gate.polder", request, response)
				if took := time.Since(start); took != tt.after {
					t.Errorf("returned after %s, want %s", took, tt.after)
				}
				checkError(t, err, tt.want)
				if err != nil && !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("error %v is not a DeadlineExceeded", err)
				}

				// The race detector sees it if both still hold the same objects.
				close(released)
				object.Labels["kept"], request.Cluster.Labels["kept"] = "yes", "yes"
				response.SetMessage("")
				synctest.Wait()
				if object.Labels["kept"] != "yes" || request.Cluster.Labels["kept"] != "yes" || response.Message != "" {
					t.Error("a handler left behind changed objects of its caller")
				}
			})
		})
	}
}

func TestGoHandlerThatHeedsItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := warmClient(t)
		handle(t, c, onUpgrade("gate.polder",
			func(ctx context.Context, _ *runtimehooksv1.BeforeClusterUpgradeRequest, _ *runtimehooksv1.BeforeClusterUpgradeResponse) error {
				<-ctx.Done()
				return fmt.Errorf("stopping: %w", ctx.Err())
			}))
		_, err := callGate(t.Context(), c, "gate.polder")
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error %v is not a DeadlineExceeded", err)
		}
	})
}

func TestCallEndsWithItsCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := warmClient(t)
		released := make(chan struct{})
		defer close(released)
		handle(t, c, Handler{Name: "gate.polder", Hook: runtimehooksv1.BeforeClusterUpgrade, Func: newStuckHandler(released)})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		start := time.Now()
		_, err := callGate(ctx, c, "gate.polder")
		if took := time.Since(start); took != time.Second || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("returned %v after %s, want DeadlineExceeded after 1s", err, took)
		}
	})
}

func TestCallsLeftBehindAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := warmClient(t)
		released := make(chan struct{})
		handle(t, c, Handler{Name: "gate.polder", Hook: runtimehooksv1.BeforeClusterUpgrade, Func: newStuckHandler(released)})
		for range maxConcurrentCalls {
			_, err := callGate(t.Context(), c, "gate.polder")
			checkError(t, err, `"gate.polder": no answer`)
		}
		_, err := callGate(t.Context(), c, "gate.polder")
		checkError(t, err, "waiting for one of 64 running calls to end: no answer within 10s")

		close(released)
		synctest.Wait()
		_, err = callGate(t.Context(), c, "gate.polder")
		checkError(t, err, "")
	})
}
