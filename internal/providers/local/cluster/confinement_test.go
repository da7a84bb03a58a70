package cluster

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	infrav1 "github.com/polder-kaas/polder/api/infrastructure/v1alpha1"
	"github.com/polder-kaas/polder/api/v1alpha1"
	"github.com/polder-kaas/polder/internal/providers/local/hostapi"
)

func TestCheckConfinement(t *testing.T) {
	own := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "own"}}
	customers := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "customers", Labels: map[string]string{v1alpha1.CustomerLabel: ""}}}
	enough := hostapi.Confinement{Landlock: 3, Seccomp: true, Namespaces: true}
	for name, c := range map[string]struct {
		namespace *corev1.Namespace
		offered   hostapi.Confinement
		allowed   bool
		refused   bool
	}{
		"enough":                      {namespace: customers, offered: enough},
		"too little, the operator's":  {namespace: own},
		"too little, a customer's":    {namespace: customers, refused: true},
		"no namespaces":               {namespace: customers, offered: hostapi.Confinement{Landlock: 7, Seccomp: true, Missing: "no namespaces"}, refused: true},
		"old Landlock":                {namespace: customers, offered: hostapi.Confinement{Landlock: 2, Seccomp: true, Namespaces: true}, refused: true},
		"too little, but it is meant": {namespace: customers, allowed: true},
	} {
		t.Run(name, func(t *testing.T) {
			r := &Reconciler{
				APIReader: fake.NewClientBuilder().WithObjects(own, customers).Build(), AllowUnconfined: c.allowed, Confinement: func() hostapi.Confinement { return c.offered },
			}
			local := &infrav1.LocalCluster{ObjectMeta: metav1.ObjectMeta{Namespace: c.namespace.Name, Name: "c"}}
			err := r.checkConfinement(t.Context(), newScope(local, nil))
			if (err != nil) != c.refused {
				t.Fatalf("error %v", err)
			}
			if !c.refused {
				return
			}
			got := hostRunningCondition(local)
			if got == nil || got.Status != metav1.ConditionFalse || got.Reason != infrav1.NotSupportedReason || !strings.Contains(got.Message, "--local-unconfined") {
				t.Errorf("condition %+v", got)
			}
		})
	}
	// Whose a namespace is must be known before its cluster is made.
	r := &Reconciler{APIReader: client.Reader(fake.NewClientBuilder().Build()), Confinement: func() hostapi.Confinement { return hostapi.Confinement{} }}
	if err := r.checkConfinement(t.Context(), newScope(&infrav1.LocalCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "gone"}}, nil)); err == nil {
		t.Error("an unknown namespace is not refused")
	}
}
