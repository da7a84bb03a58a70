package capi

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// probeInterval is how long a result is kept, so that frequent readiness probes cost nothing.
const probeInterval = 3 * time.Second

// admissionProbe checks the way from the API server through the webhook server to Cluster API's own code: the dry
// run of a Machine must return with the label that only that code adds.
type admissionProbe struct {
	machines dynamic.ResourceInterface
	clock    clock.PassiveClock

	mu        sync.Mutex
	checkedAt time.Time
	lastErr   error
}

func newAdmissionProbe(cfg *rest.Config, c clock.PassiveClock) (*admissionProbe, error) {
	cfg.ContentType = ""
	d, err := dynamic.NewForConfig(cfg)
	if err != nil {
		return nil, err
	}
	machines := d.Resource(clusterv1.GroupVersion.WithResource("machines")).Namespace(metav1.NamespaceDefault)
	return &admissionProbe{machines: machines, clock: c}, nil
}

// waitUntilPassing probes until the result is right or ctx ends.
func (p *admissionProbe) waitUntilPassing(ctx context.Context) error {
	return wait.PollUntilContextCancel(ctx, 20*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		return p.dryRunMachine(ctx) == nil, nil
	})
}

// check returns the last result if it is fresh enough, and probes otherwise.
func (p *admissionProbe) check(ctx context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.clock.Since(p.checkedAt) < probeInterval {
		return p.lastErr
	}
	p.lastErr = p.dryRunMachine(ctx)
	p.checkedAt = p.clock.Now()
	return p.lastErr
}

func (p *admissionProbe) dryRunMachine(ctx context.Context) error {
	m, err := p.machines.Create(ctx, probeMachine(), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	if err != nil {
		return fmt.Errorf("asking admission: %w", err)
	}
	if m.GetLabels()[clusterv1.ClusterNameLabel] != probeName {
		return errors.New("admission lets objects pass that Cluster API's webhooks have not seen")
	}
	return nil
}

const probeName = "polder-admission-probe"

func probeMachine() *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"clusterName": probeName,
		"bootstrap":   map[string]any{"dataSecretName": probeName},
		"infrastructureRef": map[string]any{
			"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "Probe", "name": probeName,
		},
	}}}
	u.SetGroupVersionKind(clusterv1.GroupVersion.WithKind("Machine"))
	u.SetName(probeName)
	return u
}
