package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/polder-kaas/polder/api/v1alpha1"
	"github.com/polder-kaas/polder/internal/cli/follow"
	"github.com/polder-kaas/polder/internal/cli/objects"
	"github.com/polder-kaas/polder/internal/cli/output"
	"github.com/polder-kaas/polder/internal/program/exit"
)

// maxStalledTime is how long a cluster may be stalled before nobody believes any more that it passes.
const maxStalledTime = 30 * time.Second

// errStalled ends a vigil for that.
var errStalled = errors.New("stalled for too long")

// waitLoop watches one cluster until its goal is reached, or cannot be.
type waitLoop struct {
	name   string
	goal   goal
	prefix string // of each line
	out    io.Writer
	now    func() time.Time
	begin  time.Time
	hint   func(command string) string

	last      v1alpha1.WorkloadCluster
	lastLine  string // the last line, without its time
	wasSeen   bool   // it was seen
	err       error  // how it ends
	apiFailed bool

	giveUp      context.CancelCauseFunc // ends the vigil
	giveUpTimer *time.Timer             // gives up; nil while there is hope
}

var _ follow.Observer = (*waitLoop)(nil)

// wait tells apart why following ended, since exit codes differ: interrupt, a stalled cluster, time, the API.
func (v *waitLoop) wait(ctx context.Context, from follow.Source, namespace string, timeout time.Duration) error {
	limited, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	limited, v.giveUp = context.WithCancelCause(limited)
	defer v.giveUp(nil)
	defer v.stopGiveUpTimer()
	f := &follow.Follower{
		Source: from, Observer: v, Now: v.now, KnownKeys: map[string]bool{namespace + "/" + v.name: true},
	}
	err := f.Run(limited)
	switch {
	case ctx.Err() != nil:
		return v.reportInterrupted()
	case errors.Is(context.Cause(limited), errStalled):
		why, _ := v.goal.blockedReason(&v.last)
		return why
	case limited.Err() != nil:
		return v.timeoutError(timeout)
	case err != nil:
		v.apiFailed = true
		return err
	case v.err == nil:
		v.printSuccess()
	}
	return v.err
}

// OnObject gives a cluster that is stalled some time to recover: reconcilers retry, and what is wrong may be mended
// meanwhile.
func (v *waitLoop) OnObject(u *unstructured.Unstructured) (done bool) {
	c, err := objects.FromUnstructured[v1alpha1.WorkloadCluster](u)
	if err != nil {
		v.err = err
		return true
	}
	v.last, v.wasSeen = *c, true
	if v.goal.deleted && v.goal.isReached(c) {
		return true // another cluster has its name by now
	}
	v.printPhase(c)
	if v.goal.isReached(c) {
		return true
	}
	why, mayRecover := v.goal.blockedReason(c)
	switch {
	case why == nil:
		v.stopGiveUpTimer()
	case !mayRecover:
		v.err = why
		return true
	case v.giveUpTimer == nil:
		v.giveUpTimer = time.AfterFunc(maxStalledTime, func() { v.giveUp(errStalled) })
	}
	return false
}

// stopGiveUpTimer lets nobody give up.
func (v *waitLoop) stopGiveUpTimer() {
	if v.giveUpTimer != nil {
		v.giveUpTimer.Stop()
		v.giveUpTimer = nil
	}
}

// OnDelete is the goal of a deletion, and an error for any other goal.
func (v *waitLoop) OnDelete(string) (done bool) {
	v.err = v.goal.missingError(v.name, v.wasSeen)
	return true
}

// OnError goes on: a plane that restarts does not stop the cluster from being made.
func (v *waitLoop) OnError(err error) {
	what := "the plane does not answer"
	if follow.IsAccessDenied(err) {
		what = "the plane refuses"
	}
	v.printLine("-", what+", trying again: "+err.Error())
}

// printPhase does not show a status that is of an earlier generation: it would speak of the cluster as it was.
func (v *waitLoop) printPhase(c *v1alpha1.WorkloadCluster) {
	if c.Status.ObservedGeneration != c.Generation {
		v.printLine(string(v1alpha1.PhasePending), "the plane has not looked at it yet")
		return
	}
	v.printLine(string(c.Status.Phase), c.Status.Message)
}

// printLine prints what has changed, with the time since the beginning.
func (v *waitLoop) printLine(phase, message string) {
	text := fmt.Sprintf("%-9s  %s", output.Sanitize(phase), output.Sanitize(message))
	if text == v.lastLine {
		return
	}
	v.lastLine = text
	fmt.Fprintf(v.out, "%6.1fs  %s%s\n", v.now().Sub(v.begin).Seconds(), v.prefix, text)
}

// printSuccess says what comes next.
func (v *waitLoop) printSuccess() {
	switch {
	case v.goal.deleted:
		fmt.Fprintf(v.out, "Cluster %s is gone.\n", v.name)
	case v.goal == readyGoal:
		fmt.Fprintf(v.out, "Cluster %s is ready. Get access with: %s\n", v.name, v.hint("kubeconfig "+v.name+" --merge"))
	}
}

// resumeHint waits for the same again.
func (v *waitLoop) resumeHint() string { return v.hint("wait " + v.name + v.goal.flag()) }

// reportInterrupted says that ^C ends only the waiting: reconcilers go on.
func (v *waitLoop) reportInterrupted() error {
	doing := "made"
	switch {
	case v.goal.deleted:
		doing = "deleted"
	case v.last.Status.Phase == v1alpha1.PhaseUpdating:
		doing = "updated"
	}
	fmt.Fprintf(v.out, "The cluster goes on being %s. Come back with: %s\n", doing, v.resumeHint())
	return exit.With(exit.Interrupted, output.ErrSilent)
}

// timeoutError has the last that was known, which mostly says what to do.
func (v *waitLoop) timeoutError(timeout time.Duration) error {
	last := output.JoinNonEmpty(": ", string(v.last.Status.Phase), describeSituation(v.last.Status))
	if !v.wasSeen || last == "" {
		last = "the plane has said nothing about it"
	}
	return exit.Errorf(exit.Timeout, "cluster %q is not %s after %s: %s; it may still be; come back with: %s", v.name,
		v.goal, timeout, last, v.resumeHint())
}
