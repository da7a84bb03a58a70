package operator

import (
	"encoding/pem"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"

	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/polder-kaas/polder/internal/workload"
	"github.com/polder-kaas/polder/test/testenv"
)

// balancer is a proxy in front of an API server that answers some requests itself, as load balancers do whose
// backends are away, and as API servers do for kinds they do not serve yet.
type balancer struct {
	*httptest.Server
	api  *rest.Config
	seen func(*http.Response) // of the API server; optional

	mu       sync.Mutex
	page     func(*http.Request) http.HandlerFunc // nil: the request goes on
	answered int                                  // with pages
}

// pages are what balancers answer.
var pages = map[string]http.HandlerFunc{
	"not found": http.NotFound,
	"not found in HTML": func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		w.WriteHeader(http.StatusNotFound)
		_, _ = w.Write([]byte("<html><body>There is nothing here.</body></html>"))
	},
	"HTML": func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = w.Write([]byte("<html><body>We are back soon.</body></html>"))
	},
	"JSON of another program": func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"status":"ok"}`))
	},
	"a Status that names nothing": func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusNotFound)
		_, _ = w.Write([]byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","message":"no route","code":404}`))
	},
	"bad gateway": func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no backend", http.StatusBadGateway) },
	"redirect":    func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/login", http.StatusFound) },
}

func newBalancer(t *testing.T, api *rest.Config) *balancer {
	t.Helper()
	to, err := url.Parse(api.Host)
	if err != nil {
		t.Fatal(err)
	}
	transport, err := rest.TransportFor(api)
	if err != nil {
		t.Fatal(err)
	}
	proxy := &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(to) },
		Transport:     transport,
		FlushInterval: -1,
		ErrorHandler:  func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) },
	}
	b := &balancer{api: api}
	proxy.ModifyResponse = func(r *http.Response) error {
		if b.seen != nil {
			b.seen(r)
		}
		return nil
	}
	b.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if page := b.choose(r); page != nil {
			page(w, r)
			return
		}
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(b.Close)
	return b
}

func (b *balancer) choose(r *http.Request) http.HandlerFunc {
	if r.URL.Path == "/login" {
		return pages["HTML"]
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.page == nil {
		return nil
	}
	page := b.page(r)
	if page != nil {
		b.answered++
	}
	return page
}

// answer sets which requests are answered with pages; nil: none.
func (b *balancer) answer(page func(*http.Request) http.HandlerFunc) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.page = page
}

// at answers each request with a random page, with a probability.
func (b *balancer) at(seed uint64, probability float64) {
	random := rand.New(rand.NewPCG(seed, 0))
	var all []http.HandlerFunc
	for _, name := range []string{"not found", "not found in HTML", "HTML", "JSON of another program", "a Status that names nothing", "bad gateway", "redirect"} {
		all = append(all, pages[name])
	}
	b.answer(func(*http.Request) http.HandlerFunc {
		if random.Float64() >= probability {
			return nil
		}
		return all[random.IntN(len(all))]
	})
}

// certificate is the balancer's own, which stands for the API server's CA.
func (b *balancer) certificate() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: b.Certificate().Raw})
}

// config leads through the balancer.
func (b *balancer) config() *rest.Config {
	return &rest.Config{Host: b.URL, QPS: -1, TLSClientConfig: rest.TLSClientConfig{CAData: b.certificate()}}
}

// once answers the nth request of this method and path with a page, and no other.
func once(method, path string, n int, page http.HandlerFunc) func(*http.Request) http.HandlerFunc {
	return func(r *http.Request) http.HandlerFunc {
		if r.Method != method || !strings.Contains(r.URL.Path, path) {
			return nil
		}
		if n--; n != 0 {
			return nil
		}
		return page
	}
}

// newLive makes a client as the operator has it: past caches, with a REST mapper that can be reset.
func newLive(t *testing.T, cfg *rest.Config) client.Client {
	t.Helper()
	d, err := discovery.NewDiscoveryClientForConfig(cfg)
	if err != nil {
		t.Fatal(err)
	}
	c, err := client.New(cfg, client.Options{Scheme: testenv.Scheme(t), Mapper: workload.NewRESTMapper(d.RESTClient())})
	if err != nil {
		t.Fatal(err)
	}
	return c
}
