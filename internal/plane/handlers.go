package plane

import (
	"context"
	"encoding/json"
	"maps"
	"net/http"

	"github.com/polder-kaas/polder/internal/plane/etcd"
	"github.com/polder-kaas/polder/internal/plane/etcd/maintenance"
)

// handlers serve the plane's own paths, behind authentication and authorisation: only administrators have a right to
// those that no role names.
func (p *Plane) handlers(store *etcd.Etcd) map[string]http.Handler {
	all := metricsHandlers(p.metrics)
	maps.Copy(all, p.frontHandlers())
	all[maintenance.Path] = maintainHandler(store)
	return all
}

func maintainHandler(store *etcd.Etcd) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost {
			w.Header().Set("Allow", http.MethodPost)
			http.Error(w, "maintenance is asked for with POST", http.StatusMethodNotAllowed)
			return
		}
		// Half a maintenance is of no use, so it goes on if whoever asked for it is gone.
		result, err := store.Maintain(context.WithoutCancel(r.Context()))
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(result) // the client may be gone
	})
}
