package reconcile

import (
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/config"
)

// ControllerConfig returns what all managers here have in common. Names of controllers are checked for the whole
// process, which may run a manager again. The priority queue of controller-runtime up to 0.24.1 hands an item to a
// worker that has gone, if one comes while it is shut down, and holds a lock for ever (its issue 3538): a worker that
// ends later, and with it the process, would wait until it is killed.
func ControllerConfig() config.Controller {
	return config.Controller{SkipNameValidation: ptr.To(true), UsePriorityQueue: ptr.To(false)}
}
