package machine

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/clock"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"

	infrav1 "github.com/polder-kaas/polder/api/infrastructure/v1alpha1"
	"github.com/polder-kaas/polder/internal/providers/local/hostapi"
	"github.com/polder-kaas/polder/internal/providers/local/kubeversion"
	"github.com/polder-kaas/polder/internal/reconcile"
)

// recorder keeps events as "object: reason: note".
type recorder struct{ events []string }

func (r *recorder) Eventf(regarding, _ runtime.Object, _, reason, _, _ string, args ...any) {
	r.events = append(r.events, regarding.(metav1.Object).GetName()+": "+reason+": "+args[0].(string))
}

func newScope(controlPlane bool) *scope {
	s := &scope{
		local: &infrav1.LocalMachine{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "local", UID: "u", Generation: 4}},
		machine: &clusterv1.Machine{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "node"},
			Spec:       clusterv1.MachineSpec{Version: "v1.36.1", FailureDomain: "zone"},
		},
		cluster: &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "c"}},
	}
	s.conditions = reconcile.NewConditions(s.local, &s.local.Status.Conditions, infrav1.BootedReason)
	if controlPlane {
		s.machine.Labels = map[string]string{clusterv1.MachineControlPlaneLabel: ""}
	}
	return s
}

func condition(s *scope, name string) string {
	c := conditions.Get(s.local, name)
	if c == nil {
		return ""
	}
	return strings.TrimSuffix(string(c.Status)+" "+c.Reason+": "+c.Message, ": ")
}

func reportStatus(t *testing.T, s *scope, to *recorder, m hostapi.MachineStatus) error {
	t.Helper()
	s.status = &m
	return (&Reconciler{Events: to, Clock: clock.RealClock{}}).reportStatus(t.Context(), s)
}

// While a young machine starts as it should, nothing is said that will be different in a moment.
func TestReportStatusWithinBootGracePeriod(t *testing.T) {
	for name, c := range map[string]struct {
		status hostapi.MachineStatus
		age    time.Duration
		want   string
	}{
		"young":             {hostapi.MachineStatus{Boot: hostapi.BootStatus{Step: "certs"}}, 0, "False Booting: the machine is starting"},
		"old":               {hostapi.MachineStatus{Boot: hostapi.BootStatus{Step: "certs"}}, bootGracePeriod, "False Booting: kubeadm is at certs"},
		"young and runs":    {hostapi.MachineStatus{Boot: hostapi.BootStatus{Done: true}, Registered: true}, 0, "True Booted"},
		"young and failing": {hostapi.MachineStatus{Boot: hostapi.BootStatus{Problem: "no disk", Attempts: 1}}, 0, "False BootFailed: attempt 1: no disk"},
		"young, a process failing": {
			hostapi.MachineStatus{Boot: hostapi.BootStatus{Step: "wait"}, Processes: []hostapi.ProcessStatus{{Name: "etcd", LastExit: "exited"}}}, 0,
			"False Booting: kubeadm is at wait",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScope(false)
			s.local.CreationTimestamp = metav1.NewTime(time.Now().Add(-c.age))
			err := reportStatus(t, s, &recorder{}, c.status)
			if got := condition(s, infrav1.BootedCondition); got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
			if again := err != nil; again != strings.HasSuffix(c.want, "starting") {
				t.Errorf("looks again: %t", again)
			}
		})
	}
}

