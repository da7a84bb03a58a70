package kubelet

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	infrav1 "github.com/polder-kaas/polder/api/infrastructure/v1alpha1"
	"github.com/polder-kaas/polder/internal/apierror"
	"github.com/polder-kaas/polder/internal/files/certificate"
	"github.com/polder-kaas/polder/internal/providers/local/clientcert"
	"github.com/polder-kaas/polder/internal/providers/local/hostapi"
	"github.com/polder-kaas/polder/stack/allowlist"
)

// RunningLabel is on the nodes of machines that are switched on; the simulation keeps those alive.
const RunningLabel = "local.polder.dev/running"

// Port is where a kubelet answers.
const Port = 10250

// Timeout and interval of requests to the cluster.
const (
	callTimeout = 5 * time.Second
	// mirrorResyncInterval is how often the node and the mirror pods are compared even if nothing happened.
	mirrorResyncInterval = 30 * time.Second
)

// nodeState is what is known about the machine's node.
type nodeState struct {
	synced bool // the node is registered and the mirror pods show the processes
}

// syncNode registers the node once the boot has left its credentials, and keeps the mirror pods in step with the
// processes.
func (k *Kubelet) syncNode(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx) // the client's certificate is renewed until then
	defer cancel()
	client, err := k.newNodeClient(ctx)
	if errors.Is(err, os.ErrNotExist) {
		return k.waitForCredentials(ctx)
	}
	if err != nil {
		return err
	}
	node, err := k.registerNode(ctx, client)
	if err != nil {
		return fmt.Errorf("registering: %w", err)
	}
	k.setProblem("node", nil)
	m := &mirror{kubelet: k, client: client, node: node}
	return m.syncUntilDone(ctx)
}

// waitForCredentials waits until the boot has left credentials and then goes on with syncNode. That there are none yet
// is no problem of the machine.
func (k *Kubelet) waitForCredentials(ctx context.Context) error {
	there := func() bool { _, err := os.Stat(k.nodeConfigFile()); return !errors.Is(err, os.ErrNotExist) }
	for !pollUntil(ctx, time.Hour, there) && ctx.Err() == nil {
		continue
	}
	if ctx.Err() != nil {
		return nil
	}
	return k.syncNode(ctx)
}

// nodeConfigFile is the kubeconfig of the node, which the boot leaves.
func (k *Kubelet) nodeConfigFile() string { return k.cfg.Dir.RootFS("/etc/kubernetes/kubelet.conf") }

// newNodeClient makes a client that acts as the node, with the rights of a node. Its certificate is renewed until ctx
// ends.
func (k *Kubelet) newNodeClient(ctx context.Context) (kubernetes.Interface, error) {
	file := k.nodeConfigFile()
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	// Only the boot should have written it; but it is read by the host, which can do more than the machine.
	if err := k.checkKubeconfig(b); err != nil {
		return nil, fmt.Errorf("%s is refused: %w", file, err)
	}
	loaded, err := clientcmd.Load(b)
	if err != nil {
		return nil, err
	}
	for _, u := range loaded.AuthInfos {
		u.ClientCertificate, u.ClientKey = k.ownCertificateFile(u.ClientCertificate), k.ownCertificateFile(u.ClientKey)
	}
	cfg, err := clientcmd.NewDefaultClientConfig(*loaded, &clientcmd.ConfigOverrides{}).ClientConfig()
	if err != nil {
		return nil, err
	}
	cfg.QPS, cfg.Burst = 50, 100
	cfg.UserAgent = "polder-local-kubelet"
	if len(cfg.CertData) == 0 && cfg.CertFile == "" {
		return kubernetes.NewForConfig(cfg) // another kind of credentials, which is not ours to renew
	}
	renewed, err := clientcert.Renew(ctx, cfg, k.cfg.Clock,
		func() (tls.Certificate, error) { return k.nodeCertificate(cfg) })
	if err != nil {
		return nil, err
	}
	return kubernetes.NewForConfig(renewed)
}

// nodeCertificate is the certificate of the node's kubeconfig or, if that is due, another that the host makes.
func (k *Kubelet) nodeCertificate(cfg *rest.Config) (tls.Certificate, error) {
	cfg = rest.CopyConfig(cfg)
	if err := rest.LoadTLSFiles(cfg); err != nil {
		return tls.Certificate{}, err
	}
	booted, err := tls.X509KeyPair(cfg.CertData, cfg.KeyData)
	if err != nil {
		return booted, fmt.Errorf("reading the certificate in %s: %w", k.nodeConfigFile(), err)
	}
	if k.cfg.ClientCertificate == nil || !certificate.IsDue(booted.Leaf, k.cfg.Clock.Now()) {
		return booted, nil
	}
	cert, key, err := k.cfg.ClientCertificate(k.cfg.Machine.Node)
	if err != nil {
		return booted, nil //nolint:nilerr // it may be good for some time yet
	}
	return tls.X509KeyPair(cert, key)
}

// certificateDir is where a kubelet keeps its certificate.
const certificateDir = "/var/lib/kubelet/pki"

// ownCertificateFile is the machine's own file of that name: the kubeconfig, and the link to the newest certificate,
// have the path that the machine had when it booted, and it may have been restored elsewhere since.
func (k *Kubelet) ownCertificateFile(path string) string {
	if path == "" {
		return ""
	}
	own := k.cfg.Dir.RootFS(certificateDir, filepath.Base(path))
	if target, err := os.Readlink(own); err == nil {
		return k.cfg.Dir.RootFS(certificateDir, filepath.Base(target))
	}
	return own
}

