//go:build fault

package plane

import (
	"encoding/json"
	"os"
	"path/filepath"
	"time"

	"github.com/polder-kaas/polder/internal/plane/etcd"
)

// storeSettings is the file "store.json" in the data directory: tests make small and quick what is large and slow.
type storeSettings struct {
	RecordSeconds float64 `json:"recordSeconds,omitempty"`
	QuotaBytes    int64   `json:"quotaBytes,omitempty"`
}

// adjustStore applies the settings, if there are any.
func adjustStore(dir string, cfg etcd.Config) (etcd.Config, error) {
	b, err := os.ReadFile(filepath.Join(dir, "store.json"))
	if err != nil {
		return cfg, nil // no file: as in earnest
	}
	var s storeSettings
	if err := json.Unmarshal(b, &s); err != nil {
		return cfg, err
	}
	cfg.Quota = s.QuotaBytes
	cfg.RecordInterval = time.Duration(s.RecordSeconds * float64(time.Second))
	return cfg, nil
}
