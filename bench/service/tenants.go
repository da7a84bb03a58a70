package main

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/polder-kaas/polder/api/v1alpha1"
	"github.com/polder-kaas/polder/bench/measure"
	"github.com/polder-kaas/polder/bench/scenario"
)

const memoryAim = 300 // MiB more for a thousand tenants

// many measures what many tenants cost a plane that has nothing else.
func (b *bench) many(ctx context.Context) (rows scenario.Rows, err error) {
	err = measure.WithPlane(ctx, func(p *measure.Plane) error {
		if err := p.AwaitIdle(ctx); err != nil {
			return err
		}
		before, _, err := p.Memory()
		if err != nil {
			return err
		}
		e, err := p.Measure(ctx, func() error { return b.makeTenants(ctx, p) })
		if err != nil {
			return err
		}
		if err := p.AwaitIdle(ctx); err != nil {
			return err
		}
		after, peak, err := p.Memory()
		if err != nil {
			return err
		}
		aim := float64(memoryAim) * float64(b.tenants) / 1000
		rows.Add(fmt.Sprintf("%d tenants, until all are ready", b.tenants), scenario.FormatSeconds(e.Clock),
			scenario.FormatPerItem(e.Clock, b.tenants))
		rows.Add("  CPU of polderd, for each", scenario.FormatPerItem(e.CPU.Sum(), b.tenants), "")
		rows.AddRow(scenario.Row{
			What: "  memory of polderd, more", Measured: []string{fmt.Sprintf("%d MiB", after-before)},
			Aim: fmt.Sprintf("%.0f MiB", aim), Ratio: fmt.Sprintf("%.2f", float64(after-before)/aim),
			More: fmt.Sprintf("%d MiB before, %d after, %d at most", before, after, peak),
		})
		return nil
	})
	return rows, err
}

// makeTenants makes them with a member of each role, and waits until they are ready.
func (b *bench) makeTenants(ctx context.Context, p *measure.Plane) error {
	for i := range b.tenants {
		name := fmt.Sprintf("tenant-%d", i)
		t := &v1alpha1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: name}}
		for _, role := range []v1alpha1.TenantRole{v1alpha1.TenantAdmin, v1alpha1.TenantEditor, v1alpha1.TenantViewer} {
			t.Spec.Members = append(t.Spec.Members, v1alpha1.TenantMember{
				Kind: v1alpha1.MemberGroup, Name: "oidc:" + name + "-" + string(role), Role: role,
			})
		}
		t.Spec.Robots = []v1alpha1.TenantRobot{{Name: "ci", Role: v1alpha1.TenantEditor}}
		if err := p.Client.Create(ctx, t); err != nil {
			return err
		}
	}
	return p.Poll(time.Second).Do(ctx, "tenants", func(ctx context.Context) error {
		var l v1alpha1.TenantList
		if err := p.Client.List(ctx, &l); err != nil {
			return err
		}
		ready := 0
		for i := range l.Items {
			if meta.IsStatusConditionTrue(l.Items[i].Status.Conditions, v1alpha1.ConditionReady) {
				ready++
			}
		}
		if ready < b.tenants {
			return fmt.Errorf("%d of %d are ready", ready, b.tenants)
		}
		return nil
	})
}
