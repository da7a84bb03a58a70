package kubelet

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"time"

	certutil "k8s.io/client-go/util/cert"
	"k8s.io/cri-streaming/pkg/streaming/portforward"

	"github.com/polder-kaas/polder/internal/files/certificate"
)

// apiServerClientName is the name in the certificate an API server shows to kubelets.
const apiServerClientName = "kube-apiserver-kubelet-client"

// Limits of port forwarding, those of a kubelet.
const (
	portForwardIdleTimeout     = 4 * time.Hour
	portForwardCreationTimeout = 30 * time.Second
)

// serve answers on the kubelet's port until ctx ends. Nobody gets in but an API server of the cluster.
func (k *Kubelet) serve(ctx context.Context) error {
	pool, err := k.waitForCA(ctx)
	if err != nil || ctx.Err() != nil {
		return err
	}
	serving := &certificate.Renewed{Clock: k.cfg.Clock, Make: k.servingCertificate}
	if _, err := serving.Get(); err != nil {
		return err
	}
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", netip.AddrPortFrom(k.cfg.Address, Port).String())
	if err != nil {
		return err
	}
	s := &http.Server{
		Handler:           requireAPIServer(k.handler()),
		ReadHeaderTimeout: 10 * time.Second,
		ErrorLog:          slog.NewLogLogger(k.cfg.Log.Handler(), slog.LevelDebug),
		TLSConfig: &tls.Config{
			MinVersion:     tls.VersionTLS12,
			GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return serving.Get() },
			ClientAuth:     tls.RequireAndVerifyClientCert, ClientCAs: pool,
		},
		// streams are upgraded connections, which HTTP/2 has not
		TLSNextProto: map[string]func(*http.Server, *tls.Conn, http.Handler){},
	}
	k.setProblem("kubelet endpoint", nil)
	stopped := context.AfterFunc(ctx, func() { _ = s.Close() }) // streams do not end by themselves
	defer stopped()
	if err := s.ServeTLS(l, "", ""); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// waitForCA waits for the cluster's CA certificate, which the boot brings.
func (k *Kubelet) waitForCA(ctx context.Context) (*x509.CertPool, error) {
	file := k.cfg.Dir.RootFS("/etc/kubernetes/pki/ca.crt")
	var b []byte
	there := func() bool { var err error; b, err = os.ReadFile(file); return err == nil }
	for !pollUntil(ctx, time.Hour, there) {
		if ctx.Err() != nil {
			return nil, nil
		}
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(b) {
		return nil, fmt.Errorf("%s holds no certificate", file)
	}
	return pool, nil
}

func (k *Kubelet) servingCertificate() (tls.Certificate, error) {
	names := []string{k.cfg.Machine.Node}
	if k.cfg.ServingCertificate != nil {
		if cert, key, err := k.cfg.ServingCertificate(names, k.cfg.Address); err == nil {
			return tls.X509KeyPair(cert, key)
		}
	}
	cert, key, err := certutil.GenerateSelfSignedCertKey(k.cfg.Machine.Node, []net.IP{k.cfg.Address.AsSlice()}, names)
	if err != nil {
		return tls.Certificate{}, err
	}
	return tls.X509KeyPair(cert, key)
}

// requireAPIServer refuses other holders of certificates of the cluster's CA, a node for example.
func requireAPIServer(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if name := r.TLS.PeerCertificates[0].Subject.CommonName; name != apiServerClientName {
			http.Error(w, fmt.Sprintf("%q may not ask a kubelet; only the API server may", name), http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func (k *Kubelet) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok") })
	mux.HandleFunc("GET /containerLogs/{namespace}/{pod}/{container}", k.serveLogs)
	mux.HandleFunc("/portForward/{namespace}/{pod}", k.portForward)
	mux.HandleFunc("/portForward/{namespace}/{pod}/{uid}", k.portForward)
	for _, what := range []string{"exec", "attach", "run"} {
		mux.HandleFunc("/"+what+"/", func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, "this is a simulated machine: there is no container to "+what+
				" in; processes of the control plane are shown by: polder machine describe", http.StatusNotImplemented)
		})
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		http.Error(w, "a simulated machine does not answer "+r.URL.Path, http.StatusNotFound)
	})
	return mux
}

// findStaticPod is the static pod that a mirror pod of this node stands for, or nil.
func (k *Kubelet) findStaticPod(namespace, name string) *staticPod {
	for _, p := range k.pods.list() {
		if namespace == "kube-system" && name == p.name()+"-"+k.cfg.Machine.Node {
			return p
		}
	}
	return nil
}

func (k *Kubelet) portForward(w http.ResponseWriter, r *http.Request) {
	namespace, name := r.PathValue("namespace"), r.PathValue("pod")
	if k.findStaticPod(namespace, name) == nil {
		http.Error(w, fmt.Sprintf("pod %s/%s is simulated: nothing listens in it", namespace, name),
			http.StatusNotImplemented)
		return
	}
	o, err := portforward.NewV4Options(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	portforward.ServePortForward(w, r, k, namespace+"/"+name, "", o, portForwardIdleTimeout, portForwardCreationTimeout,
		portforward.SupportedProtocols)
}

// PortForward connects a stream with a port of the machine; static pods are in its network.
func (k *Kubelet) PortForward(ctx context.Context, _, _ string, port int32, stream io.ReadWriteCloser) error {
	defer stream.Close() //nolint:errcheck // both ends are gone
	d := net.Dialer{Timeout: callTimeout}
	c, err := d.DialContext(ctx, "tcp",
		netip.AddrPortFrom(k.cfg.Address, uint16(port)).String()) //nolint:gosec // checked by the caller
	if err != nil {
		return err
	}
	defer c.Close() //nolint:errcheck // both ends are gone
	ended := make(chan error, 2)
	go func() { _, err := io.Copy(c, stream); ended <- err }()
	go func() { _, err := io.Copy(stream, c); ended <- err }()
	err = <-ended
	_, _ = c.Close(), stream.Close() // ends the other direction
	<-ended
	return err
}

var _ portforward.PortForwarder = (*Kubelet)(nil)
