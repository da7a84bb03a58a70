package plane

import (
	"bytes"
	"testing"
	"time"

	"github.com/polder-kaas/polder/internal/plane/etcd/maintenance"
)

func TestMaintenanceIsTold(t *testing.T) {
	r := maintenance.Result{Before: maintenance.Sizes{File: 3_000_000_000}, After: maintenance.Sizes{File: 12_300_000}, Limit: 4 << 30,
		Blocked: 1540 * time.Millisecond, Writable: true}
	for want, change := range map[string]func(*maintenance.Result){
		"": func(*maintenance.Result) {},
		"It takes no changes: there is no room.\n": func(r *maintenance.Result) { r.Writable, r.Problem = false, "there is no room" },
	} {
		change(&r)
		var b bytes.Buffer
		if err := printMaintenance(&b, r); err != nil {
			t.Fatal(err)
		}
		want = "The store has 11 MB now, and had 2.8 GB; it may have 4.0 GB. Nobody was answered for 1.54s.\n" + want
		if b.String() != want {
			t.Errorf("said %q, want %q", b.String(), want)
		}
		r.Writable = true
	}
}
