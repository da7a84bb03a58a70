package machine

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	infrav1 "github.com/polder-kaas/polder/api/infrastructure/v1alpha1"
	"github.com/polder-kaas/polder/internal/providers/local/hostapi"
	"github.com/polder-kaas/polder/internal/providers/local/launch"
	"github.com/polder-kaas/polder/internal/providers/local/processtest"
	"github.com/polder-kaas/polder/internal/reconcile"
)

// fakeHost answers every request with code and status, and records the requests.
type fakeHost struct {
	dir      hostapi.Dir
	requests []string
	received hostapi.MachineSpec
}

// newFakeHost has the directory of a host; it answers if code is not 0.
func newFakeHost(t *testing.T, code int, status hostapi.Status) *fakeHost {
	t.Helper()
	d := processtest.ShortDir(t, "machine")
	h := &fakeHost{dir: launch.Launcher{HostsDir: d}.Dir("cluster")}
	if err := os.MkdirAll(h.dir.MachinesDir(), 0o700); err != nil {
		t.Fatal(err)
	}
	if code == 0 {
		return h
	}
	l, err := net.Listen("unix", h.dir.Socket())
	if err != nil {
		t.Fatal(err)
	}
	s := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.requests = append(h.requests, r.Method+" "+r.RequestURI)
		_ = json.NewDecoder(r.Body).Decode(&h.received)
		w.WriteHeader(code)
		_ = json.NewEncoder(w).Encode(status)
	})}
	go func() { _ = s.Serve(l) }()
	t.Cleanup(func() { _ = s.Close() })
	return h
}

// fixture is a machine whose bootstrap data and cluster are there.
func fixture(h *fakeHost, controlPlane bool) (*Reconciler, *scope) {
	s := newScope(controlPlane)
	s.host = hostapi.NewClient(h.dir)
	s.infra = &infrav1.LocalCluster{ObjectMeta: metav1.ObjectMeta{UID: types.UID("cluster")}}
	s.machine.Spec.Bootstrap.DataSecretName = ptr.To("data")
	s.cluster.Status.Initialization.InfrastructureProvisioned = ptr.To(true)
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "data"}, Data: map[string][]byte{"value": []byte("#cloud-config")}}
	root := strings.TrimSuffix(string(h.dir), "/cluster")
	return &Reconciler{Hosts: launch.Launcher{HostsDir: root}, APIReader: fake.NewClientBuilder().WithObjects(secret).Build(), Events: &recorder{},
		Clock: clock.RealClock{}}, s
}

func TestWaitForPrerequisites(t *testing.T) {
	for name, c := range map[string]struct {
		change       func(*scope)
		controlPlane bool
		want         string
	}{
		"all is there":      {func(*scope) {}, true, ""},
		"no infrastructure": {func(s *scope) { s.infra = nil }, true, "False WaitingForClusterInfrastructure: waiting for the cluster's infrastructure"},
		"infrastructure not yet": {func(s *scope) { s.cluster.Status.Initialization.InfrastructureProvisioned = nil }, true,
			"False WaitingForClusterInfrastructure: waiting for the cluster's infrastructure"},
		"no data": {func(s *scope) { s.machine.Spec.Bootstrap.DataSecretName = nil }, true,
			"False WaitingForBootstrapData: waiting for bootstrap data"},
		"no data, as there is no control plane": {
			func(s *scope) { s.machine.Spec.Bootstrap.DataSecretName = nil }, false, "False WaitingForBootstrapData: waiting for the control plane to be initialised",
		},
		"no data, though there is a control plane": {func(s *scope) {
			s.machine.Spec.Bootstrap.DataSecretName = nil
			s.cluster.Status.Initialization.ControlPlaneInitialized = ptr.To(true)
		}, false, "False WaitingForBootstrapData: waiting for bootstrap data"},
	} {
		t.Run(name, func(t *testing.T) {
			r, s := fixture(newFakeHost(t, 0, hostapi.Status{}), c.controlPlane)
			c.change(s)
			err := r.waitForPrerequisites(t.Context(), s)
			if got := condition(s, infrav1.BootedCondition); got != c.want || (err == nil) != (c.want == "") {
				t.Errorf("%s, %v; want %s", got, err, c.want)
			}
		})
	}
}

