// Package translations keeps kubectl's translations out of processes that are not kubectl. Kubectl's packages ask for
// them while they are initialized, so every polder would unpack them, and each child that renders charts too: that is a
// third of the time such a process takes to start.
package translations

import (
	"os"
	"slices"

	"k8s.io/kubectl/pkg/util/i18n"
)

// It must be set before kubectl's commands are initialized: this package needs nothing but i18n, and comes before them
// by its path.
var _ = i18n.SetLoadTranslationsFunc(func() error {
	if !slices.Contains(os.Args, "kubectl") {
		return nil
	}
	return i18n.LoadTranslations("kubectl", nil)
})
