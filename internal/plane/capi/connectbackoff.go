package capi

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"sync"
	"time"

	"k8s.io/utils/clock"
	"sigs.k8s.io/cluster-api/controllers/clustercache"
	"sigs.k8s.io/cluster-api/util/secret"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// connectWorkers is how many times more workers connect to clusters than work on objects of a kind: they wait for
	// networks most of the time.
	connectWorkers = 5
	// slowConnect is how long a failed connection must have taken to have waited for an answer.
	slowConnect = 2 * time.Second
	// maxPauses is how many times as long as it waited for an answer a cluster is left alone in the end: those that do
	// not answer take a fifth of a worker each. The pause begins with once and doubles.
	maxPauses = 4
	// maxConnectPause is the longest pause.
	maxConnectPause = 5 * time.Minute
)

// connectBackoff reads kubeconfigs for Cluster API's connections to workload clusters, and refuses to for clusters that
// lately gave no answer. Cluster API tries again after workloadRetry. That is right for a new cluster, which refuses
// connections until it is up; but one that swallows packets holds a worker for seconds each time, and some of those
// would hold all workers, so that no other cluster could be reached.
type connectBackoff struct {
	client.Reader
	health func(context.Context, client.ObjectKey) clustercache.HealthCheckingState // of the connections; set before use
	clock  clock.PassiveClock

	mu       sync.Mutex
	attempts map[client.ObjectKey]connectAttempt
}

// connectAttempt is the last attempt to connect to a cluster.
type connectAttempt struct {
	began      time.Time // zero once it has been judged
	slow       int       // how many failed slowly, one after the other
	retryAfter time.Time
}

// Get reads an object. The kubeconfig of a cluster is what every connection begins with.
func (b *connectBackoff) Get(
	ctx context.Context, key client.ObjectKey, o client.Object, opts ...client.GetOption,
) error {
	name, ok := strings.CutSuffix(key.Name, "-"+string(secret.Kubeconfig))
	if ok {
		if err := b.beginAttempt(ctx, client.ObjectKey{Namespace: key.Namespace, Name: name}); err != nil {
			return err
		}
	}
	return b.Reader.Get(ctx, key, o, opts...)
}

// beginAttempt remembers that a connection to a cluster is tried, or says that it is too early for that.
func (b *connectBackoff) beginAttempt(ctx context.Context, cluster client.ObjectKey) error {
	state, now := b.health(ctx, cluster), b.clock.Now()
	b.mu.Lock()
	defer b.mu.Unlock()
	a := b.attempts[cluster]
	if !a.began.IsZero() {
		a = a.judge(state)
	}
	if now.Before(a.retryAfter) {
		b.attempts[cluster] = a
		return fmt.Errorf("the cluster did not answer; it is asked again in %s", a.retryAfter.Sub(now).Round(time.Second))
	}
	a.began = now
	maps.DeleteFunc(b.attempts, func(_ client.ObjectKey, a connectAttempt) bool { // of clusters that are gone
		return now.Sub(a.began) > time.Hour && now.Sub(a.retryAfter) > time.Hour
	})
	if b.attempts == nil {
		b.attempts = map[client.ObjectKey]connectAttempt{}
	}
	b.attempts[cluster] = a
	return nil
}

// judge returns what follows from the last attempt, by what has become of it.
func (a connectAttempt) judge(state clustercache.HealthCheckingState) connectAttempt {
	took := state.LastProbeTime.Sub(a.began)
	if took < slowConnect || !state.LastProbeSuccessTime.Before(a.began) {
		return connectAttempt{} // it failed at once, or was a success, and has been lost since
	}
	pause := min(took<<min(a.slow, maxPauses/2), maxConnectPause)
	return connectAttempt{slow: a.slow + 1, retryAfter: state.LastProbeTime.Add(pause)}
}
