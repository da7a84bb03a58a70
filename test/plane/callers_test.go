package plane

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/polder-kaas/polder/test/testenv"
)

const readingAccount = "caller"

// grantReading makes a service account that may read ConfigMaps of a namespace.
func grantReading(t *testing.T, c client.Client, ns string) {
	t.Helper()
	of := metav1.ObjectMeta{Namespace: ns, Name: readingAccount}
	for _, o := range []client.Object{
		&corev1.ServiceAccount{ObjectMeta: of},
		&rbacv1.Role{ObjectMeta: of, Rules: []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"list"}}}},
		&rbacv1.RoleBinding{
			ObjectMeta: of, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: of.Name},
			Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: ns, Name: of.Name}},
		},
	} {
		if err := c.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
}

// callers send requests to a plane without end, each for what it may read.
type callers struct {
	end     context.CancelFunc
	running sync.WaitGroup

	mu      sync.Mutex
	answers map[string]map[int]int // of each caller, by code
}

// startCallers lets an administrator and a service account send requests. The plane may be down.
func startCallers(t *testing.T, admin *rest.Config, token, ns string) *callers {
	t.Helper()
	account := rest.AnonymousClientConfig(admin)
	account.BearerToken = token
	ctx, end := context.WithCancel(t.Context())
	a := &callers{end: end, answers: map[string]map[int]int{"administrator": {}, "service account": {}}}
	t.Cleanup(func() { end(); a.running.Wait() })
	for name, cfg := range map[string]*rest.Config{"administrator": admin, "service account": account} {
		h, err := rest.HTTPClientFor(cfg)
		if err != nil {
			t.Fatal(err)
		}
		a.running.Go(func() { a.ask(ctx, name, h, cfg.Host+"/api/v1/namespaces/"+ns+"/configmaps") })
	}
	return a
}

func (a *callers) ask(ctx context.Context, name string, h *http.Client, url string) {
	for ctx.Err() == nil {
		code := 0
		if r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil); err == nil {
			if answer, err := h.Do(r); err == nil {
				code = answer.StatusCode
				_ = answer.Body.Close() // nobody reads it
			}
		}
		a.mu.Lock()
		a.answers[name][code]++
		a.mu.Unlock()
		select {
		case <-ctx.Done():
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// verify checks that nobody was answered 401 or 403, and that all are answered by now.
func (a *callers) verify(t *testing.T) {
	t.Helper()
	testenv.Eventually(t, wait, func() error {
		a.mu.Lock()
		defer a.mu.Unlock()
		for name, codes := range a.answers {
			if codes[http.StatusOK] == 0 {
				return fmt.Errorf("the %s got no answer so far: %v", name, codes)
			}
		}
		return nil
	})
	a.end()
	a.running.Wait()
	for name, codes := range a.answers {
		if codes[http.StatusUnauthorized]+codes[http.StatusForbidden] > 0 {
			t.Errorf("while the plane starts, the %s gets these answers, by code: %v", name, codes)
		}
	}
}
