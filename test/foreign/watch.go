package foreign

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
)

// change is what those who watch are told.
type change struct {
	Type    string         `json:"type"`
	Cluster map[string]any `json:"cluster"`
}

// tell sends a change to all who watch; who does not read is cut off.
func (s *Server) tell(t *tenant, c change) {
	for w := range t.watchers {
		select {
		case w <- c:
		default:
			close(w)
			delete(t.watchers, w)
		}
	}
}

// watchClusters begins under the lock, so that nothing is missed between what is there and what changes.
func (s *Server) watchClusters(c *call) (*reply, *problem) {
	first := []change{}
	for _, name := range slices.Sorted(maps.Keys(c.tenant.clusters)) {
		first = append(first, change{"ADDED", s.present(c.tenant.clusters[name])})
	}
	const most = 1000
	changes := make(chan change, most)
	c.tenant.watchers[changes] = true
	t := c.tenant
	return &reply{stream: func() {
		defer func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			delete(t.watchers, changes)
		}()
		c.w.Header().Set("Content-Type", "text/event-stream")
		flush := http.NewResponseController(c.w)
		send := func(event string, data any) {
			b, _ := json.Marshal(data)
			fmt.Fprintf(c.w, "event: %s\ndata: %s\n\n", event, b)
			_ = flush.Flush()
		}
		for _, x := range first {
			send("cluster", x)
		}
		if !s.is(NoSynced) {
			send("synced", struct{}{})
		}
		for {
			select {
			case <-c.Context().Done():
				return
			case x, ok := <-changes:
				if !ok {
					return
				}
				send("cluster", x)
			}
		}
	}}, nil
}
