package reconcile

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	ctrlreconcile "sigs.k8s.io/controller-runtime/pkg/reconcile"
)

var errBroken = errors.New("broken")

func TestRun(t *testing.T) {
	// Each phase leaves its number and returns its error.
	for name, c := range map[string]struct {
		errs     []error
		ran      string
		want     ctrl.Result
		err      error
		terminal bool
	}{
		"no phases":                     {},
		"all is well":                   {errs: []error{nil, nil, nil}, ran: "012"},
		"an error ends it":              {errs: []error{nil, errBroken, nil}, ran: "01", err: errBroken},
		"waiting is no error":           {errs: []error{Wait(time.Minute, "rain"), nil}, ran: "0", want: ctrl.Result{RequeueAfter: time.Minute}},
		"waiting for a watch":           {errs: []error{Wait(0, "rain"), nil}, ran: "0"},
		"waiting that was wrapped":      {errs: []error{fmt.Errorf("x: %w", Wait(time.Second, "rain"))}, ran: "0", want: ctrl.Result{RequeueAfter: time.Second}},
		"what cannot succeed":           {errs: []error{Terminal(errBroken), nil}, ran: "0", err: errBroken, terminal: true},
		"what cannot succeed, in a way": {errs: []error{fmt.Errorf("x: %w", Terminal(errBroken))}, ran: "0", err: errBroken, terminal: true},
	} {
		t.Run(name, func(t *testing.T) {
			var ran strings.Builder
			var phases []Phase[*strings.Builder]
			for i, err := range c.errs {
				phases = append(phases, func(_ context.Context, s *strings.Builder) error { fmt.Fprint(s, i); return err })
			}
			got, err := Run(t.Context(), &ran, phases...)
			if ran.String() != c.ran || got != c.want || !errors.Is(err, c.err) {
				t.Errorf("ran %q, %+v, %v; want %q, %+v, %v", ran.String(), got, err, c.ran, c.want, c.err)
			}
			if errors.Is(err, ctrlreconcile.TerminalError(nil)) != c.terminal {
				t.Errorf("terminal: %t, want %t", !c.terminal, c.terminal)
			}
		})
	}
}

func TestWaitSaysForWhat(t *testing.T) {
	if got, want := Wait(0, "%d machines", 3).Error(), "waiting: 3 machines"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestIsWait(t *testing.T) {
	for name, c := range map[string]struct {
		err  error
		want bool
	}{
		"no error":                    {nil, false},
		"another error":               {errBroken, false},
		"what cannot succeed":         {Terminal(errBroken), false},
		"waiting":                     {Wait(0, "rain"), true},
		"waiting that was wrapped":    {fmt.Errorf("x: %w", Wait(0, "rain")), true},
		"waiting beside another":      {errors.Join(errBroken, Wait(0, "rain")), true},
		"an error that only looks so": {errors.New("waiting: rain"), false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := IsWait(c.err); got != c.want {
				t.Errorf("%t, want %t", got, c.want)
			}
		})
	}
}

func TestFinish(t *testing.T) {
	conflict := apierrors.NewConflict(schema.GroupResource{Resource: "nodes"}, "n", errBroken)
	gone := apierrors.NewNotFound(schema.GroupResource{Resource: "nodes"}, "n")
	given, soon := ctrl.Result{RequeueAfter: time.Hour}, ctrl.Result{RequeueAfter: 50 * time.Millisecond}
	for name, c := range map[string]struct {
		err, write, wantErr error
		want                ctrl.Result
	}{
		"all is well":                      {nil, nil, nil, given},
		"a failure has no other result":    {errBroken, nil, errBroken, ctrl.Result{}},
		"a write that failed":              {nil, errBroken, errBroken, ctrl.Result{}},
		"a conflict is tried again soon":   {nil, conflict, nil, soon},
		"a conflict of a phase, too":       {fmt.Errorf("x: %w", conflict), nil, nil, soon},
		"a conflict beside another, too":   {errBroken, conflict, nil, soon},
		"an object that is gone":           {nil, gone, nil, given},
		"a failure, and the object gone":   {errBroken, gone, errBroken, ctrl.Result{}},
		"something else that is not there": {gone, nil, gone, ctrl.Result{}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Finish(given, c.err, c.write)
			if got != c.want || !errors.Is(err, c.wantErr) || (err == nil) != (c.wantErr == nil) {
				t.Errorf("%+v, %v; want %+v, %v", got, err, c.want, c.wantErr)
			}
		})
	}
}

func TestStatusLostPredicate(t *testing.T) {
	lost := StatusLostPredicate(func(n *corev1.Namespace) []metav1.Condition {
		if n.Name == "told" {
			return []metav1.Condition{{Type: "Ready"}}
		}
		return nil
	})
	for name, c := range map[string]struct {
		object client.Object
		want   bool
	}{
		"one without conditions":         {&corev1.Namespace{}, true},
		"one with a condition":           {&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "told"}}, false},
		"one of another kind":            {&corev1.Node{}, false},
		"one of which only names remain": {&metav1.PartialObjectMetadata{}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := lost.Update(event.UpdateEvent{ObjectOld: c.object, ObjectNew: c.object}); got != c.want {
				t.Errorf("%t, want %t", got, c.want)
			}
		})
	}
}

func TestJoinWriteError(t *testing.T) {
	errWrite := errors.New("conflict")
	for name, c := range map[string]struct {
		err, write  error
		want        []error
		terminal    bool
		wantNothing bool
	}{
		"all is well":                 {wantNothing: true},
		"phases failed":               {err: errBroken, want: []error{errBroken}},
		"writing failed":              {write: errWrite, want: []error{errWrite}},
		"both failed":                 {err: errBroken, write: errWrite, want: []error{errBroken, errWrite}},
		"for good, and it is written": {err: Terminal(errBroken), want: []error{errBroken}, terminal: true},
		"for good, but not written":   {err: Terminal(errBroken), write: errWrite, want: []error{errWrite}},
	} {
		t.Run(name, func(t *testing.T) {
			err := joinWriteError(c.err, c.write)
			if (err == nil) != c.wantNothing || errors.Is(err, ctrlreconcile.TerminalError(nil)) != c.terminal {
				t.Errorf("error %v, terminal: want %t", err, c.terminal)
			}
			for _, w := range c.want {
				if !errors.Is(err, w) {
					t.Errorf("error %v, want %v", err, w)
				}
			}
		})
	}
}
