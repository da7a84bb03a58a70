package watchlimit

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"
)

func TestWatchLimit(t *testing.T) {
	began, release := make(chan struct{}), make(chan struct{})
	h := &Handler{
		IsExempt: func(u user.Info) bool { return u.GetName() == "operator" },
		Next: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			if r.URL.Query().Get("watch") != "" {
				began <- struct{}{}
				<-release
			}
		}),
	}
	ask := func(who, path string) *httptest.ResponseRecorder {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, http.NoBody)
		f := &request.RequestInfoFactory{APIPrefixes: sets.NewString("api", "apis"), GrouplessAPIPrefixes: sets.NewString("api")}
		info, err := f.NewRequestInfo(r)
		if err != nil {
			t.Error(err)
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r.WithContext(request.WithUser(request.WithRequestInfo(r.Context(), info), &user.DefaultInfo{Name: who})))
		return w
	}
	const ofA, ofB, ofAll = "/apis/polder.dev/v1alpha1/namespaces/a/workloadclusters", "/apis/polder.dev/v1alpha1/namespaces/b/workloadclusters", "/apis/polder.dev/v1alpha1/providers"
	const watch = "?watch=true"
	ended, open := make(chan int), 0
	begin := func(who, path string) {
		go func() { ended <- ask(who, path+watch).Code }()
		<-began
		open++
	}
	for range Most {
		begin("ann", ofA)
	}
	refused := func(who, path, words string) {
		t.Helper()
		if w := ask(who, path+watch); w.Code != http.StatusTooManyRequests || !strings.Contains(w.Body.String(), words) || w.Header().Get("Retry-After") != "10" {
			t.Errorf("%d %s", w.Code, w.Body)
		}
	}
	refused("ann", ofA, "namespace a has 160 watches open, and may have no more")
	refused("bob", ofA, "namespace a has")
	begin("ann", ofB)
	begin("operator", ofA)
	if w := ask("ann", ofA); w.Code != http.StatusOK {
		t.Errorf("a list: %d %s", w.Code, w.Body)
	}
	for range Most {
		begin("ann", ofAll)
	}
	refused("ann", ofAll, "you have 160 watches open")
	begin("bob", ofAll)
	close(release)
	for range open {
		if code := <-ended; code != http.StatusOK {
			t.Errorf("one ends with %d", code)
		}
	}
	if len(h.open) > 0 {
		t.Errorf("still counted: %v", h.open)
	}
}
