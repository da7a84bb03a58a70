package main

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	csv1 "github.com/polder-kaas/polder/api/clusterstack/v1alpha1"
	"github.com/polder-kaas/polder/bench/measure"
	"github.com/polder-kaas/polder/bench/scenario"
)

// measureEmpty measures what a restart costs without any release: it is part of all others.
func (b *bench) measureEmpty(ctx context.Context) (rows scenario.Rows, err error) {
	if err := b.AwaitIdle(ctx); err != nil {
		return rows, err
	}
	e, err := b.restart(ctx)
	if err != nil {
		return rows, err
	}
	addEffort(&rows, "restart without releases, at rest after", e)
	return rows, nil
}

// restart ends polderd and starts it again, until it is idle.
func (b *bench) restart(ctx context.Context) (measure.Effort, error) {
	if err := b.Stop(); err != nil {
		return measure.Effort{}, err
	}
	begin := time.Now()
	if err := b.Start(ctx); err != nil {
		return measure.Effort{}, err
	}
	ready := time.Since(begin)
	e, err := b.MeasureUntilIdle(ctx, begin, measure.Effort{})
	e.Clock = max(e.Clock, ready)
	return e, err
}

// addEffort adds what something took until the plane was at rest.
func addEffort(rows *scenario.Rows, what string, e measure.Effort) {
	rows.Add(what, scenario.FormatSeconds(e.Clock), "")
	rows.Add("  CPU of polderd", scenario.FormatSeconds(e.CPU.Sum()), measure.FormatChildren(e.CPU))
	rows.Add("  requests of the whole plane", strconv.Itoa(e.Requests.Total()), e.Requests.Verbs())
}

// measureUnchanged makes many releases, restarts polderd, and requests a reconciliation of all of them.
func (b *bench) measureUnchanged(ctx context.Context) (rows scenario.Rows, err error) {
	var stacks csv1.ClusterStackList
	for first := b.together + 1; first <= b.releases; first += perStack {
		last := min(first+perStack-1, b.releases)
		s, err := b.prepare(ctx, first, last)
		if err != nil {
			return rows, err
		}
		scenario.Logf("making releases %d to %d", first, last)
		if err := b.Client.Create(ctx, s); err != nil {
			return rows, err
		}
		if err := b.stackReady(ctx, s.Namespace, last-first+1); err != nil {
			return rows, err
		}
	}
	if err := b.AwaitIdle(ctx); err != nil {
		return rows, err
	}
	if err := b.Client.List(ctx, &stacks); err != nil {
		return rows, err
	}
	restarted, err := b.measureRestart(ctx)
	if err != nil {
		return restarted, err
	}
	requested, err := b.measureRequest(ctx, stacks.Items)
	return append(restarted, requested...), err
}

// measureRestart restarts polderd, which then has forgotten what it has applied.
func (b *bench) measureRestart(ctx context.Context) (rows scenario.Rows, err error) {
	before, err := b.state(ctx)
	if err != nil {
		return rows, err
	}
	e, err := b.restart(ctx)
	if err != nil {
		return rows, err
	}
	after, err := b.state(ctx)
	addEffort(&rows, fmt.Sprintf("restart with %d releases, at rest after", b.releases), e)
	writes := e.Requests.Filter(measure.Request.IsWrite)
	ours := writes.Filter(measure.Request.IsStackRelated)
	rows.Add("  writing requests for what releases bring", strconv.Itoa(ours.Total()), scenario.JoinFew(ours.List()))
	rows.Add("  other writing requests", strconv.Itoa(writes.Total()-ours.Total()),
		scenario.JoinFew(writes.Minus(ours).List()))
	addChanged(&rows, before, after)
	return rows, err
}

// measureRequest puts the annotation on all stacks that requests a look at their sources and releases.
func (b *bench) measureRequest(ctx context.Context, stacks []csv1.ClusterStack) (rows scenario.Rows, err error) {
	objects, err := b.state(ctx)
	if err != nil {
		return rows, err
	}
	before, err := b.Snapshot(ctx)
	if err != nil {
		return rows, err
	}
	begin := time.Now()
	for i := range stacks {
		patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, csv1.RequestedAtAnnotation,
			begin.Format(time.RFC3339Nano))
		if err := b.Client.Patch(ctx, &stacks[i], client.RawPatch(client.Merge.Type(), []byte(patch))); err != nil {
			return rows, err
		}
	}
	e, err := b.MeasureUntilIdle(ctx, begin, before)
	if err != nil {
		return rows, err
	}
	// those were ours
	e.Requests = e.Requests.Minus(measure.Requests{
		{Verb: "PATCH", Group: csv1.GroupVersion.Group, Resource: "clusterstacks"}: len(stacks),
	})
	after, err := b.state(ctx)
	addEffort(&rows, fmt.Sprintf("%d releases of %d stacks asked for again, at rest after", b.releases, len(stacks)), e)
	writes := e.Requests.Filter(measure.Request.IsWrite)
	noted := measure.Request{Verb: "PATCH", Group: csv1.GroupVersion.Group, Resource: "clusterstacks/status"}
	rows.Add("  stacks that note the request in their status", strconv.Itoa(writes[noted]), "")
	delete(writes, noted)
	rows.AddExpectNone("  writing requests beside", writes.Total(), writes.List())
	addChanged(&rows, objects, after)
	return rows, err
}

// addChanged adds what differs from before, though nothing should.
func addChanged(rows *scenario.Rows, before, after map[string]string) {
	found := differing(before, after)
	rows.AddExpectNone(fmt.Sprintf("  changed of %d releases, classes and templates", len(after)), len(found), found)
}

// state returns the resource versions of all releases and their objects.
func (b *bench) state(ctx context.Context) (map[string]string, error) {
	var l csv1.ClusterStackReleaseList
	if err := b.Client.List(ctx, &l); err != nil {
		return nil, err
	}
	var objects []csv1.Resource
	for _, r := range l.Items {
		objects = append(objects, csv1.Resource{
			Group: csv1.GroupVersion.Group, Version: csv1.GroupVersion.Version, Kind: "ClusterStackRelease",
			Namespace: r.Namespace, Name: r.Name,
		})
		objects = append(objects, r.Status.Resources...)
	}
	return versions(ctx, b.Client, objects)
}