func TestReportStatus(t *testing.T) {
	done := hostapi.BootStatus{Done: true}
	etcd := hostapi.ProcessStatus{Name: "etcd", Ready: true}
	api := hostapi.ProcessStatus{Name: "kube-apiserver", Ready: true}
	failing := hostapi.ProcessStatus{
		Name: "kube-apiserver", LastExit: "exited with code 1 at noon: bad flag", Output: []string{"a", "b", "c", "d", "e", "f", "bad flag"},
	}
	for name, c := range map[string]struct {
		status                     hostapi.MachineStatus
		booted, processes, honored string
		events                     int
	}{
		"just made": {
			status: hostapi.MachineStatus{}, booted: "False Booting: the machine is starting",
			processes: "False Starting: waiting for the boot, the node's registration",
		},
		"booting": {
			status: hostapi.MachineStatus{ControlPlane: true, Boot: hostapi.BootStatus{Step: "certs"}}, booted: "False Booting: kubeadm is at certs",
			processes: "False Starting: waiting for the boot, its static pods, the node's registration",
		},
		"the boot failed": {
			status: hostapi.MachineStatus{Boot: hostapi.BootStatus{Problem: "no disk", Attempts: 3, Step: "certs"}}, booted: "False BootFailed: attempt 3: no disk",
			processes: "False Starting: waiting for the boot, the node's registration",
		},
		"a process is not ready": {
			status: hostapi.MachineStatus{ControlPlane: true, Boot: done, Registered: true, Processes: []hostapi.ProcessStatus{etcd, {Name: "kube-apiserver"}}},
			booted: "True Booted", processes: "False Starting: waiting for kube-apiserver",
		},
		"a process fails": {
			status: hostapi.MachineStatus{ControlPlane: true, Boot: done, Registered: true, Problem: "another", Processes: []hostapi.ProcessStatus{etcd, failing}},
			booted: "True Booted", events: 2,
			processes: "False ProcessFailing: kube-apiserver exited with code 1 at noon: bad flag; before that: c | d | e | f",
		},
		"a process had failed": {
			status: hostapi.MachineStatus{
				ControlPlane: true, Boot: done, Registered: true, Processes: []hostapi.ProcessStatus{{Name: "etcd", Ready: true, LastExit: "exited"}},
			},
			booted: "True Booted", processes: "True Running",
		},
		"a control plane runs": {
			status: hostapi.MachineStatus{ControlPlane: true, Boot: done, Registered: true, Processes: []hostapi.ProcessStatus{etcd, api}},
			booted: "True Booted", processes: "True Running",
		},
		"a worker runs": {status: hostapi.MachineStatus{Boot: done, Registered: true}, booted: "True Booted", processes: "True Simulated"},
		"not registered": {
			status: hostapi.MachineStatus{Boot: done}, booted: "True Booted", processes: "False Starting: waiting for the node's registration",
		},
		"static pods are missing": {
			status: hostapi.MachineStatus{ControlPlane: true, Boot: done, Registered: true}, booted: "True Booted",
			processes: "False Starting: waiting for its static pods",
		},
		"a problem": {
			status: hostapi.MachineStatus{Boot: done, Problem: "node: registering: no"}, booted: "True Booted", processes: "False Starting: node: registering: no",
		},
		"a problem of one that runs": {
			status: hostapi.MachineStatus{Boot: done, Registered: true, Problem: "kubelet endpoint: taken"}, booted: "True Booted", processes: "True Simulated",
		},
		"switched off": {
			status: hostapi.MachineStatus{ControlPlane: true, Off: true, Boot: done, Processes: []hostapi.ProcessStatus{failing}}, booted: "True Booted",
			processes: "False PoweredOff: the machine is switched off",
		},
		"something was not honored": {
			status: hostapi.MachineStatus{Boot: hostapi.BootStatus{Done: true, NotHonored: []string{"ntp", "users"}}, Registered: true}, booted: "True Booted",
			processes: "True Simulated",
			honored:   "False NotHonored: cannot be done by a machine that is only processes: ntp; users",
		},
	} {
		t.Run(name, func(t *testing.T) {
			events := &recorder{}
			s := newScope(c.status.ControlPlane)
			if err := reportStatus(t, s, events, c.status); err != nil {
				t.Fatal(err)
			}
			if c.honored == "" {
				c.honored = "True Honored"
			}
			want := []string{c.booted, c.processes, c.honored}
			got := []string{condition(s, infrav1.BootedCondition), condition(s, infrav1.ProcessesRunningCondition), condition(s, infrav1.ConfigurationHonoredCondition)}
			if d := cmp.Diff(want, got); d != "" {
				t.Error(d)
			}
			if len(events.events) != c.events {
				t.Errorf("events %q", events.events)
			}
			s.summarize()
			ready := condition(s, infrav1.ReadyCondition)
			if isReady := strings.HasPrefix(c.booted, "True") && strings.HasPrefix(c.processes, "True"); strings.HasPrefix(ready, "True") != isReady {
				t.Errorf("ready: %s", ready)
			}
			for _, have := range s.local.Status.Conditions {
				if have.ObservedGeneration != 4 {
					t.Errorf("%s is of generation %d", have.Type, have.ObservedGeneration)
				}
			}
		})
	}
}

// What is in the way comes first: a boot waits for a process that fails.
func TestSummarize(t *testing.T) {
	for name, c := range map[string]struct {
		status hostapi.MachineStatus
		want   string
	}{
		"a boot that goes on": {hostapi.MachineStatus{Boot: hostapi.BootStatus{Step: "certs"}}, "False Booting: kubeadm is at certs"},
		"a boot that waits for a process that fails": {
			hostapi.MachineStatus{Boot: hostapi.BootStatus{Step: "wait"}, Processes: []hostapi.ProcessStatus{{Name: "etcd", LastExit: "exited"}}},
			"False ProcessFailing: etcd exited",
		},
		"a boot of a machine that is off": {hostapi.MachineStatus{Off: true}, "False PoweredOff: the machine is switched off"},
		"all is well":                     {hostapi.MachineStatus{Boot: hostapi.BootStatus{Done: true}, Registered: true}, "True Ready"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScope(false)
			if err := reportStatus(t, s, &recorder{}, c.status); err != nil {
				t.Fatal(err)
			}
			s.summarize()
			if got := condition(s, infrav1.ReadyCondition); got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
		})
	}
}

func TestReportStatusIsBounded(t *testing.T) {
	long := strings.Repeat("é", 100_000)
	s, events := newScope(true), &recorder{}
	err := reportStatus(t, s, events, hostapi.MachineStatus{
		ControlPlane: true, Boot: hostapi.BootStatus{Problem: "x" + long, NotHonored: []string{long}}, // é is two bytes: one is cut in two
		Processes: []hostapi.ProcessStatus{{Name: "etcd", LastExit: long}},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range s.local.Status.Conditions {
		if len(c.Message) > 5000 || !utf8.ValidString(c.Message) || !strings.HasSuffix(c.Message, "…") {
			t.Errorf("%s: %d bytes, valid: %t", c.Type, len(c.Message), utf8.ValidString(c.Message))
		}
	}
	for _, e := range events.events {
		if len(e) > 1100 {
			t.Errorf("an event of %d bytes", len(e))
		}
	}
}

func TestCheckVersion(t *testing.T) {
	versions, err := kubeversion.NewRange("v1.36.3")
	if err != nil {
		t.Fatal(err)
	}
	for version, want := range map[string]string{"v1.36.1": "", "v1.33.0": "", "v1.32.9": "False VersionNotSupported", "v1.37.0": "False VersionNotSupported",
		"latest": "False VersionNotSupported"} {
		s, events := newScope(false), &recorder{}
		s.machine.Spec.Version = version
		err := (&Reconciler{Versions: versions, Events: events}).checkVersion(t.Context(), s)
		if got := condition(s, infrav1.BootedCondition); !strings.HasPrefix(got, want) || (err == nil) != (want == "") || (len(events.events) == 0) != (want == "") {
			t.Errorf("%s: %s, %v, events %q", version, got, err, events.events)
		}
	}
}
