package health_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/polder-kaas/polder/internal/plane/health"
)

// checks answers as the API server does: with all checks if one fails, or if they are asked for.
func checks(code int) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text := "ok"
		if code != http.StatusOK || r.URL.Query().Has("verbose") {
			text = "[+]polder-etcd ok\n"
		}
		if r.URL.Query().Has("exclude") {
			code = http.StatusOK
		}
		w.WriteHeader(code)
		fmt.Fprint(w, text)
	})
}

func TestHideChecks(t *testing.T) {
	const ok, bad = http.StatusOK, http.StatusInternalServerError
	for name, c := range map[string]struct {
		user, path string
		code       int
		wantCode   int
		want       string
	}{
		"anonymous":                         {user.Anonymous, "/readyz", ok, ok, "ok"},
		"anonymous, who wants all":          {user.Anonymous, "/readyz?verbose", ok, ok, "ok"},
		"anonymous, for liveness":           {user.Anonymous, "/livez?verbose=1", ok, ok, "ok"},
		"anonymous, and a check fails":      {user.Anonymous, "/readyz", bad, bad, "not ready\n"},
		"anonymous, who leaves one out":     {user.Anonymous, "/readyz?exclude=polder-etcd", bad, bad, "not ready\n"},
		"nobody was authenticated":          {"", "/readyz?verbose", ok, ok, "ok"},
		"an operator":                       {"operator", "/readyz?verbose", ok, ok, "[+]polder-etcd ok\n[!]polder-x: look\n"},
		"an operator, for liveness":         {"operator", "/livez?verbose", ok, ok, "[+]polder-etcd ok\n"},
		"an operator, and a check fails":    {"operator", "/readyz", bad, bad, "[+]polder-etcd ok\n"},
		"a customer":                        {"customer", "/readyz?verbose", ok, ok, "ok"},
		"a customer, and a check fails":     {"customer", "/readyz?verbose&exclude=polder-etcd", bad, bad, "not ready\n"},
		"anonymous, at another path":        {user.Anonymous, "/version?verbose", ok, ok, "[+]polder-etcd ok\n"},
		"anonymous, at a path that is like": {user.Anonymous, "/readyz/etcd?verbose", ok, ok, "[+]polder-etcd ok\n"},
	} {
		t.Run(name, func(t *testing.T) {
			r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, c.path, http.NoBody)
			if c.user != "" {
				r = r.WithContext(request.WithUser(r.Context(), &user.DefaultInfo{Name: c.user}))
			}
			w := httptest.NewRecorder()
			health.HideChecks(checks(c.code), health.Config{
				Authorizer: authorizer.AuthorizerFunc(func(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
					if a.GetUser().GetName() == "operator" && a.GetVerb() == "get" && !a.IsResourceRequest() &&
						(a.GetPath() == "/readyz/ping" || a.GetPath() == "/livez/ping") {
						return authorizer.DecisionAllow, "", nil
					}
					return authorizer.DecisionNoOpinion, "", nil
				}),
				Warnings: func() []string { return []string{"polder-x: look"} },
			}).ServeHTTP(w, r)
			if w.Code != c.wantCode || w.Body.String() != c.want {
				t.Errorf("%d %q, want %d %q", w.Code, w.Body, c.wantCode, c.want)
			}
		})
	}
}