// checkKubeconfig says whether a kubeconfig does no more than name the cluster, and the files that a kubelet keeps its
// certificate in.
func (k *Kubelet) checkKubeconfig(b []byte) error {
	if k.cfg.AllowEverything {
		return nil
	}
	return allowlist.CheckKubeconfig(b, allowlist.KubeconfigRules{
		Cluster: k.cfg.Cluster,
		File: func(path string) error {
			if !strings.HasSuffix(filepath.Dir(path), certificateDir) {
				return fmt.Errorf("names a file that is not in %s", k.cfg.Dir.RootFS(certificateDir))
			}
			return nil
		},
	})
}

// registerNode makes the node as a kubelet does, or brings the one that is there up to date.
func (k *Kubelet) registerNode(ctx context.Context, c kubernetes.Interface) (*corev1.Node, error) {
	want, err := k.desiredNode()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, 2*callTimeout)
	defer cancel()
	nodes := c.CoreV1().Nodes()
	have, err := nodes.Get(ctx, want.Name, metav1.GetOptions{})
	// A 404 that is not about this node does not mean that there is none (ADR 14).
	if apierror.IsObjectNotFound(err, "nodes", want.Name) {
		return nodes.Create(ctx, want, metav1.CreateOptions{})
	}
	if err != nil {
		return nil, err
	}
	if have.Labels[RunningLabel] != "true" {
		if have, err = nodes.Patch(ctx, want.Name, "application/merge-patch+json", runningLabelPatch(true),
			metav1.PatchOptions{}); err != nil {
			return nil, err
		}
	}
	changed := have.DeepCopy()
	changed.Status.NodeInfo, changed.Status.Addresses = want.Status.NodeInfo, want.Status.Addresses
	changed.Status.DaemonEndpoints = want.Status.DaemonEndpoints
	changed.Status.Capacity, changed.Status.Allocatable = want.Status.Capacity, want.Status.Allocatable
	if equality.Semantic.DeepEqual(have.Status, changed.Status) {
		return have, nil
	}
	return nodes.UpdateStatus(ctx, changed, metav1.UpdateOptions{})
}

func runningLabelPatch(on bool) []byte {
	value := `"true"`
	if !on {
		value = "null"
	}
	return fmt.Appendf(nil, `{"metadata":{"labels":{%q:%s}}}`, RunningLabel, value)
}

// RemoveRunningLabel makes the simulation stop the node's heartbeats. It is best effort: a cluster whose only control
// plane was switched off cannot be told.
func (k *Kubelet) RemoveRunningLabel(ctx context.Context) {
	if err := k.removeRunningLabel(ctx); err != nil && !errors.Is(err, os.ErrNotExist) {
		k.cfg.Log.Info("the cluster was not told that the machine is off", "machine", k.cfg.Machine.Name, "error", err)
	}
}

func (k *Kubelet) removeRunningLabel(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	c, err := k.newNodeClient(ctx)
	if err != nil {
		return err
	}
	_, err = c.CoreV1().Nodes().Patch(ctx, k.cfg.Machine.Node, "application/merge-patch+json",
		runningLabelPatch(false), metav1.PatchOptions{})
	return err
}

func (k *Kubelet) desiredNode() (*corev1.Node, error) {
	var n hostapi.NodeRegistration
	b, err := os.ReadFile(k.cfg.Dir.NodeFile())
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(b, &n); err != nil {
		return nil, fmt.Errorf("reading %s: %w", k.cfg.Dir.NodeFile(), err)
	}
	m := k.cfg.Machine
	labels := map[string]string{
		corev1.LabelHostname: m.Node, corev1.LabelOSStable: "linux", corev1.LabelArchStable: runtime.GOARCH,
		infrav1.SimulatedLabel: "true", RunningLabel: "true",
	}
	if m.Zone != "" {
		labels[corev1.LabelTopologyZone] = m.Zone
	}
	maps.Copy(labels, m.Labels)
	maps.Copy(labels, n.Labels)
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: m.Node, Labels: labels},
		Spec:       corev1.NodeSpec{ProviderID: m.ProviderID, Taints: mergeTaints(n.Taints, m.Taints)},
		Status: corev1.NodeStatus{
			Addresses: []corev1.NodeAddress{
				{Type: corev1.NodeInternalIP, Address: k.cfg.Address.String()}, {Type: corev1.NodeHostName, Address: m.Node},
			},
			DaemonEndpoints: corev1.NodeDaemonEndpoints{KubeletEndpoint: corev1.DaemonEndpoint{Port: Port}},
			Capacity:        capacityWithDefaults(m.Capacity), Allocatable: capacityWithDefaults(m.Capacity),
			NodeInfo: corev1.NodeSystemInfo{
				MachineID: m.UID, SystemUUID: m.UID, BootID: m.UID, KernelVersion: "simulated", OSImage: "Polder local machine",
				ContainerRuntimeVersion: "polder://simulated", KubeletVersion: m.Version, OperatingSystem: "linux",
				Architecture: runtime.GOARCH,
			},
		},
	}, nil
}

// mergeTaints returns the taints of the kubeadm configuration, then the machine's own; one given twice would be refused
// by the API server.
func mergeTaints(all ...[]corev1.Taint) (out []corev1.Taint) {
	for _, t := range slices.Concat(all...) {
		if !slices.ContainsFunc(out, func(o corev1.Taint) bool { return o.MatchTaint(&t) }) {
			out = append(out, t)
		}
	}
	return out
}

// capacityWithDefaults fills in the resources that were not chosen.
func capacityWithDefaults(chosen corev1.ResourceList) corev1.ResourceList {
	all := corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("4"), corev1.ResourceMemory: resource.MustParse("8Gi"),
		corev1.ResourceEphemeralStorage: resource.MustParse("100Gi"), corev1.ResourcePods: resource.MustParse("110"),
	}
	maps.Copy(all, chosen)
	return all
}
