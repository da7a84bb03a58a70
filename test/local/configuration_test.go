package local

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/polder-kaas/polder/api/infrastructure/v1alpha1"
	"github.com/polder-kaas/polder/test/testenv"
)

// small is a cluster without workers.
func small(args string) func(*clusterv1.Cluster) {
	return func(o *clusterv1.Cluster) {
		o.Spec.Topology.Workers.MachineDeployments[0].Replicas = ptr.To[int32](0)
		if args != "" {
			o.Spec.Topology.Variables = []clusterv1.ClusterVariable{{Name: "apiServerArgs", Value: apiextensionsv1.JSON{Raw: []byte(args)}}}
		}
	}
}

// What the class says in its kubeadm configuration is what runs, and what cannot be done is said.
// A second cluster beside it has nothing of it.
func TestConfigurationIsWhatRuns(t *testing.T) {
	issuer := testenv.NewIssuer(t)
	p := testenv.NewPlane(t, testenv.NewTree(t, false))
	p.Start(t, "--local-trust", issuer.Address) // it is on this computer, where clusters reach nothing else
	p.AwaitReady(t)
	const caFile = "/etc/kubernetes/pki/issuer.crt"
	strict := create(t, p, "strict", newVersion, options{
		cluster: small(fmt.Sprintf(`{"oidc-issuer-url":%q,"oidc-client-id":"kubectl","oidc-username-claim":"email","oidc-ca-file":%q}`, issuer.URL, caFile)),
		class: func(u *unstructured.Unstructured) {
			if u.GetKind() == "KubeadmControlPlaneTemplate" {
				spec, _, _ := unstructured.NestedMap(u.Object, "spec", "template", "spec", "kubeadmConfigSpec")
				spec["preKubeadmCommands"] = []any{"sysctl -w net.ipv4.ip_forward=1"}
				files, _, _ := unstructured.NestedSlice(spec, "files")
				spec["files"] = append(files, map[string]any{"path": caFile, "permissions": "0644", "content": issuer.CA})
				spec["ntp"] = map[string]any{"enabled": true, "servers": []any{"ntp.example.org"}}
				if err := unstructured.SetNestedMap(u.Object, spec, "spec", "template", "spec", "kubeadmConfigSpec"); err != nil {
					t.Fatal(err)
				}
			}
		},
	})
	plain := create(t, p, "plain", newVersion, options{cluster: small("")})
	// Another plane on this computer knows nothing of the first, and takes the same names.
	elsewhere := create(t, testenv.StartPlane(t), "strict", newVersion, options{cluster: small("")})
	for _, c := range []*cluster{strict, plain, elsewhere} {
		c.awaitAvailable(t, createTimeout)
	}
	t.Run("a token of the issuer is accepted", func(t *testing.T) {
		token := issuer.Token(t, "kubectl", map[string]any{"email": "someone@example.org"})
		testenv.Eventually(t, soon, func() error {
			who, err := testenv.WhoAmI(t, strict.config(t), token)
			if err == nil && who != issuer.URL+"#someone@example.org" && who != "someone@example.org" {
				err = fmt.Errorf("accepted as %q", who)
			}
			return err
		})
		if _, err := testenv.WhoAmI(t, strict.config(t), issuer.Token(t, "another client", map[string]any{"email": "someone@example.org"})); !apierrors.IsUnauthorized(err) {
			t.Errorf("a token for another client: %v", err)
		}
		if _, err := testenv.WhoAmI(t, plain.config(t), token); !apierrors.IsUnauthorized(err) {
			t.Errorf("a cluster that knows no issuer: %v", err)
		}
	})
	t.Run("what cannot be done is listed", func(t *testing.T) {
		c := infraCondition(t, strict, infrav1.ConfigurationHonoredCondition)
		if c.Status != metav1.ConditionFalse || !strings.Contains(c.Message, "sysctl -w net.ipv4.ip_forward=1") || !strings.Contains(c.Message, "ntp") {
			t.Errorf("condition: %+v", c)
		}
		if c := infraCondition(t, plain, infrav1.ConfigurationHonoredCondition); c.Status != metav1.ConditionTrue {
			t.Errorf("the plain cluster: %+v", c)
		}
	})
	t.Run("clusters do not see each other", func(t *testing.T) { separate(t, strict, plain) })
	t.Run("planes do not see each other", func(t *testing.T) { separate(t, elsewhere, strict) })
	isDeletedBeside(t, strict, plain)
}

