// Package watchlimit bounds how many watches are open at the same time. A request for a list ends and makes room for
// others; a watch holds no place while it is open, and each begins with all that there is: a thousand of one customer
// kept the others waiting for seconds.
package watchlimit

import (
	"fmt"
	"net/http"
	"strconv"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
	"k8s.io/apiserver/pkg/endpoints/request"
)

// Most is how many watches there may be of one namespace or, without a namespace, of one user: more than the REST API
// lets one tenant have, which refuses in its own words.
const Most = 160

// retryAfter is when another may be open, in seconds.
const retryAfter = 10

// Handler refuses watches beyond Most. It stands behind authentication and authorisation.
type Handler struct {
	// IsExempt are those who are not counted: the plane's own controllers and its operator.
	IsExempt func(user.Info) bool
	Next     http.Handler

	mu   sync.Mutex
	open map[string]int
}

// ServeHTTP serves one request.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	info, found := request.RequestInfoFrom(r.Context())
	who, known := request.UserFrom(r.Context())
	if !found || !known || info.Verb != "watch" || h.IsExempt(who) {
		h.Next.ServeHTTP(w, r)
		return
	}
	whose := "you have"
	key := "user " + who.GetName()
	if info.Namespace != "" {
		key = "namespace " + info.Namespace
		whose = key + " has"
	}
	if !h.begin(key) {
		err := apierrors.NewTooManyRequests(
			fmt.Sprintf("%s %d watches open, and may have no more; end some of them", whose, Most), retryAfter)
		s := err.Status()
		s.APIVersion, s.Kind = "v1", "Status"
		w.Header().Set("Retry-After", strconv.Itoa(retryAfter))
		responsewriters.WriteRawJSON(int(s.Code), s, w)
		return
	}
	defer h.end(key)
	h.Next.ServeHTTP(w, r)
}

func (h *Handler) begin(key string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.open[key] >= Most {
		return false
	}
	if h.open == nil {
		h.open = map[string]int{}
	}
	h.open[key]++
	return true
}

func (h *Handler) end(key string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.open[key]--; h.open[key] == 0 {
		delete(h.open, key)
	}
}
