package capi

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/cluster-api/controllers/clustercache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// noSecrets counts who asks for Secrets; there are none.
type noSecrets struct {
	client.Reader
	asked int
}

func (n *noSecrets) Get(context.Context, client.ObjectKey, client.Object, ...client.GetOption) error {
	n.asked++
	return nil
}

// As ClusterCache does it: a failed attempt counts as a failed probe, also one that was refused, and the next is two seconds
// later. Attempts are let through with pauses that grow with the time each has waited.
func TestConnectBackoff(t *testing.T) {
	const s = time.Second
	for name, c := range map[string]struct {
		took  time.Duration // of an attempt that is let through
		lives time.Duration // of a connection; 0: attempts fail
		want  string        // when attempts are let through, in seconds
	}{
		"it refuses":                    {0, 0, "[0 2 4 6 8 10]"},
		"it answers late, and refuses":  {1 * s, 0, "[0 3 6 9 12 15]"},
		"it swallows packets":           {5 * s, 0, "[0 11 26 51 76 101]"},
		"it answers the first request":  {5 * 60 * s, 0, "[0 600 1200 1800 2400 3000]"},
		"it answers, and is lost again": {3 * s, 60 * s, "[0 65 130 195 260 325]"},
	} {
		t.Run(name, func(t *testing.T) {
			began := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
			clock := clocktesting.NewFakePassiveClock(began)
			var state clustercache.HealthCheckingState
			secrets := &noSecrets{}
			b := &connectBackoff{Reader: secrets, clock: clock, health: func(context.Context, client.ObjectKey) clustercache.HealthCheckingState { return state }}
			var got []int
			for len(got) < 6 {
				err := b.Get(t.Context(), client.ObjectKey{Namespace: "n", Name: "demo-kubeconfig"}, &corev1.Secret{})
				if err == nil {
					got = append(got, int(clock.Since(began)/s))
					clock.SetTime(clock.Now().Add(c.took))
				} else if !strings.Contains(err.Error(), "did not answer") {
					t.Fatal(err)
				}
				if err == nil && c.lives > 0 {
					state.LastProbeSuccessTime = clock.Now()
					clock.SetTime(clock.Now().Add(c.lives))
				}
				state.LastProbeTime = clock.Now()
				clock.SetTime(clock.Now().Add(workloadRetry))
				if clock.Since(began) > 2*time.Hour {
					t.Fatalf("let through at %v only", got)
				}
			}
			if fmt.Sprint(got) != c.want {
				t.Errorf("let through at %v, want %s", got, c.want)
			}
			if secrets.asked != len(got) {
				t.Errorf("%d Secrets were read", secrets.asked)
			}
		})
	}
}

// One cluster is not the other, and other Secrets are none of its business.
func TestConnectBackoffOfOthers(t *testing.T) {
	clock := clocktesting.NewFakePassiveClock(time.Now())
	began := clock.Now()
	b := &connectBackoff{Reader: &noSecrets{}, clock: clock, health: func(_ context.Context, k client.ObjectKey) clustercache.HealthCheckingState {
		if k.Name == "silent" {
			return clustercache.HealthCheckingState{LastProbeTime: began.Add(5 * time.Second)}
		}
		return clustercache.HealthCheckingState{}
	}}
	get := func(name string) error {
		return b.Get(t.Context(), client.ObjectKey{Namespace: "n", Name: name}, &corev1.Secret{})
	}
	if err := get("silent-kubeconfig"); err != nil {
		t.Fatal(err)
	}
	clock.SetTime(began.Add(7 * time.Second))
	for name, refused := range map[string]bool{"silent-kubeconfig": true, "silent-ca": false, "other-kubeconfig": false} {
		if err := get(name); (err != nil) != refused {
			t.Errorf("%s: %v", name, err)
		}
	}
	clock.SetTime(began.Add(3 * time.Hour))
	if err := get("third-kubeconfig"); err != nil || len(b.attempts) != 1 {
		t.Errorf("%d attempts are remembered, %v", len(b.attempts), err)
	}
}
