package providertest_test

import (
	"testing"

	"github.com/polder-kaas/polder/internal/providers/local"
	"github.com/polder-kaas/polder/provider"
	"github.com/polder-kaas/polder/provider/providertest"
	"github.com/polder-kaas/polder/test/instant"
)

// All providers of this repository keep the contract.
func TestProvidersKeepTheContract(t *testing.T) {
	for _, p := range []provider.Provider{
		local.Provider{Version: "v0.1.0", Kubernetes: "v1.37.1"},
		instant.New(),
	} {
		t.Run(p.Describe().Name, func(t *testing.T) { providertest.Run(t, p, providertest.Options{}) })
	}
}