func TestCreateMachine(t *testing.T) {
	h := newFakeHost(t, http.StatusOK, hostapi.Status{Machines: []hostapi.MachineStatus{{Name: "local", UID: "u"}}})
	r, s := fixture(h, true)
	s.local.Spec.NodeLabels = map[string]string{"a": "b"}
	if err := r.createMachine(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	want := hostapi.MachineSpec{
		Name: "local", Node: "node", UID: "u", ControlPlane: true, Version: "v1.36.1", ProviderID: "local://ns/c/local", Zone: "zone",
		Labels: map[string]string{"a": "b"}, UserData: []byte("#cloud-config"),
	}
	if d := cmp.Diff(want, h.received); d != "" {
		t.Error(d)
	}
	if err := h.received.Validate(); err != nil {
		t.Error(err)
	}
	if s.local.Spec.ProviderID != want.ProviderID || s.status == nil || condition(s, infrav1.BootedCondition) != "" {
		t.Errorf("provider ID %q, %s", s.local.Spec.ProviderID, condition(s, infrav1.BootedCondition))
	}
}

// A machine that has been a node is not made anew: the only one of a control plane would begin an empty cluster.
func TestLostMachine(t *testing.T) {
	for name, change := range map[string]func(*scope){
		"it is a node":   func(s *scope) { s.machine.Status.NodeRef = clusterv1.MachineNodeReference{Name: "node"} },
		"it has booted":  func(s *scope) { s.setCondition(infrav1.BootedCondition, true, infrav1.BootedReason, "") },
		"it has neither": nil,
	} {
		for _, controlPlane := range []bool{true, false} {
			h := newFakeHost(t, http.StatusOK, hostapi.Status{Machines: []hostapi.MachineStatus{{Name: "local", UID: "u"}}})
			r, s := fixture(h, controlPlane)
			if change == nil {
				if err := r.createMachine(t.Context(), s); err != nil || len(h.requests) == 0 {
					t.Errorf("%s: %v, asked %q", name, err, h.requests)
				}
				continue
			}
			change(s)
			if err := r.createMachine(t.Context(), s); !reconcile.IsWait(err) || len(h.requests) > 0 {
				t.Errorf("%s: %v, asked %q", name, err, h.requests)
			}
			got := condition(s, infrav1.BootedCondition)
			if !strings.HasPrefix(got, "False MachineLost: the files of the machine are gone, and it is not made anew; ") ||
				strings.Contains(got, "polder restore") != controlPlane || !strings.Contains(got, "Machine node") {
				t.Errorf("%s: %s", name, got)
			}
		}
	}
}

// A machine that the host knows needs its bootstrap data no more.
func TestCreateMachineOnce(t *testing.T) {
	h := newFakeHost(t, http.StatusOK, hostapi.Status{})
	r, s := fixture(h, true)
	r.APIReader = nil
	s.status = &hostapi.MachineStatus{}
	if err := r.createMachine(t.Context(), s); err != nil || len(h.requests) > 0 || s.local.Spec.ProviderID != "local://ns/c/local" {
		t.Errorf("%v, asked %q, provider ID %q", err, h.requests, s.local.Spec.ProviderID)
	}
}

func TestCreateMachineErrors(t *testing.T) {
	for name, c := range map[string]struct {
		code   int
		secret string
		want   string
		err    string
	}{
		"no host":     {code: 0, secret: "data", want: "False WaitingForHost", err: "waiting"},
		"it refuses":  {code: http.StatusConflict, secret: "data", want: "False BootFailed: the cluster's host answered", err: "answered"},
		"no such one": {code: http.StatusOK, secret: "other", want: "False WaitingForBootstrapData: reading bootstrap data", err: "reading bootstrap data"},
	} {
		t.Run(name, func(t *testing.T) {
			r, s := fixture(newFakeHost(t, c.code, hostapi.Status{}), true)
			s.machine.Spec.Bootstrap.DataSecretName = &c.secret
			err := r.createMachine(t.Context(), s)
			if got := condition(s, infrav1.BootedCondition); err == nil || !strings.Contains(err.Error(), c.err) || !strings.HasPrefix(got, c.want) ||
				s.local.Spec.ProviderID != "" {
				t.Errorf("%v, %s; want %s", err, got, c.want)
			}
		})
	}
	t.Run("it does not answer", func(t *testing.T) {
		h := newFakeHost(t, 0, hostapi.Status{})
		l, err := net.Listen("unix", h.dir.Socket()) // nobody accepts
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		r, s := fixture(h, true)
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		err = r.createMachine(ctx, s)
		if got := condition(s, infrav1.BootedCondition); !errors.Is(err, context.DeadlineExceeded) ||
			!strings.HasPrefix(got, "False WaitingForHost: the cluster's host runs but does not answer") {
			t.Errorf("%v, %s", err, got)
		}
	})
	t.Run("a secret without data", func(t *testing.T) {
		r, s := fixture(newFakeHost(t, http.StatusOK, hostapi.Status{}), true)
		r.APIReader = fake.NewClientBuilder().WithObjects(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "data"}}).Build()
		if err := r.createMachine(t.Context(), s); err == nil || !strings.Contains(err.Error(), `Secret data has no key "value"`) {
			t.Error(err)
		}
	})
}

