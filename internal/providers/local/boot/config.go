package boot

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	kubeadmapi "k8s.io/kubernetes/cmd/kubeadm/app/apis/kubeadm"
	"k8s.io/kubernetes/cmd/kubeadm/app/features"
	"sigs.k8s.io/yaml"

	"github.com/polder-kaas/polder/internal/providers/local/hostapi"
)

// placeholderAddress, of a range for documentation, stands for the machine's address while kubeadm loads its
// configuration: kubeadm does not accept a loopback address and would look for a global one. It is replaced right
// after.
const placeholderAddress = "192.0.2.1"

// maxDocuments bounds a kubeadm configuration.
const maxDocuments = 16

type object = map[string]any

// prepareConfig changes in kubeadm's configuration what depends on the machine, and what the built-in
// kubeadm would refuse although it only concerns another version.
func (m *machine) prepareConfig(b []byte) ([]byte, error) {
	docs := strings.Split("\n"+string(b), "\n---")
	if len(docs) > maxDocuments {
		return nil, fmt.Errorf("the kubeadm configuration has %d documents; at most %d are read", len(docs), maxDocuments)
	}
	var out []string
	for _, doc := range docs {
		o := object{}
		if err := yaml.Unmarshal([]byte(doc), &o); err != nil {
			return nil, fmt.Errorf("reading the kubeadm configuration: %w", err)
		}
		if len(o) == 0 {
			continue
		}
		if err := m.prepareDocument(o); err != nil {
			return nil, err
		}
		y, err := yaml.Marshal(o)
		if err != nil {
			return nil, err
		}
		out = append(out, string(y))
	}
	return []byte(strings.Join(out, "---\n")), nil
}

func (m *machine) prepareDocument(o object) error {
	switch o["kind"] {
	case "ClusterConfiguration":
		m.dropUnknownFeatureGates(o)
	case "InitConfiguration":
		getOrCreateObject(o, "localAPIEndpoint")["advertiseAddress"] = placeholderAddress
		m.setNodeName(o)
	case "JoinConfiguration":
		if cp, ok := o["controlPlane"].(object); ok {
			getOrCreateObject(cp, "localAPIEndpoint")["advertiseAddress"] = placeholderAddress
		}
		m.setNodeName(o)
	case "KubeletConfiguration":
		m.recordNotHonored("KubeletConfiguration: there is no kubelet; it is only stored in the cluster")
	case "KubeProxyConfiguration":
		m.recordNotHonored("KubeProxyConfiguration: kube-proxy is simulated; it is only stored in the cluster")
	default:
		return fmt.Errorf("reading the kubeadm configuration: unknown kind %q", o["kind"])
	}
	return nil
}

// dropUnknownFeatureGates drops gates the built-in kubeadm does not know: Cluster API sets those of the
// machine's version.
func (m *machine) dropUnknownFeatureGates(o object) {
	gates, _ := o["featureGates"].(object)
	for _, g := range slices.Sorted(maps.Keys(gates)) {
		if g == features.RootlessControlPlane {
			// kubeadm would add users to this computer.
			m.recordNotHonored("kubeadm feature gate %s: nothing here runs as root", g)
			delete(gates, g)
			continue
		}
		if _, known := features.InitFeatureGates[g]; !known {
			m.recordNote("kubeadm feature gate %s is left out: the built-in kubeadm does not have it", g)
			delete(gates, g)
		}
	}
}

// setNodeName gives the node the Machine's name unless the configuration has one.
func (m *machine) setNodeName(o object) {
	r := getOrCreateObject(o, "nodeRegistration")
	if name, _ := r["name"].(string); name == "" {
		r["name"] = m.Node
	}
}

func getOrCreateObject(o object, key string) object {
	c, ok := o[key].(object)
	if !ok {
		c = object{}
		o[key] = c
	}
	return c
}

// writeNodeRegistration writes down for the host how the node is to be registered.
func (m *machine) writeNodeRegistration(r kubeadmapi.NodeRegistrationOptions) error {
	// The host registers the node, and the Machine is found by it.
	if r.Name != m.Node {
		return fmt.Errorf("nodeRegistration.name is %q; a node here has its Machine's name, %q", r.Name, m.Node)
	}
	n := hostapi.NodeRegistration{Taints: r.Taints, Labels: map[string]string{}}
	var errs []error
	for _, a := range r.KubeletExtraArgs {
		switch a.Name {
		case "node-labels":
			errs = append(errs, parseLabels(a.Value, n.Labels))
		case "register-with-taints":
			taints, err := parseTaints(a.Value)
			errs = append(errs, err)
			n.Taints = append(n.Taints, taints...)
		case "provider-id":
			m.recordNote("kubelet argument provider-id is replaced by %s", m.ProviderID)
		case "cloud-provider":
			m.recordNotHonored("kubelet argument cloud-provider=%s: nodes are initialised at once", a.Value)
		default:
			m.recordNotHonored("kubelet argument %s=%s: there is no kubelet", a.Name, a.Value)
		}
	}
	return errors.Join(append(errs, writeJSON(m.dir.NodeFile(), n))...)
}

// splitList returns what stands between commas; an empty string has no items.
func splitList(s string) []string {
	if s == "" {
		return nil
	}
	return strings.Split(s, ",")
}

func parseLabels(s string, into map[string]string) error {
	for _, kv := range splitList(s) {
		k, v, ok := strings.Cut(kv, "=")
		if !ok || k == "" {
			return fmt.Errorf("kubelet argument node-labels: %q is not KEY=VALUE", kv)
		}
		into[k] = v
	}
	return nil
}

func parseTaints(s string) ([]corev1.Taint, error) {
	var out []corev1.Taint
	for _, t := range splitList(s) {
		kv, effect, ok := strings.Cut(t, ":")
		if !ok {
			return nil, fmt.Errorf("kubelet argument register-with-taints: %q is not KEY=VALUE:EFFECT", t)
		}
		k, v, _ := strings.Cut(kv, "=")
		out = append(out, corev1.Taint{Key: k, Value: v, Effect: corev1.TaintEffect(effect)})
	}
	return out, nil
}
