package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/polder-kaas/polder/api/v1alpha1"
	"github.com/polder-kaas/polder/internal/exit"
)

// stalledFor is how long a cluster may be stalled before nobody believes any more that it passes.
const stalledFor = 30 * time.Second

// errStalled ends a vigil for that.
var errStalled = errors.New("stalled for too long")

// vigil watches one cluster until its goal is reached, or cannot be.
type vigil struct {
	name  string
	goal  goal
	out   io.Writer
	begin time.Time
	hint  func(command string) string

	last       v1alpha1.WorkloadCluster
	told       string // the last line, without its time
	was        bool   // it was seen
	err        error  // how it ends
	apiTrouble bool

	giveUp context.CancelCauseFunc // ends the vigil
	doubt  *time.Timer             // gives up; nil while there is hope
}

var _ observer = (*vigil)(nil)

func (v *vigil) wait(ctx context.Context, from objectSource, namespace string, timeout time.Duration) error {
	limited, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	limited, v.giveUp = context.WithCancelCause(limited)
	defer v.giveUp(nil)
	defer v.hope()
	f := &follower{source: from, observer: v, known: map[string]bool{namespace + "/" + v.name: true}}
	err := f.run(limited)
	switch {
	case ctx.Err() != nil:
		return v.interrupted()
	case errors.Is(context.Cause(limited), errStalled):
		why, _ := v.goal.hopeless(&v.last)
		return why
	case limited.Err() != nil:
		return v.late(timeout)
	case err != nil:
		v.apiTrouble = true
		return err
	case v.err == nil:
		v.rejoice()
	}
	return v.err
}

func (v *vigil) seen(u *unstructured.Unstructured) (done bool) {
	c, err := typed[v1alpha1.WorkloadCluster](u)
	if err != nil {
		v.err = err
		return true
	}
	v.last, v.was = *c, true
	if v.goal.deleted && v.goal.reached(c) {
		return true // another cluster has its name by now
	}
	v.tell(c)
	if v.goal.reached(c) {
		return true
	}
	why, mayPass := v.goal.hopeless(c)
	switch {
	case why == nil:
		v.hope()
	case !mayPass:
		v.err = why
		return true
	case v.doubt == nil:
		v.doubt = time.AfterFunc(stalledFor, func() { v.giveUp(errStalled) })
	}
	return false
}

// hope lets nobody give up.
func (v *vigil) hope() {
	if v.doubt != nil {
		v.doubt.Stop()
		v.doubt = nil
	}
}

func (v *vigil) gone(string) (done bool) {
	v.err = v.goal.missed(v.name, v.was)
	return true
}

func (v *vigil) troubled(err error) {
	what := "the plane does not answer"
	if refuses(err) {
		what = "the plane refuses"
	}
	v.line("-", what+", trying again: "+err.Error())
}

func (v *vigil) tell(c *v1alpha1.WorkloadCluster) {
	if c.Status.ObservedGeneration != c.Generation {
		v.line(string(v1alpha1.PhasePending), "the plane has not looked at it yet")
		return
	}
	v.line(string(c.Status.Phase), c.Status.Message)
}

// line prints what has changed, with the time since the beginning.
func (v *vigil) line(phase, message string) {
	text := fmt.Sprintf("%-9s  %s", printable(phase), printable(message))
	if text == v.told {
		return
	}
	v.told = text
	fmt.Fprintf(v.out, "%6.1fs  %s\n", time.Since(v.begin).Seconds(), text)
}

// rejoice says what comes next.
func (v *vigil) rejoice() {
	switch {
	case v.goal.deleted:
		fmt.Fprintf(v.out, "Cluster %s is gone.\n", v.name)
	case v.goal == readyGoal:
		fmt.Fprintf(v.out, "Cluster %s is ready. Get access with: %s\n", v.name, v.hint("kubeconfig "+v.name+" --merge"))
	}
}

func (v *vigil) comeBack() string { return v.hint("wait " + v.name + v.goal.flag()) }

func (v *vigil) interrupted() error {
	doing := "made"
	switch {
	case v.goal.deleted:
		doing = "deleted"
	case v.last.Status.Phase == v1alpha1.PhaseUpdating:
		doing = "updated"
	}
	fmt.Fprintf(v.out, "The cluster goes on being %s. Come back with: %s\n", doing, v.comeBack())
	return exit.With(exit.Interrupted, errSilent)
}

func (v *vigil) late(timeout time.Duration) error {
	last := joined(": ", string(v.last.Status.Phase), situation(v.last.Status))
	if !v.was || last == "" {
		last = "the plane has said nothing about it"
	}
	return exit.Errorf(exit.Timeout, "cluster %q is not %s after %s: %s; it may still be; come back with: %s", v.name, v.goal, timeout, last, v.comeBack())
}
