// Package reconcile runs the reconcilers of Polder through internal/reconcile/reconciletest, against the API
// server of a plane that does not run them itself; and that harness through reconcilers with faults.
package reconcile

import (
	"testing"

	"github.com/polder-kaas/polder/internal/reconcile/reconciletest"
	"github.com/polder-kaas/polder/test/testenv"
)

// shared runs Cluster API, but none of our own controllers.
var shared = testenv.NewSharedWithout("provider-local", "operator")

func api(t *testing.T) reconciletest.API {
	t.Helper()
	return reconciletest.API{Config: shared.Get(t).RESTConfig(t), Scheme: testenv.Scheme(t)}
}
