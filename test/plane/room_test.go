package plane

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/polder-kaas/polder/test/testenv"
)

// A cluster that the computer has no room for is refused, with the limit that is in the way and how to raise it. One that
// came before the class of its release was known is accepted, says the same, and is not made.
func TestNoRoom(t *testing.T) {
	p := testenv.NewPlane(t, testenv.NewTree(t, false))
	p.OfferShipped, p.MaxFiles = true, 1000
	p.Start(t)
	p.AwaitReady(t)
	c, ns := p.Client(t), p.CreateNamespace(t)
	const want = "may open 1000 files, and the cluster needs 1024"
	refused := func(name string) error {
		o := newOf("WorkloadCluster", ns, name)
		unstructured.RemoveNestedField(o.Object, "spec", "paused")
		err := c.Create(t.Context(), o)
		if err == nil {
			checkSaysNoRoom(t, c, o, want)
			return fmt.Errorf("it is accepted")
		}
		if !strings.Contains(err.Error(), want) {
			return err
		}
		return nil
	}
	n := 0
	testenv.Eventually(t, wait, func() error { n++; return refused(fmt.Sprint("big-", n)) })
	t.Logf("refused at attempt %d", n)
}

// checkSaysNoRoom waits until a cluster that was accepted says that there is no room for it.
func checkSaysNoRoom(t *testing.T, c client.Client, o *unstructured.Unstructured, want string) {
	t.Helper()
	testenv.Eventually(t, wait, func() error {
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(o), o); err != nil {
			return err
		}
		message, _, _ := unstructured.NestedString(o.Object, "status", "message")
		actor, _, _ := unstructured.NestedString(o.Object, "status", "actor")
		made, _, _ := unstructured.NestedString(o.Object, "status", "clusterUID")
		if !strings.Contains(message, want) || actor != "PlatformOperator" || made != "" {
			return fmt.Errorf("%s must act: %s (Cluster %s)", actor, message, made)
		}
		return nil
	})
}