// separate checks that neither objects nor credentials of one cluster are good in the other.
func separate(t *testing.T, a, b *cluster) {
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "only-here-"}}
	ns, err := a.workload(t).CoreV1().Namespaces().Create(t.Context(), ns, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.workload(t).CoreV1().Namespaces().Get(t.Context(), ns.Name, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("the other cluster has the namespace: %v", err)
	}
	foreign := a.config(t)
	foreign.Host = b.config(t).Host
	foreign.CAData, foreign.Insecure = nil, true
	k, err := kubernetes.NewForConfig(foreign)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := k.CoreV1().Namespaces().List(t.Context(), metav1.ListOptions{}); !apierrors.IsUnauthorized(err) {
		t.Errorf("credentials of one cluster in the other: %v", err)
	}
}

// isDeletedBeside deletes one cluster while the other runs on, then the other.
func isDeletedBeside(t *testing.T, first, second *cluster) {
	for _, c := range []*cluster{first, second} {
		o, err := c.get(t)
		if err != nil {
			t.Fatal(err)
		}
		if err := c.mgmt.Delete(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		testenv.Eventually(t, createTimeout, func() error {
			if _, err := c.get(t); !apierrors.IsNotFound(err) {
				return fmt.Errorf("the cluster is still there: %w", err)
			}
			return nil
		})
		if c == first {
			if _, err := second.workload(t).CoreV1().Namespaces().List(t.Context(), metav1.ListOptions{}); err != nil {
				t.Errorf("the other cluster suffers: %v", err)
			}
		}
	}
	nothingLeft(t, second)
}

func infraCondition(t *testing.T, c *cluster, kind string) metav1.Condition {
	t.Helper()
	var l infrav1.LocalMachineList
	if err := c.mgmt.List(t.Context(), &l, client.InNamespace(c.namespace)); err != nil {
		t.Fatal(err)
	}
	for _, m := range l.Items {
		for _, x := range m.Status.Conditions {
			if x.Type == kind {
				return x
			}
		}
	}
	return metav1.Condition{}
}

// Bad input is reported where people look: at the Machine, and in its events.
func TestBadInputIsExplained(t *testing.T) {
	p := testenv.StartPlane(t)
	tooOld := create(t, p, "too-old", "v1.30.1", options{cluster: small("")})
	wrongFlag := create(t, p, "wrong-flag", newVersion, options{cluster: small(`{"audit-log-path":"-","audit-log-format":"nonsense"}`)})
	refusedFlag := create(t, p, "refused-flag", newVersion, options{cluster: small(`{"etcd-servers":"unix:///x/etcd.sock"}`)})
	for name, c := range map[string]struct {
		cluster *cluster
		words   []string
	}{
		"version that cannot be run":           {tooOld, []string{"v1.30.1 cannot be run here", "v1.34 to v1.37"}},
		"flag with which the API server exits": {wrongFlag, []string{"kube-apiserver exited with code 1", "nonsense"}},
		"flag that leads out of the machine":   {refusedFlag, []string{"kube-apiserver is not started: --etcd-servers of kube-apiserver is refused"}},
	} {
		t.Run(name, func(t *testing.T) {
			testenv.Eventually(t, createTimeout, func() error { return c.cluster.explained(t, c.words) })
		})
	}
}

// explained returns nil if the Machine's condition and an event about it have the words.
func (c *cluster) explained(t *testing.T, words []string) error {
	var machines clusterv1.MachineList
	if err := c.mgmt.List(t.Context(), &machines, client.InNamespace(c.namespace)); err != nil || len(machines.Items) == 0 {
		return fmt.Errorf("%d machines, %w", len(machines.Items), err)
	}
	var said []string
	for _, x := range machines.Items[0].Status.Conditions {
		if x.Type == clusterv1.InfrastructureReadyCondition {
			said = append(said, x.Message)
		}
	}
	var events eventsv1.EventList
	if err := c.mgmt.List(t.Context(), &events, client.InNamespace(c.namespace)); err != nil {
		return err
	}
	var noted []string
	for _, e := range events.Items {
		if e.Regarding.Kind == "Machine" {
			noted = append(noted, e.Note)
		}
	}
	for _, w := range words {
		if !strings.Contains(strings.Join(said, "\n"), w) || !strings.Contains(strings.Join(noted, "\n"), w) {
			return fmt.Errorf("%q is not in the condition %q and the events %q", w, said, noted)
		}
	}
	return nil
}
