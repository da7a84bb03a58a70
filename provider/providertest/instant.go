package providertest

import "github.com/polder-kaas/polder/provider/providertest/instant"

// Instant is a whole provider in memory, with which a cluster is ready in a real plane within a moment and costs
// next to nothing: for tests of what becomes of many clusters.
type Instant = instant.Provider

// NewInstant makes an instant provider without clusters.
func NewInstant() *Instant { return instant.New() }
