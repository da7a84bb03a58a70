package cluster

import (
	"context"
	"encoding/json"

	"github.com/hashicorp/terraform-plugin-framework/diag"
)

// memory is what is kept beside the state of a cluster, and shown to nobody.
type memory struct {
	// Generation of the spec that was read last. Whoever planned with it did not know of a later one.
	Generation int64 `json:"generation,omitempty"`
	// Unready says that the last apply did not see the cluster become ready. The next one waits for it.
	Unready bool `json:"unready,omitempty"`
}

const memoryKey = "memory"

// memoryReader and memoryWriter are what the framework keeps private data in.
type memoryReader interface {
	GetKey(ctx context.Context, key string) ([]byte, diag.Diagnostics)
}

type memoryWriter interface {
	SetKey(ctx context.Context, key string, value []byte) diag.Diagnostics
}

// readMemory returns what was kept; a cluster that was just imported has nothing.
func readMemory(ctx context.Context, from memoryReader) (m memory, diags diag.Diagnostics) {
	b, diags := from.GetKey(ctx, memoryKey)
	if len(b) == 0 {
		return m, diags
	}
	if err := json.Unmarshal(b, &m); err != nil {
		diags.AddError("What was kept of the cluster cannot be read", err.Error())
	}
	return m, diags
}

func (m memory) write(ctx context.Context, to memoryWriter) (diags diag.Diagnostics) {
	b, err := json.Marshal(m)
	if err != nil {
		diags.AddError("What is to be kept of the cluster cannot be written", err.Error())
		return diags
	}
	return to.SetKey(ctx, memoryKey, b)
}
