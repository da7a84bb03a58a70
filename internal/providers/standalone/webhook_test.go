package standalone

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/polder-kaas/polder/internal/providers/guard"
	"github.com/polder-kaas/polder/provider"
)

type stubProvider struct{}

func (stubProvider) Describe() provider.Description                           { return provider.Description{Name: "my-cloud"} }
func (stubProvider) Validate(context.Context, provider.Input) field.ErrorList { return nil }
func (stubProvider) Topology(context.Context, provider.Input) (provider.Topology, error) {
	return provider.Topology{}, nil
}

func guarded(t *testing.T) *guard.Guard {
	t.Helper()
	g, err := guard.New(t.Context(), stubProvider{}, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func newTestWebhook(t *testing.T, reached string) (*admissionWebhook, error) {
	t.Helper()
	h, err := newAdmissionWebhook(t.Context(), Config{Listen: "127.0.0.1:0", PublicURL: reached}, guarded(t))
	if err == nil {
		t.Cleanup(h.close)
	}
	return h, err
}

func TestUnderWhichURLItIsReached(t *testing.T) {
	for name, c := range map[string]struct {
		reached, want string
		ok            bool
	}{
		"a name":                    {"https://provider.example:9443", "https://provider.example:9443", true},
		"a name without a port":     {"https://provider.example", "https://provider.example", true},
		"an address":                {"https://[fd00::1]:9443", "https://[fd00::1]:9443", true},
		"a path of a proxy":         {"https://proxy.example/cloud", "https://proxy.example/cloud", true},
		"slashes at its end":        {"https://provider.example:9443//", "https://provider.example:9443", true},
		"no encryption":             {"http://provider.example:9443", "", false},
		"no scheme":                 {"provider.example:9443", "", false},
		"no host":                   {"https://:9443", "", false},
		"no URL":                    {"https://%zz", "", false},
		"a query":                   {"https://provider.example?a=b", "", false},
		"an address that is none":   {"https://0.0.0.0:9443", "", false},
		"an address of IPv6, alike": {"https://[::]:9443", "", false},
	} {
		t.Run(name, func(t *testing.T) {
			h, err := newTestWebhook(t, c.reached)
			if !c.ok {
				if err == nil || !strings.HasSuffix(err.Error(), "is no URL under which the plane reaches admission; write https://HOST:PORT") {
					t.Errorf("%v", err)
				}
				return
			}
			if err != nil || h.url != c.want {
				t.Errorf("%+v, %v", h, err)
			}
		})
	}
	t.Run("where it listens, if nothing is said", func(t *testing.T) {
		h, err := newTestWebhook(t, "")
		if err != nil || h.url != "https://"+h.server.listener.Addr().String() {
			t.Errorf("%+v, %v", h, err)
		}
	})
}

func TestAPortThatIsTaken(t *testing.T) {
	first, err := newTestWebhook(t, "")
	if err != nil {
		t.Fatal(err)
	}
	_, err = newAdmissionWebhook(t.Context(), Config{Listen: first.server.listener.Addr().String()}, first.guard)
	if err == nil || !strings.HasSuffix(err.Error(), "; choose another address") {
		t.Error(err)
	}
}

func TestCertificate(t *testing.T) {
	for name, c := range map[string]struct {
		host, asked string
		ok          bool
	}{
		"a name":               {"provider.example", "provider.example", true},
		"an address":           {"127.0.0.1", "127.0.0.1", true},
		"an address of IPv6":   {"fd00::1", "fd00::1", true},
		"another name":         {"provider.example", "other.example", false},
		"another address":      {"127.0.0.1", "127.0.0.2", false},
		"a name for addresses": {"provider.example", "127.0.0.1", false},
	} {
		t.Run(name, func(t *testing.T) {
			cert, ca, err := newCertificate(c.host, time.Now())
			if err != nil {
				t.Fatal(err)
			}
			leaf, err := x509.ParseCertificate(cert.Certificate[0])
			if err != nil {
				t.Fatal(err)
			}
			roots := x509.NewCertPool()
			if !roots.AppendCertsFromPEM(ca) {
				t.Fatalf("%s", ca)
			}
			for _, at := range []time.Time{time.Now(), time.Now().Add(-time.Minute), time.Now().AddDate(5, 0, 0)} { // clocks differ, and processes live long
				_, err = leaf.Verify(x509.VerifyOptions{Roots: roots, DNSName: c.asked, CurrentTime: at, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}})
				if (err == nil) != c.ok {
					t.Errorf("at %s: %v", at, err)
				}
			}
		})
	}
}

func TestEachRunHasACertificateOfItsOwn(t *testing.T) {
	one, _, err := newCertificate("h", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	_, ca, err := newCertificate("h", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(one.Certificate[0])
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca)
	if _, err := leaf.Verify(x509.VerifyOptions{Roots: roots}); err == nil {
		t.Error("one vouches for the other")
	}
}

// manager has what registering needs, and nothing else.
type manager struct {
	ctrl.Manager
	webhook *admissionWebhook
	client  client.Client
	elected chan struct{}
}

func (m manager) Elected() <-chan struct{}         { return m.elected }
func (m manager) GetClient() client.Client         { return m.client }
func (m manager) GetWebhookServer() webhook.Server { return m.webhook.server }
func (m manager) GetScheme() *apiruntime.Scheme    { return m.client.Scheme() }

// serves returns a webhook that has been registered with a manager, and a function that elects its process.
func serves(t *testing.T, cfg Config) (h *admissionWebhook, elect func()) {
	t.Helper()
	h, err := newAdmissionWebhook(t.Context(), cfg, guarded(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.close)
	scheme, err := newScheme(stubProvider{})
	if err != nil {
		t.Fatal(err)
	}
	elected := make(chan struct{})
	h.register(manager{webhook: h, client: fake.NewClientBuilder().WithScheme(scheme).Build(), elected: elected})
	return h, func() { close(elected) }
}

// free returns an address that nobody listens on.
func free(t *testing.T) string {
	t.Helper()
	l, _, err := listen(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().String()
}

func TestWhereAdmissionIs(t *testing.T) {
	h, _ := serves(t, Config{Listen: "127.0.0.1:0", PublicURL: "https://provider.example:9443/"})
	if got := h.providerAdmission(); got.URL != "https://provider.example:9443/validate-workloadcluster" || got.CABundle != string(h.ca) {
		t.Errorf("%+v", got)
	}
}

// The published URL and certificate are those that are served.
func TestServe(t *testing.T) {
	for name, address := range map[string]string{"any port": "127.0.0.1:0", "a port of one's choice": free(t)} {
		t.Run(name, func(t *testing.T) {
			h, elect := serves(t, Config{Listen: address})
			told := h.providerAdmission()
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan error, 1)
			elect()
			go func() { done <- h.server.Start(ctx) }()
			roots := x509.NewCertPool()
			roots.AppendCertsFromPEM([]byte(told.CABundle))
			plane := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}, Timeout: 30 * time.Second}
			answer, err := ask(t, plane, told.URL)
			if err != nil {
				t.Fatal(err)
			}
			if answer.Body.Close() != nil || answer.StatusCode != http.StatusOK {
				t.Errorf("%+v", answer)
			}
			cancel()
			if err := <-done; err != nil {
				t.Error(err)
			}
		})
	}
}

// ask sends requests until somebody listens.
func ask(t *testing.T, plane *http.Client, at string) (answer *http.Response, err error) {
	t.Helper()
	for until := time.Now().Add(30 * time.Second); time.Now().Before(until); runtime.Gosched() {
		if answer, err = plane.Post(at, "application/json", strings.NewReader("{}")); err == nil {
			return answer, nil
		}
	}
	return nil, err
}

// The plane knows the certificate of the leader alone, so another process must not be found.
func TestOnlyTheLeaderListens(t *testing.T) {
	address := free(t)
	h, _ := serves(t, Config{Listen: address, PublicURL: "https://provider.example"})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- h.server.Start(ctx) }()
	leader, elect := serves(t, Config{Listen: address, PublicURL: "https://provider.example"}) // it could not, if the other listened
	elect()
	led, stop := context.WithCancel(t.Context())
	go func() { done <- leader.server.Start(led) }()
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(leader.ca)
	plane := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, ServerName: "provider.example"}}, Timeout: 30 * time.Second}
	if answer, err := ask(t, plane, "https://"+address+webhookPath); err != nil || answer.Body.Close() != nil {
		t.Error(err)
	}
	cancel()
	stop()
	for range 2 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

func TestAPortThatWasTakenSince(t *testing.T) {
	address := free(t)
	h, elect := serves(t, Config{Listen: address})
	l, _, err := listen(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	elect()
	if err := h.server.Start(t.Context()); err == nil || !strings.HasSuffix(err.Error(), "; choose another address") {
		t.Error(err)
	}
}
