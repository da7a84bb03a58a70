package main

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	csv1 "github.com/polder-kaas/polder/api/clusterstack/v1alpha1"
)

// empty is what a restart costs without any release: it is part of all others.
func (b *bench) empty(ctx context.Context) error {
	say("starting polderd on an empty directory, and again")
	if err := b.start(ctx); err != nil {
		return err
	}
	if _, err := b.since(ctx, time.Now(), effort{}); err != nil {
		return err
	}
	e, err := b.restart(ctx)
	if err != nil {
		return err
	}
	b.cost("restart without releases, at rest after", e)
	return nil
}

// restart ends polderd and starts it again, until it is at rest.
func (b *bench) restart(ctx context.Context) (effort, error) {
	if err := b.stop(); err != nil {
		return effort{}, err
	}
	begin := time.Now()
	if err := b.start(ctx); err != nil {
		return effort{}, err
	}
	ready := time.Since(begin)
	e, err := b.since(ctx, begin, effort{})
	e.clock = max(e.clock, ready)
	return e, err
}

func (b *bench) cost(what string, e effort) {
	b.add(what, seconds(e.clock), "")
	b.add("  CPU of polderd", seconds(e.cpu.sum()), e.cpu.rendering())
	b.add("  requests of the whole plane", strconv.Itoa(e.requests.total()), e.requests.verbs())
}

// unchanged has many releases, restarts polderd, and asks for all of them to be looked at again.
func (b *bench) unchanged(ctx context.Context) error {
	var stacks csv1.ClusterStackList
	for first := b.together + 1; first <= b.releases; first += perStack {
		last := min(first+perStack-1, b.releases)
		s, err := b.prepare(ctx, first, last)
		if err != nil {
			return err
		}
		say("making releases %d to %d", first, last)
		if err := b.client.Create(ctx, s); err != nil {
			return err
		}
		if err := b.stackReady(ctx, s.Namespace, last-first+1); err != nil {
			return err
		}
	}
	if _, err := b.since(ctx, time.Now(), effort{}); err != nil {
		return err
	}
	if err := b.client.List(ctx, &stacks); err != nil {
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
	writes := e.requests.of(request.writes)
	ours := writes.of(request.ours)
	b.add("  writing requests for what releases bring", strconv.Itoa(ours.total()), few(ours.list()))
	b.add("  other writing requests", strconv.Itoa(writes.total()-ours.total()), few(writes.minus(ours).list()))
	b.changed(before, after)
	return err
}

// afterRequest puts the annotation on all stacks that asks for a look at their sources and releases.
func (b *bench) afterRequest(ctx context.Context, stacks []csv1.ClusterStack) error {
	objects, err := b.state(ctx)
	if err != nil {
		return err
	}
	before, err := b.now(ctx)
	if err != nil {
		return err
	}
	begin := time.Now()
	for i := range stacks {
		patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, csv1.RequestedAtAnnotation, begin.Format(time.RFC3339Nano))
		if err := b.client.Patch(ctx, &stacks[i], client.RawPatch(client.Merge.Type(), []byte(patch))); err != nil {
			return err
		}
	}
	e, err := b.since(ctx, begin, before)
	if err != nil {
		return err
	}
	e.requests = e.requests.minus(requests{{"PATCH", csv1.GroupVersion.Group, "clusterstacks"}: len(stacks)}) // those were ours
	after, err := b.state(ctx)
	b.cost(fmt.Sprintf("%d releases of %d stacks asked for again, at rest after", b.releases, len(stacks)), e)
	writes := e.requests.of(request.writes)
	noted := request{"PATCH", csv1.GroupVersion.Group, "clusterstacks/status"}
	b.add("  stacks that note the request in their status", strconv.Itoa(writes[noted]), "")
	delete(writes, noted)
	b.none("  writing requests beside", writes.total(), writes.list())
	b.changed(objects, after)
	return err
}

// changed is what is another than before, though nothing should be.
func (b *bench) changed(before, after map[string]string) {
	found := differing(before, after)
	b.none(fmt.Sprintf("  changed of %d releases, classes and templates", len(after)), len(found), found)
}

// state is all releases and their objects, with their versions.
func (b *bench) state(ctx context.Context) (map[string]string, error) {
	var l csv1.ClusterStackReleaseList
	if err := b.client.List(ctx, &l); err != nil {
		return nil, err
	}
	var objects []csv1.Resource
	for _, r := range l.Items {
		objects = append(objects, csv1.Resource{Group: csv1.GroupVersion.Group, Version: csv1.GroupVersion.Version, Kind: "ClusterStackRelease", Namespace: r.Namespace, Name: r.Name})
		objects = append(objects, r.Status.Resources...)
	}
	return versions(ctx, b.client, objects)
}
