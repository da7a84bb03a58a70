package runtimehooks

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	runtimehooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"
)

func TestExternalCall(t *testing.T) {
	var url, contentType string
	got := &runtimehooksv1.BeforeClusterUpgradeRequest{}
	config := startExtensionServer(t, map[string]http.HandlerFunc{"/prefix" + upgradePath + "gate": func(w http.ResponseWriter, r *http.Request) {
		url, contentType = r.URL.String(), r.Header.Get("Content-Type")
		if err := json.NewDecoder(r.Body).Decode(got); err != nil {
			t.Error(err)
		}
		answer(`{"apiVersion":"`+hooksV1+`","kind":"BeforeClusterUpgradeResponse","status":"Success","message":"wait","retryAfterSeconds":5}`)(w, r)
	}})
	config.Spec.ClientConfig.URL += "/prefix/"
	config.Spec.Settings = map[string]string{"a": "config", "b": "config"}
	config.Status.Handlers[0].TimeoutSeconds = 3
	c := warmClient(t, config)

	request := upgrade()
	request.Settings = map[string]string{"b": "request", "c": "request"}
	before := request.DeepCopy()
	response := &runtimehooksv1.BeforeClusterUpgradeResponse{}
	if err := c.CallExtension(t.Context(), runtimehooksv1.BeforeClusterUpgrade, cluster("gold"), "gate.ext", request, response); err != nil {
		t.Fatal(err)
	}

	if want := "/prefix" + upgradePath + "gate?timeout=3s"; url != want {
		t.Errorf("posted to %s, want %s", url, want)
	}
	if contentType != "application/json" {
		t.Errorf("Content-Type is %q", contentType)
	}
	wantRequest := before.DeepCopy()
	wantRequest.APIVersion, wantRequest.Kind = hooksV1, "BeforeClusterUpgradeRequest"
	wantRequest.Settings = map[string]string{"a": "config", "b": "request", "c": "request"}
	if diff := cmp.Diff(wantRequest, got); diff != "" {
		t.Errorf("request sent (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(before, request); diff != "" {
		t.Errorf("request of the caller (-want +got):\n%s", diff)
	}
	want := &runtimehooksv1.BeforeClusterUpgradeResponse{}
	want.APIVersion, want.Kind = hooksV1, "BeforeClusterUpgradeResponse"
	want.Status, want.Message, want.RetryAfterSeconds = runtimehooksv1.ResponseStatusSuccess, "wait", 5
	if diff := cmp.Diff(want, response); diff != "" {
		t.Errorf("response (-want +got):\n%s", diff)
	}
}

func TestExternalOutcome(t *testing.T) {
	padded := func(size int) http.HandlerFunc { return answer(success + strings.Repeat(" ", size-len(success))) }
	tests := map[string]struct {
		f      http.HandlerFunc
		fail   string // error with failure policy Fail
		ignore string // error with failure policy Ignore
	}{
		"status Success":       {f: answer(success)},
		"largest body":         {f: padded(maxBody)},
		"body too large":       {f: padded(maxBody + 1), fail: "larger than 20971520 bytes"},
		"status Failure":       {answer(`{"status":"Failure","message":"because"}`), "with a failure: because", "with a failure: because"},
		"unknown status":       {answer(`{"status":"Perhaps","message":"because"}`), `unknown status "Perhaps": because`, `unknown status "Perhaps": because`},
		"no status":            {answer(`{"message":"because"}`), `unknown status "": because`, `unknown status "": because`},
		"body is not JSON":     {f: answer("<html>"), fail: "decoding the response"},
		"body is another type": {f: answer(`{"status":7}`), fail: "decoding the response"},
		"body is cut off": {
			f: func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Length", "100")
				_, _ = w.Write([]byte(success))
			},
			fail: "reading the response: unexpected EOF",
		},
		"error status": {
			f: func(w http.ResponseWriter, _ *http.Request) {
				http.Error(w, strings.Repeat("x", maxQuote)+"cut here", http.StatusInternalServerError)
			},
			fail: `got status 500, want 200: "` + strings.Repeat("x", maxQuote) + `"`,
		},
		"other good status": {f: func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }, fail: "got status 204"},
		"connection closed": {f: func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, fail: "EOF"},
	}
	for name, tt := range tests {
		for policy, want := range map[runtimev1.FailurePolicy]string{"": tt.fail, "Fail": tt.fail, "Ignore": tt.ignore} {
			t.Run(name+" with policy "+string(policy), func(t *testing.T) {
				config := startGateServer(t, tt.f)
				config.Status.Handlers[0].FailurePolicy = policy
				response, err := callGate(t.Context(), warmClient(t, config), "gate.ext")
				checkError(t, err, want)
				if err == nil && response.Status != runtimehooksv1.ResponseStatusSuccess {
					t.Errorf("no error and status %q", response.Status)
				}
				if tt.ignore != "" && response.Message != "because" {
					t.Errorf("message %q of a failure, want the one of the handler", response.Message)
				}
			})
		}
	}
}

