package reconcile

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"path/filepath"
	"sync"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/clock"

	"github.com/polder-kaas/polder/internal/providers/local/host"
	"github.com/polder-kaas/polder/internal/providers/local/hostapi"
	"github.com/polder-kaas/polder/internal/providers/local/kubeversion"
	"github.com/polder-kaas/polder/internal/providers/local/launch"
)

// TestMain runs the tests or, called by one of the names of polderd, that program: a real host, or
// the imitation of a boot.
func TestMain(m *testing.M) {
	var program func(dir string) error
	switch os.Args[0] {
	case launch.HostProgram:
		program = runHost
	case host.BootProgram:
		program = boot
	default:
		os.Exit(shared.Run(m))
	}
	if err := program(os.Args[1]); err != nil {
		fmt.Println(err)
		syscall.Exit(1) // os.Exit would wait for the race detector
	}
	syscall.Exit(0)
}

func runHost(dir string) error {
	versions, err := kubeversion.NewRange(version)
	if err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	cfg := host.Config{
		Dir: hostapi.Dir(dir), Binary: self, Versions: versions, Clock: clock.RealClock{}, Log: slog.New(slog.DiscardHandler),
		AllowEverything: true, // its cluster is an imitation without certificates
	}
	return host.Run(context.Background(), cfg)
}

// boot leaves the files that a host expects of a boot; the bootstrap data are the node's credentials.
func boot(path string) error {
	dir := hostapi.MachineDir(path)
	b, err := os.ReadFile(dir.SpecFile())
	if err != nil {
		return err
	}
	var m hostapi.MachineSpec
	if err := json.Unmarshal(b, &m); err != nil {
		return err
	}
	credentials := dir.RootFS("/etc/kubernetes/kubelet.conf")
	return errors.Join(
		os.MkdirAll(filepath.Dir(credentials), 0o700),
		put(dir.NodeFile(), []byte("{}")),
		put(credentials, m.UserData),
		put(dir.BootFile(), []byte(`{"done":true,"attempts":1}`)),
	)
}

// put writes a file atomically, since the host may read it at any time.
func put(file string, b []byte) error {
	return errors.Join(os.WriteFile(file+".tmp", b, 0o600), os.Rename(file+".tmp", file))
}

// workload imitates what workers need of the API servers of workload clusters: it stores nodes.
type workload struct {
	url string

	mu    sync.Mutex
	nodes map[string][]byte // by path
}

func imitateWorkload(t *testing.T) *workload {
	t.Helper()
	w := &workload{nodes: map[string][]byte{}}
	s := httptest.NewServer(w)
	t.Cleanup(s.Close)
	w.url = s.URL
	return w
}

// userData is a kubeconfig; each namespace has a cluster of its own.
func (w *workload) userData(namespace string) []byte {
	return fmt.Appendf(nil, `{"apiVersion":"v1","kind":"Config","current-context":"c",
"clusters":[{"name":"c","cluster":{"server":"%s/%s"}}],"contexts":[{"name":"c","context":{"cluster":"c","user":"c"}}],"users":[{"name":"c","user":{}}]}`, w.url, namespace)
}

// ServeHTTP reads and creates nodes.
func (w *workload) ServeHTTP(out http.ResponseWriter, r *http.Request) {
	w.mu.Lock()
	defer w.mu.Unlock()
	out.Header().Set("Content-Type", "application/json")
	if r.Method == http.MethodPost {
		name, node, err := decodeNode(r.Body)
		if err != nil {
			http.Error(out, err.Error(), http.StatusBadRequest)
			return
		}
		w.nodes[r.URL.Path+"/"+name] = node
		out.WriteHeader(http.StatusCreated)
		_, _ = out.Write(node)
		return
	}
	b, ok := w.nodes[r.URL.Path]
	if !ok {
		out.WriteHeader(http.StatusNotFound)
		b = fmt.Appendf(nil, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404,"details":{"kind":"nodes","name":%q}}`,
			path.Base(r.URL.Path))
	}
	_, _ = out.Write(b)
}

// decodeNode reads a node in any of Kubernetes' encodings, and returns it as JSON.
func decodeNode(r io.Reader) (name string, b []byte, err error) {
	if b, err = io.ReadAll(r); err != nil {
		return "", nil, err
	}
	node := &corev1.Node{}
	if _, _, err := scheme.Codecs.UniversalDeserializer().Decode(b, nil, node); err != nil {
		return "", nil, err
	}
	node.APIVersion, node.Kind = "v1", "Node"
	b, err = json.Marshal(node)
	return node.Name, b, err
}
