package etcd

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"go.uber.org/zap"
)

// Records are made while others write, when etcd has the same revisions in its database and in buffers; each must be in
// them once, and the store that was killed then must fit.
func TestRecordsWhileOthersWrite(t *testing.T) {
	dir := newStoreDir(t)
	r := start(t, dir, nil)
	ctx, cancel := context.WithCancel(t.Context())
	var writers sync.WaitGroup
	for i := range 4 {
		writers.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				_, _ = r.kv.Put(ctx, fmt.Sprintf("/registry/%d/%d", i, n%700), strings.Repeat("x", n%3000))
				_, _ = r.kv.Get(ctx, fmt.Sprintf("/registry/%d/%d", i, n%700))
				if n%10 == 9 {
					_, _ = r.kv.Delete(ctx, fmt.Sprintf("/registry/%d/%d", i, n%700))
				}
			}
		})
	}
	var last int64
	for last < 5000 {
		var err error
		if last, err = r.writeRecords(t.Context(), r.server.Server); err != nil {
			t.Fatal(err)
		}
	}
	cancel()
	writers.Wait()
	r.stop(false)
	if err := Verify(t.Context(), filepath.Join(dir, "etcd"), zap.NewNop()); err != nil {
		t.Error(err)
	}
}