func TestDrainAPIServer(t *testing.T) {
	for name, c := range map[string]struct {
		deleted, controlPlane bool
		want                  []string
	}{
		"a control plane that will go": {true, true, []string{"POST /machines/local/drain"}},
		"a control plane that stays":   {false, true, nil},
		"a worker":                     {true, false, nil},
	} {
		t.Run(name, func(t *testing.T) {
			h := newFakeHost(t, http.StatusOK, hostapi.Status{})
			r, s := fixture(h, c.controlPlane)
			if c.deleted {
				s.machine.DeletionTimestamp = ptr.To(metav1.Now())
			}
			if err := r.drainAPIServer(t.Context(), s); err != nil || !cmp.Equal(c.want, h.requests) {
				t.Errorf("%v, asked %q, want %q", err, h.requests, c.want)
			}
		})
	}
}

func TestReadHostStatus(t *testing.T) {
	other := hostapi.MachineStatus{Name: "local", UID: "another of the same name", Address: "127.1.0.12"}
	mine := hostapi.MachineStatus{Name: "local", UID: "u", Address: "127.1.0.11", Boot: hostapi.BootStatus{Done: true}}
	t.Run("its own", func(t *testing.T) {
		r, s := fixture(newFakeHost(t, http.StatusOK, hostapi.Status{Machines: []hostapi.MachineStatus{mine, other}}), false)
		if err := errors.Join(r.readHostStatus(t.Context(), s), r.reportStatus(t.Context(), s)); err != nil {
			t.Fatal(err)
		}
		want := []clusterv1.MachineAddress{{Type: clusterv1.MachineInternalIP, Address: "127.1.0.11"}, {Type: clusterv1.MachineHostName, Address: "node"}}
		if d := cmp.Diff(want, s.local.Status.Addresses); d != "" || !ptr.Deref(s.local.Status.Initialization.Provisioned, false) ||
			s.local.Status.FailureDomain != "zone" {
			t.Errorf("%+v, %s", s.local.Status, d)
		}
	})
	t.Run("not another's", func(t *testing.T) {
		r, s := fixture(newFakeHost(t, http.StatusOK, hostapi.Status{Machines: []hostapi.MachineStatus{other}}), false)
		if err := r.readHostStatus(t.Context(), s); err != nil || s.status != nil {
			t.Errorf("%v, %+v", err, s.status)
		}
		if err := r.reportStatus(t.Context(), s); err == nil || s.local.Status.Initialization.Provisioned != nil {
			t.Errorf("%v, %+v", err, s.local.Status)
		}
	})
	t.Run("no host", func(t *testing.T) {
		r, s := fixture(newFakeHost(t, 0, hostapi.Status{}), false)
		if err := r.readHostStatus(t.Context(), s); err == nil || !strings.HasPrefix(condition(s, infrav1.BootedCondition), "False WaitingForHost") {
			t.Error(err, condition(s, infrav1.BootedCondition))
		}
	})
}

func TestRemoveMachine(t *testing.T) {
	for name, c := range map[string]struct {
		code   int
		change func(t *testing.T, h *fakeHost, s *scope)
		gone   bool
	}{
		"the host removes it":           {http.StatusOK, func(*testing.T, *fakeHost, *scope) {}, true},
		"the host refuses":              {http.StatusConflict, func(*testing.T, *fakeHost, *scope) {}, false},
		"no cluster":                    {0, func(_ *testing.T, _ *fakeHost, s *scope) { s.host, s.infra, s.machine = nil, nil, nil }, true},
		"no host, and it was not there": {0, func(*testing.T, *fakeHost, *scope) {}, true},
		"no host, and it is there": {0, func(t *testing.T, h *fakeHost, _ *scope) {
			if err := os.Mkdir(string(h.dir.MachineDir("local")), 0o700); err != nil {
				t.Fatal(err)
			}
		}, false},
		"no host, and it goes with the cluster": {0, func(t *testing.T, h *fakeHost, s *scope) {
			s.infra.DeletionTimestamp = ptr.To(metav1.Now())
			if err := os.Mkdir(string(h.dir.MachineDir("local")), 0o700); err != nil {
				t.Fatal(err)
			}
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			h := newFakeHost(t, c.code, hostapi.Status{})
			r, s := fixture(h, true)
			s.local.Finalizers = []string{infrav1.MachineFinalizer}
			c.change(t, h, s)
			err := r.removeMachine(t.Context(), s)
			if (err == nil) != c.gone || (len(s.local.Finalizers) == 0) != c.gone {
				t.Errorf("%v, finalizers %q, want gone: %t", err, s.local.Finalizers, c.gone)
			}
			if c.code != 0 && !cmp.Equal(h.requests, []string{"DELETE /machines/local"}) {
				t.Errorf("asked %q", h.requests)
			}
		})
	}
}
