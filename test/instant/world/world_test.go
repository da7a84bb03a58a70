package world

import (
	"context"
	"crypto/tls"
	"fmt"
	"net/netip"
	"runtime"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// fixture is a world that is served.
type fixture struct {
	*testing.T
	*World
}

func newFixture(t *testing.T) fixture {
	t.Helper()
	w := New()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx, 0) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return fixture{t, w}
}

func key(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: "test", Name: name}
}

// make makes a cluster that answers, and returns how its administrator reaches it.
func (f fixture) make(name string) (*rest.Config, *Authority) {
	f.Helper()
	at, err := f.Endpoint(f.Context(), key(name), netip.Addr{})
	if err != nil {
		f.Fatal(err)
	}
	ca, err := NewAuthority(name)
	if err != nil {
		f.Fatal(err)
	}
	if err := f.Serve(key(name), ca); err != nil {
		f.Fatal(err)
	}
	return f.access(at, ca, ca), ca
}

// access is the configuration of a user with a certificate of one CA, for a cluster of another.
func (f fixture) access(at netip.AddrPort, cluster, user *Authority) *rest.Config {
	f.Helper()
	certificate, key, err := user.IssueClientCertificate("admin", "system:masters")
	if err != nil {
		f.Fatal(err)
	}
	return &rest.Config{
		Host: "https://" + at.String(), QPS: -1, Timeout: 10 * time.Second,
		TLSClientConfig: rest.TLSClientConfig{CAData: cluster.Certificate, CertData: certificate, KeyData: key},
	}
}

func (f fixture) client(c *rest.Config) client.Client {
	f.Helper()
	out, err := client.New(c, client.Options{Scheme: clientgoscheme.Scheme})
	if err != nil {
		f.Fatal(err)
	}
	return out
}

func node(name string) Node {
	return Node{
		Name: name, ProviderID: "instant://test/" + name, Address: "198.18.0.1", Version: "v1.37.1", Zone: "zone-a",
		Capacity: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2")},
	}
}

func TestClustersAreApart(t *testing.T) {
	f := newFixture(t)
	a, _ := f.make("a")
	b, _ := f.make("b")
	if a.Host == b.Host || a.Host[strings.LastIndex(a.Host, ":"):] != b.Host[strings.LastIndex(b.Host, ":"):] {
		t.Errorf("two clusters must have two addresses and one port: %s, %s", a.Host, b.Host)
	}
	if err := f.AddNode(key("a"), node("n")); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		of   *rest.Config
		want int
	}{"a": {a, 1}, "b": {b, 0}} {
		var l corev1.NodeList
		if err := f.client(c.of).List(t.Context(), &l); err != nil || len(l.Items) != c.want {
			t.Errorf("cluster %s has %d nodes, %v", name, len(l.Items), err)
		}
	}
}

func TestWhoIsLetIn(t *testing.T) {
	f := newFixture(t)
	own, ca := f.make("a")
	_, other := f.make("b")
	at := netip.MustParseAddrPort(strings.TrimPrefix(own.Host, "https://"))
	nobody := rest.CopyConfig(own)
	nobody.CertData, nobody.KeyData = nil, nil
	missing := rest.CopyConfig(own)
	missing.Host = fmt.Sprintf("https://127.90.200.200:%d", at.Port())
	stranger := f.access(at, other, ca)
	for name, c := range map[string]struct {
		cfg   *rest.Config
		words string // of the error; "" if there is none
	}{
		"administrator":           {own, ""},
		"nobody":                  {nobody, "provide credentials"},
		"user of another cluster": {f.access(at, ca, other), "https://"},
		"who trusts another":      {stranger, "unknown authority"},
		"where there is none":     {missing, "tls"},
	} {
		rc, err := rest.UnversionedRESTClientFor(versioned(c.cfg))
		if err != nil {
			t.Fatal(err)
		}
		_, err = rc.Get().AbsPath("/api/v1/nodes").DoRaw(t.Context())
		switch {
		case c.words == "" && err != nil, c.words != "" && err == nil:
			t.Errorf("%s: %v", name, err)
		case err != nil && !strings.Contains(err.Error(), c.words):
			t.Errorf("%s: %v", name, err)
		}
	}
	if c, err := tls.Dial("tcp", at.String(), &tls.Config{InsecureSkipVerify: true, MaxVersion: tls.VersionTLS12}); err == nil {
		c.Close()
		t.Error("old versions of TLS are spoken")
	}
}

func versioned(c *rest.Config) *rest.Config {
	c.NegotiatedSerializer = clientgoscheme.Codecs.WithoutConversion()
	return c
}

