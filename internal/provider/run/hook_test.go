package run

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/polder-kaas/polder/internal/guard"
	"github.com/polder-kaas/polder/provider/contract"
)

type provider struct{}

func (provider) Describe() contract.Description                           { return contract.Description{Name: "my-cloud"} }
func (provider) Validate(context.Context, contract.Input) field.ErrorList { return nil }
func (provider) Topology(context.Context, contract.Input) (contract.Topology, error) {
	return contract.Topology{}, nil
}

func hookOf(t *testing.T, reached string) (*hook, error) {
	t.Helper()
	h, err := newHook(t.Context(), Config{Listen: "127.0.0.1:0", Reached: reached}, guard.New(provider{}, time.Second))
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
			h, err := hookOf(t, c.reached)
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
		h, err := hookOf(t, "")
		if err != nil || h.url != "https://"+h.listener.Addr().String() {
			t.Errorf("%+v, %v", h, err)
		}
	})
}

func TestAPortThatIsTaken(t *testing.T) {
	first, err := hookOf(t, "")
	if err != nil {
		t.Fatal(err)
	}
	_, err = newHook(t.Context(), Config{Listen: first.listener.Addr().String()}, first.guard)
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
			cert, ca, err := certificate(c.host)
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
	one, _, err := certificate("h")
	if err != nil {
		t.Fatal(err)
	}
	_, ca, err := certificate("h")
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
	hook   *hook
	client client.Client
}

func (m manager) GetClient() client.Client         { return m.client }
func (m manager) GetWebhookServer() webhook.Server { return m.hook.server }
func (m manager) GetScheme() *runtime.Scheme       { return m.client.Scheme() }

// serves is a hook that has been registered with a manager.
func serves(t *testing.T, reached string) *hook {
	t.Helper()
	h, err := hookOf(t, reached)
	if err != nil {
		t.Fatal(err)
	}
	scheme, err := newScheme(provider{})
	if err != nil {
		t.Fatal(err)
	}
	h.register(manager{hook: h, client: fake.NewClientBuilder().WithScheme(scheme).Build()})
	return h
}

func TestWhereAdmissionIs(t *testing.T) {
	h := serves(t, "https://provider.example:9443/")
	if got := h.admission(); got.URL != "https://provider.example:9443/validate-workloadcluster" || got.CABundle != string(h.ca) {
		t.Errorf("%+v", got)
	}
}

// What is told is what is served: with the certificate that is vouched for, and under that path.
func TestServe(t *testing.T) {
	h := serves(t, "")
	told := h.admission()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- h.server.Start(ctx) }()
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM([]byte(told.CABundle))
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}, DialContext: (&net.Dialer{}).DialContext}
	answer, err := (&http.Client{Transport: transport, Timeout: 30 * time.Second}).Post(told.URL, "application/json", strings.NewReader("{}"))
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
}
