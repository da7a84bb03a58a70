package main

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	csv1 "github.com/polder-kaas/polder/api/clusterstack/v1alpha1"

	"github.com/polder-kaas/polder/bench/measure"
)

// empty measures what a restart costs without any release: it is part of all others.
func (b *bench) empty(ctx context.Context) error {
	measure.Logf("starting polderd on an empty directory, and again")
	if err := b.Start(ctx); err != nil {
		return err
	}
	if _, err := b.MeasureUntilIdle(ctx, time.Now(), measure.Effort{}); err != nil {
		return err
	}
	e, err := b.restart(ctx)
	if err != nil {
		return err
	}
	b.cost("restart without releases, at rest after", e)
	return nil
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

func (b *bench) cost(what string, e measure.Effort) {
	b.Add(what, measure.FormatSeconds(e.Clock), "")
	b.Add("  CPU of polderd", measure.FormatSeconds(e.CPU.Sum()), e.CPU.FormatChildren())
	b.Add("  requests of the whole plane", strconv.Itoa(e.Requests.Total()), e.Requests.Verbs())
}

// unchanged makes many releases, restarts polderd, and requests a reconciliation of all of them.
func (b *bench) unchanged(ctx context.Context) error {
	var stacks csv1.ClusterStackList
	for first := b.together + 1; first <= b.releases; first += perStack {
		last := min(first+perStack-1, b.releases)
		s, err := b.prepare(ctx, first, last)
		if err != nil {
			return err
		}
		measure.Logf("making releases %d to %d", first, last)
		if err := b.Client.Create(ctx, s); err != nil {
			return err
		}
		if err := b.stackReady(ctx, s.Namespace, last-first+1); err != nil {
			return err
		}
	}
	if _, err := b.MeasureUntilIdle(ctx, time.Now(), measure.Effort{}); err != nil {
		return err
	}
	if err := b.Client.List(ctx, &stacks); err != nil {
		return err
	}
	if err := b.afterRestart(ctx); err != nil {
		return err
	}
	return b.afterRequest(ctx, stacks.Items)
}

func (b *bench) afterRestart(ctx context.Context) error {
	before, err := b.state(ctx)
	if err != nil {
		return err
	}
	e, err := b.restart(ctx)
	if err != nil {
		return err
	}
	after, err := b.state(ctx)
	b.cost(fmt.Sprintf("restart with %d releases, at rest after", b.releases), e)
	writes := e.Requests.Filter(measure.Request.IsWrite)
	ours := writes.Filter(measure.Request.IsStackRelated)
	b.Add("  writing requests for what releases bring", strconv.Itoa(ours.Total()), measure.JoinFew(ours.List()))
	b.Add("  other writing requests", strconv.Itoa(writes.Total()-ours.Total()), measure.JoinFew(writes.Minus(ours).List()))
	b.changed(before, after)
	return err
}

// afterRequest puts the annotation on all stacks that requests a look at their sources and releases.
func (b *bench) afterRequest(ctx context.Context, stacks []csv1.ClusterStack) error {
	objects, err := b.state(ctx)
	if err != nil {
		return err
	}
	before, err := b.Snapshot(ctx)
	if err != nil {
		return err
	}
	begin := time.Now()
	for i := range stacks {
		patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, csv1.RequestedAtAnnotation, begin.Format(time.RFC3339Nano))
		if err := b.Client.Patch(ctx, &stacks[i], client.RawPatch(client.Merge.Type(), []byte(patch))); err != nil {
			return err
		}
	}
	e, err := b.MeasureUntilIdle(ctx, begin, before)
	if err != nil {
		return err
	}
	e.Requests = e.Requests.Minus(measure.Requests{{Verb: "PATCH", Group: csv1.GroupVersion.Group, Resource: "clusterstacks"}: len(stacks)}) // those were ours
	after, err := b.state(ctx)
	b.cost(fmt.Sprintf("%d releases of %d stacks asked for again, at rest after", b.releases, len(stacks)), e)
	writes := e.Requests.Filter(measure.Request.IsWrite)
	noted := measure.Request{Verb: "PATCH", Group: csv1.GroupVersion.Group, Resource: "clusterstacks/status"}
	b.Add("  stacks that note the request in their status", strconv.Itoa(writes[noted]), "")
	delete(writes, noted)
	b.AddExpectNone("  writing requests beside", writes.Total(), writes.List())
	b.changed(objects, after)
	return err
}

// changed adds to the table what differs from before, though nothing should.
func (b *bench) changed(before, after map[string]string) {
	found := differing(before, after)
	b.AddExpectNone(fmt.Sprintf("  changed of %d releases, classes and templates", len(after)), len(found), found)
}

// state returns the resource versions of all releases and their objects.
func (b *bench) state(ctx context.Context) (map[string]string, error) {
	var l csv1.ClusterStackReleaseList
	if err := b.Client.List(ctx, &l); err != nil {
		return nil, err
	}
	var objects []csv1.Resource
	for _, r := range l.Items {
		objects = append(objects, csv1.Resource{Group: csv1.GroupVersion.Group, Version: csv1.GroupVersion.Version, Kind: "ClusterStackRelease", Namespace: r.Namespace, Name: r.Name})
		objects = append(objects, r.Status.Resources...)
	}
	return versions(ctx, b.Client, objects)
}
