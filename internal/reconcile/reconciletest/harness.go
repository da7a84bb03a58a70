package reconciletest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// harness tests one subject.
type harness struct {
	api           API
	subject       Subject
	client        client.Client
	allCases      bool // run all cases, not a sample
	fullDurations bool // storm and quiet last as long as they should, not only seconds
	random        *rand.Rand
	baseline      baseline
}

// baseline is what the subject does when nothing goes wrong.
type baseline struct {
	writes             []string // of the whole scenario
	writesUntilSettled int      // how many of them were made until all was settled
	reconciles         int
	unguardedDeletes   []string // deletes that name no UID
	state              state
	settleTime         time.Duration
}

// disableGlobalLog keeps controller-runtime from complaining that no logger is set: each process has a log of its
// own.
var disableGlobalLog = sync.OnceFunc(func() { ctrl.SetLogger(logr.Discard()) })

func newHarness(api API, s Subject, full bool, seed uint64) (*harness, error) {
	if s.Setup == nil || s.CreateInputs == nil || len(s.Kinds) == 0 {
		return nil, errors.New("a subject needs Setup, CreateInputs and Kinds")
	}
	disableGlobalLog()
	c, err := client.New(api.Config, client.Options{Scheme: api.Scheme})
	if err != nil {
		return nil, err
	}
	random := rand.New(rand.NewPCG(seed, 0)) //nolint:gosec // a test must be repeatable
	return &harness{api: api, subject: s.withDefaults(), client: c, allCases: full, random: random}, nil
}

// mapper returns one mapper for all processes: discovery is not part of what is tested.
func (h *harness) mapper(*rest.Config, *http.Client) (meta.RESTMapper, error) {
	return h.client.RESTMapper(), nil
}

// isOwn says whether the object is of the subject's first kind.
func (h *harness) isOwn(o client.Object) bool {
	gvk, err := apiutil.GVKForObject(h.subject.Kinds[0], h.api.Scheme)
	return err == nil && gvk == o.GetObjectKind().GroupVersionKind()
}

// newNamespace creates a namespace for one scenario.
func (h *harness) newNamespace(ctx context.Context) (string, error) {
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "reconciletest-"}}
	if err := h.client.Create(ctx, ns); err != nil {
		return "", fmt.Errorf("making a namespace: %w", err)
	}
	return ns.Name, nil
}

// recordBaseline runs a whole scenario in which nothing goes wrong.
func (h *harness) recordBaseline(ctx context.Context) error {
	l, err := h.startScenario(ctx, faultPlan{})
	if err != nil {
		return err
	}
	begin := time.Now()
	err = l.waitUntil(ctx, h.subject.Timeout, l.checkStable)
	if err == nil {
		h.baseline.settleTime = time.Since(begin)
		h.baseline.writesUntilSettled = len(l.process.transport.listWrites())
		err = l.recordState(ctx)
	}
	if err == nil {
		err = l.delete(ctx)
	}
	h.baseline.writes = l.process.transport.listWrites()
	h.baseline.reconciles = l.reconciles()
	h.baseline.unguardedDeletes = l.process.transport.listUnguardedDeletes()
	if err == nil && h.baseline.reconciles == 0 {
		err = errors.New("reconciles cannot be counted; has controller-runtime changed what it logs?")
	}
	return errors.Join(err, l.close())
}

// recordState keeps the state as the one in which all other scenarios have to end.
func (l *scenario) recordState(ctx context.Context) error {
	s, err := l.h.snapshot(ctx, l.namespace)
	if err != nil {
		return err
	}
	l.h.baseline.state = l.h.normalizedState(s, l.namespace)
	return nil
}
