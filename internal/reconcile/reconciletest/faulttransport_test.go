package reconciletest

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

func TestIsWrite(t *testing.T) {
	for call, want := range map[string]bool{
		"GET /api/v1/namespaces/n/configmaps":                         false,
		"POST /api/v1/namespaces/n/configmaps":                        true,
		"PATCH /apis/g/v1/namespaces/n/things/a/status":               true,
		"PUT /apis/g/v1/things/a":                                     true,
		"DELETE /apis/g/v1/namespaces/n/things":                       true,
		"PATCH /apis/g/v1/namespaces/n/things/a?dryRun=All":           false,
		"POST /apis/events.k8s.io/v1/namespaces/n/events":             false,
		"PUT /apis/coordination.k8s.io/v1/namespaces/n/leases/l":      false,
		"POST /apis/authorization.k8s.io/v1/selfsubjectaccessreviews": false,
		"POST /v1/machines":                                           true, // of something else than Kubernetes
	} {
		method, url, _ := strings.Cut(call, " ")
		if got := isWrite(httptest.NewRequest(method, url, nil)); got != want {
			t.Errorf("%s: %t, want %t", call, got, want)
		}
	}
}

func TestDescribeRequest(t *testing.T) {
	for call, want := range map[string]string{
		"PATCH /apis/g/v1/namespaces/n/things/a/status": "PATCH things/a/status",
		"POST /api/v1/namespaces/n/configmaps":          "POST configmaps",
		"POST /api/v1/namespaces":                       "POST /api/v1/namespaces",
	} {
		method, url, _ := strings.Cut(call, " ")
		if got := describeRequest(httptest.NewRequest(method, url, nil)); got != want {
			t.Errorf("%s: %s, want %s", call, got, want)
		}
	}
}

// A crashed process sends nothing more, gets no answers, and its requests end when they are released.
func TestCrash(t *testing.T) {
	for name, at := range map[string]interruptPoint{"before": beforeWrite, "after": afterWrite} {
		t.Run(name, func(t *testing.T) {
			sent, killed := 0, false
			base := roundTripper(func(*http.Request) (*http.Response, error) {
				sent++
				return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader(""))}, nil
			})
			grave := make(chan struct{})
			w := newFaultTransport(faultPlan{interrupt: func(n int, m interruptPoint) bool { return n == 2 && m == at }}, func() { killed = true }, grave)
			rt := w.wrap(base)
			if res, err := rt.RoundTrip(httptest.NewRequest(http.MethodPost, "/a", nil)); err != nil || res.Body.Close() != nil {
				t.Fatal(err)
			}
			ended := make(chan error, 1)
			for _, method := range []string{http.MethodPost, http.MethodGet} { // one crashes, the other comes after the crash
				go func() { _, err := rt.RoundTrip(httptest.NewRequest(method, "/a", nil)); ended <- err }()
				<-w.crashed
			}
			select {
			case err := <-ended:
				t.Fatalf("the dead got an answer: %v", err)
			case <-time.After(20 * time.Millisecond):
			}
			close(grave)
			for range 2 {
				if err := <-ended; !errors.Is(err, errCrashed) {
					t.Errorf("let go, they got %v", err)
				}
			}
			want := 1
			if at == afterWrite {
				want = 2
			}
			if !killed || sent != want || len(w.listWrites()) != 2 {
				t.Errorf("killed: %t, %d requests sent, want %d; writes %q", killed, sent, want, w.listWrites())
			}
		})
	}
}