func TestAddresses(t *testing.T) {
	f := newFixture(t)
	first, _ := f.make("a")
	kept := netip.MustParseAddr("127.90.0.9")
	at, err := f.Endpoint(t.Context(), key("old"), kept)
	if err != nil || at.Addr() != kept {
		t.Errorf("a cluster that had an address must keep it: %v, %v", at, err)
	}
	again, err := f.Endpoint(t.Context(), key("a"), netip.Addr{})
	if err != nil || "https://"+again.String() != first.Host {
		t.Errorf("an address must stay: %v, %v, was %s", again, err, first.Host)
	}
	for name, bad := range map[string]string{"another's": "127.90.0.9", "not of this machine": "192.0.2.1", "of another family": "::1"} {
		if at, err := f.Endpoint(t.Context(), key(name), netip.MustParseAddr(bad)); err == nil {
			t.Errorf("%s: %v", name, at)
		}
	}
	seen := map[netip.Addr]bool{}
	for i := range 600 {
		at, err := f.Endpoint(t.Context(), key(fmt.Sprint("many-", i)), netip.Addr{})
		last := at.Addr().As4()[3]
		if err != nil || seen[at.Addr()] || last == 0 || last == 255 || at.Addr() == kept {
			t.Fatalf("%v, %v", at, err)
		}
		seen[at.Addr()] = true
	}
	ca, err := NewAuthority("x")
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Serve(key("without an address"), ca); err == nil {
		t.Error("a cluster without an address is served")
	}
}

func TestForget(t *testing.T) {
	f := newFixture(t)
	cfg, _ := f.make("a")
	if err := f.AddNode(key("a"), node("n")); err != nil {
		t.Fatal(err)
	}
	c := f.client(cfg)
	if err := c.Get(t.Context(), client.ObjectKey{Name: "n"}, &corev1.Node{}); err != nil {
		t.Fatal(err)
	}
	f.DeleteCluster(key("a"))
	f.DeleteCluster(key("a")) // twice does no harm
	f.RemoveNode(key("n"))
	if err := c.Get(t.Context(), client.ObjectKey{Name: "n"}, &corev1.Node{}); err == nil || f.ClusterCount(key("a").Namespace) != 0 || f.IsServing(key("a")) {
		t.Errorf("the cluster still answers: %v, %d clusters", err, f.ClusterCount(key("a").Namespace))
	}
}

// A silent cluster takes connections and requests and answers neither; others are as before, and it answers once it may.
func TestSilence(t *testing.T) {
	f := newFixture(t)
	loud, _ := f.make("loud")
	quiet, _ := f.make("quiet")
	connected := f.client(quiet)
	if err := connected.List(t.Context(), &corev1.NodeList{}); err != nil {
		t.Fatal(err)
	}
	f.SetSilent(func(n types.NamespacedName) bool { return n.Name == "quiet" })
	fresh := rest.CopyConfig(quiet)
	fresh.Timeout = 500 * time.Millisecond
	discovery, err := rest.UnversionedRESTClientFor(versioned(fresh))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := discovery.Get().AbsPath("/").DoRaw(t.Context()); err == nil {
		t.Error("a new connection was answered")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	if err := connected.List(ctx, &corev1.NodeList{}); err == nil {
		t.Error("a request of an old connection was answered")
	}
	if err := f.client(loud).List(t.Context(), &corev1.NodeList{}); err != nil {
		t.Errorf("the other cluster: %v", err)
	}
	if _, ever := f.Waiting(); ever < 2 {
		t.Errorf("%d requests waited", ever)
	}
	f.SetSilent(nil)
	if err := connected.List(t.Context(), &corev1.NodeList{}); err != nil {
		t.Errorf("it may answer again: %v", err)
	}
	if now, _ := f.Waiting(); now != 0 {
		t.Errorf("%d requests still wait", now)
	}
}

// A cluster nobody talks to costs little memory; connections come on top.
func TestMemoryOfClusters(t *testing.T) {
	f := newFixture(t)
	const clusters, limit = 500, 32 << 10
	before := heap()
	for i := range clusters {
		name := fmt.Sprint("c", i)
		f.make(name)
		for n := range 2 {
			if err := f.AddNode(key(name), node(fmt.Sprint(name, "-", n))); err != nil {
				t.Fatal(err)
			}
		}
	}
	each := (heap() - before) / clusters
	t.Logf("%d bytes for each cluster with two nodes", each)
	if each > limit {
		t.Errorf("more than %d", limit)
	}
	runtime.KeepAlive(f)
}

func heap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