func TestRedirectIsNotFollowed(t *testing.T) {
	followed := false
	config := startExtensionServer(t, map[string]http.HandlerFunc{
		upgradePath + "gate": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
		},
		"/elsewhere": func(w http.ResponseWriter, r *http.Request) {
			followed = true
			answer(success)(w, r)
		},
	})
	_, err := callGate(t.Context(), warmClient(t, config), "gate.ext")
	checkError(t, err, "got status 307, want 200")
	if followed {
		t.Error("the redirect was followed")
	}
}

func TestUnreachableServer(t *testing.T) {
	srv := httptest.NewTLSServer(http.NotFoundHandler())
	config := withServerCA(srv, extensionConfig("ext", srv.URL, "gate.ext"))
	srv.Close()
	c := warmClient(t, config)
	_, err := callGate(t.Context(), c, "gate.ext")
	checkError(t, err, `calling extension handler "gate.ext": sending the request`)

	config.Status.Handlers[0].FailurePolicy = runtimev1.FailurePolicyIgnore
	if err := c.Register(config); err != nil {
		t.Fatal(err)
	}
	_, err = callGate(t.Context(), c, "gate.ext")
	checkError(t, err, "")
}

func TestExternalTimeout(t *testing.T) {
	tests := map[string]struct {
		seconds int32
		policy  runtimev1.FailurePolicy
		after   time.Duration
		want    string
	}{
		"default":     {after: 10 * time.Second, want: "no answer within 10s"},
		"its own":     {seconds: 3, after: 3 * time.Second, want: "no answer within 3s"},
		"at most":     {seconds: 1 << 30, after: 30 * time.Second, want: "no answer within 30s"},
		"negative":    {seconds: -1, after: 10 * time.Second, want: "no answer within 10s"},
		"and ignored": {seconds: 3, policy: runtimev1.FailurePolicyIgnore, after: 3 * time.Second},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, config := newPipedClient(t, hangUntilDone)
				config.Status.Handlers[0].TimeoutSeconds = tt.seconds
				config.Status.Handlers[0].FailurePolicy = tt.policy
				warmUp(t, c, config)
				start := time.Now()
				_, err := callGate(t.Context(), c, "gate.ext")
				if took := time.Since(start); took != tt.after {
					t.Errorf("returned after %s, want %s", took, tt.after)
				}
				checkError(t, err, tt.want)
			})
		})
	}
}

func TestTimeoutCoversBody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, config := newPipedClient(t, func(w http.ResponseWriter, r *http.Request) {
			_, _ = w.Write([]byte(`{"status":`))
			_ = http.NewResponseController(w).Flush()
			hangUntilDone(w, r)
			panic(http.ErrAbortHandler) // no proper end of the body in the last moment
		})
		warmUp(t, c, config)
		start := time.Now()
		_, err := callGate(t.Context(), c, "gate.ext")
		if took := time.Since(start); took != 10*time.Second {
			t.Errorf("returned after %s, want 10s", took)
		}
		checkError(t, err, "reading the response")
	})
}
