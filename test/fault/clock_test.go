package fault

import (
	"encoding/binary"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/polder-kaas/polder/api/v1alpha1"
	"github.com/polder-kaas/polder/test/testenv"
)

// clockWatch is how long a plane is watched after its clock has jumped; certificates are looked at more often than that.
const clockWatch = 25 * time.Second

// TestClockJumpsBelowAPlane sets the clock of a running plane forward and back by an hour, as a computer does that asks for the
// time late. No request may fail, watches go on, controllers work, nothing that was written is lost; and a plane starts whose
// files are from the future.
func TestClockJumpsBelowAPlane(t *testing.T) {
	p := testenv.NewPlane(t, testenv.NewTree(t, true))
	c := newJumpingClock(t)
	p.Env = []string{"POLDER_CLOCK=" + c.path}
	p.Start(t)
	p.AwaitReady(t)
	w := newClockWatcher(t, p)
	for _, at := range []time.Duration{0, time.Hour, 0, -time.Hour, 0} {
		c.set(t, at)
		w.checkClock(at)
		w.check()
	}
	for _, at := range []time.Duration{-time.Hour, time.Hour, 0} { // the files are from now on younger, or older
		if code := p.Signal(t, syscall.SIGTERM, time.Minute); code != 0 {
			t.Fatalf("polderd ended with %d", code)
		}
		c.set(t, at)
		p.Start(t)
		p.AwaitReady(t)
		w.watch()
		w.checkClock(at)
		w.check()
	}
	t.Logf("%d requests, none failed", w.requests)
}

// jumpingClock is the clock of a polderd that has package clockfault in it.
type jumpingClock struct{ path string }

func newJumpingClock(t *testing.T) *jumpingClock {
	t.Helper()
	c := &jumpingClock{filepath.Join(t.TempDir(), "clock")}
	if err := os.WriteFile(c.path, make([]byte, 8), 0o644); err != nil {
		t.Fatal(err)
	}
	for dir := filepath.Dir(c.path); dir != os.TempDir(); dir = filepath.Dir(dir) { // polderd is an ordinary user's
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

// set sets the clock to a time beside the true one. The file is never shorter than it was: polderd has it in its memory.
func (c *jumpingClock) set(t *testing.T, beside time.Duration) {
	t.Helper()
	f, err := os.OpenFile(c.path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteAt(binary.LittleEndian.AppendUint64(nil, uint64(beside/time.Second)), 0); err != nil {
		t.Fatal(err)
	}
}

// clockWatcher uses a plane in all ways that know what time it is.
type clockWatcher struct {
	*testing.T
	plane    *testenv.Plane
	ns       string
	rounds   int
	requests int
	written  int
	seen     chan string // what a watch tells
}

func newClockWatcher(t *testing.T, p *testenv.Plane) *clockWatcher {
	t.Helper()
	w := &clockWatcher{T: t, plane: p, ns: p.CreateNamespace(t)}
	testenv.InstallStubClass(t, p.Client(t), w.ns)
	o := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: "count"}, Data: map[string]string{"n": "0"}}
	if err := p.Client(t).Create(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	w.watch()
	return w
}

func (w *clockWatcher) clientset() kubernetes.Interface {
	w.Helper()
	k, err := kubernetes.NewForConfig(w.plane.RESTConfig(w)) // a new connection with the present kubeconfig
	if err != nil {
		w.Fatal(err)
	}
	return k
}

// watch begins a watch that must not end.
func (w *clockWatcher) watch() {
	w.Helper()
	events, err := w.clientset().CoreV1().ConfigMaps(w.ns).Watch(w.Context(), metav1.ListOptions{FieldSelector: "metadata.name=count"})
	if err != nil {
		w.Fatal(err)
	}
	seen := make(chan string, 1000)
	w.seen = seen
	go func() {
		defer close(seen)
		for e := range events.ResultChan() {
			if o, ok := e.Object.(*corev1.ConfigMap); ok {
				seen <- o.Data["n"]
			}
		}
	}()
}

// checkClock sees by an answer that the clock has jumped.
func (w *clockWatcher) checkClock(beside time.Duration) {
	w.Helper()
	cfg := w.plane.RESTConfig(w)
	c, err := rest.HTTPClientFor(cfg)
	if err != nil {
		w.Fatal(err)
	}
	defer c.CloseIdleConnections()
	req, err := http.NewRequestWithContext(w.Context(), http.MethodGet, cfg.Host+"/version", http.NoBody)
	if err != nil {
		w.Fatal(err)
	}
	res, err := c.Do(req)
	if err != nil {
		w.Fatal(err)
	}
	defer res.Body.Close()
	at, err := http.ParseTime(res.Header.Get("Date"))
	if d := time.Until(at) - beside; err != nil || d.Abs() > time.Minute {
		w.Fatalf("the plane says it is %s, which is %s beside what was set; %v", at, d, err)
	}
}

// check uses the plane for a while.
func (w *clockWatcher) check() {
	w.Helper()
	for end := time.Now().Add(clockWatch); time.Now().Before(end); {
		k := w.clientset()
		o, err := k.CoreV1().ConfigMaps(w.ns).Get(w.Context(), "count", metav1.GetOptions{})
		if err != nil {
			w.Fatalf("request %d: %v", w.requests, err)
		}
		if o.Data["n"] != strconv.Itoa(w.written) {
			w.Fatalf("%d was written, and there is %s", w.written, o.Data["n"])
		}
		w.written++
		o.Data["n"] = strconv.Itoa(w.written)
		if _, err := k.CoreV1().ConfigMaps(w.ns).Update(w.Context(), o, metav1.UpdateOptions{}); err != nil {
			w.Fatalf("request %d: %v", w.requests, err)
		}
		if err := w.plane.Client(w).Create(w.Context(), testenv.StubCluster(w, w.ns, "clock"), client.DryRunAll); err != nil {
			w.Fatalf("request %d through a webhook: %v", w.requests, err)
		}
		w.awaitSeen(o.Data["n"])
		w.requests += 3
		<-time.After(100 * time.Millisecond)
	}
	if !w.plane.IsReady() {
		w.Error("the plane is not ready")
	}
	w.checkControllers()
}

func (w *clockWatcher) awaitSeen(n string) {
	w.Helper()
	deadline := time.After(10 * time.Second)
	for {
		select {
		case got, ok := <-w.seen:
			if !ok {
				w.Fatal("the watch has ended")
			}
			if got == n {
				return
			}
		case <-deadline:
			w.Fatalf("the watch does not tell of %s", n)
		}
	}
}

// checkControllers gives work to the operator, to Kubernetes' own controllers and to Cluster API.
func (w *clockWatcher) checkControllers() {
	w.Helper()
	w.rounds++
	c, ns := w.plane.Client(w), fmt.Sprintf("clock-%d", w.rounds)
	if err := c.Create(w.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns, Labels: map[string]string{v1alpha1.CustomerLabel: ""}}}); err != nil {
		w.Fatal(err)
	}
	testenv.InstallStubClass(w, c, ns) // waits for Cluster API
	testenv.Eventually(w, time.Minute, func() error {
		var quotas corev1.ResourceQuotaList
		if err := c.List(w.Context(), &quotas, client.InNamespace(ns)); err != nil {
			return err
		}
		if len(quotas.Items) == 0 || len(quotas.Items[0].Status.Hard) == 0 {
			return fmt.Errorf("no quota that Kubernetes counts: %+v", quotas.Items)
		}
		return nil
	})
}
