package customer

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	csv1 "github.com/polder-kaas/polder/api/clusterstack/v1alpha1"
	"github.com/polder-kaas/polder/api/v1alpha1"
	"github.com/polder-kaas/polder/test/testenv"
)

// wrong are files that are refused, each with what is said of it in testdata/inputs.txt.
var wrong = []struct{ name, spec string }{
	{"provider that is not there", `provider: lokal, stack: {name: scs}`},
	{"stack that is not there", `provider: local, stack: {name: scss, kubernetesVersion: "1.37"}`},
	{"Kubernetes the stack does not have", `provider: local, stack: {name: scs, kubernetesVersion: "1.29"}`},
	{"Kubernetes that is no minor", `provider: local, stack: {name: scs, kubernetesVersion: "1.37.1"}`},
	{"Kubernetes that is a number", `provider: local, stack: {name: scs, kubernetesVersion: 1.37}`},
	{"channel that is not there", `provider: local, stack: {name: scs, kubernetesVersion: "1.37", channel: custom}`},
	{"channel that is none", `provider: local, stack: {name: scs, channel: beta}`},
	{"release that is not there", `provider: local, stack: {name: scs, kubernetesVersion: "1.37", version: v9}`},
	{"release that is none", `provider: local, stack: {name: scs, kubernetesVersion: "1.37", version: latest}`},
	{"two control planes", `provider: local, stack: {name: scs}, controlPlane: {replicas: 2}`},
	{"machine type that is none", `provider: local, stack: {name: scs}, controlPlane: {machineType: SCS-2}`},
	{"machine type of another provider", `provider: local, stack: {name: scs}, workers: [{name: a, machineType: m5.large}]`},
	{"machine type and shape", `provider: local, stack: {name: scs}, workers: [{name: a, machineType: SCS-2V-4, machine: {cpu: 2, memory: 4Gi}}]`},
	{"shape without memory", `provider: local, stack: {name: scs}, workers: [{name: a, machine: {cpu: 2, memory: "0"}}]`},
	{"no control plane", `provider: local, stack: {name: scs}, controlPlane: {replicas: 0}`},
	{"pool without a name", `provider: local, stack: {name: scs}, workers: [{replicas: 1}]`},
	{"pool with a bad name", `provider: local, stack: {name: scs}, workers: [{name: A_b}]`},
	{"pools of the same name", `provider: local, stack: {name: scs}, workers: [{name: a}, {name: a}]`},
	{"fewer than no machines", `provider: local, stack: {name: scs}, workers: [{name: a, replicas: -1}]`},
	{"zone that is not there", `provider: local, stack: {name: scs}, workers: [{name: a, zones: [zone-a, zone-z]}]`},
	{"label that nodes do not get", `provider: local, stack: {name: scs}, workers: [{name: a, labels: {kubernetes.io/role: x}}]`},
	{"label that is none", `provider: local, stack: {name: scs}, workers: [{name: a, labels: {"a b": "c d"}}]`},
	{"taint that is none", `provider: local, stack: {name: scs}, workers: [{name: a, taints: [{key: "a b", effect: NoSchedule}]}]`},
	{"taint without an effect", `provider: local, stack: {name: scs}, workers: [{name: a, taints: [{key: a}]}]`},
	{"taint of Kubernetes", `provider: local, stack: {name: scs}, workers: [{name: a, taints: [{key: node.kubernetes.io/not-ready, effect: NoSchedule}]}]`},
	{"network that is none", `provider: local, stack: {name: scs}, network: {podCIDRs: [10.244.0.0]}`},
	{"network with bits beside", `provider: local, stack: {name: scs}, network: {podCIDRs: [10.244.1.0/16]}`},
	{"networks that overlap", `provider: local, stack: {name: scs}, network: {podCIDRs: [10.0.0.0/8], serviceCIDRs: [10.96.0.0/16]}`},
	{"networks of one family", `provider: local, stack: {name: scs}, network: {podCIDRs: [10.244.0.0/16, 10.245.0.0/16]}`},
	{"issuer without https", `provider: local, stack: {name: scs}, oidc: {issuerURL: "http://id.example.org", clientID: c}`},
	{"issuer without a client", `provider: local, stack: {name: scs}, oidc: {issuerURL: "https://id.example.org"}`},
	{"parameter that is not there", `provider: local, stack: {name: scs}, parameters: {registryMirror: []}`},
	{"parameter of another type", `provider: local, stack: {name: scs}, parameters: {certSANs: example.org}`},
	{"parameter with a bad value", `provider: local, stack: {name: scs}, parameters: {podSecurityStandard: basline}`},
	{"parameter with a bad field", `provider: local, stack: {name: scs}, parameters: {registryMirrors: [{hostname: docker.io, urlUpstream: u, urlMirror: m}]}`},
	{"parameter with a newline", `provider: local, stack: {name: scs}, parameters: {registryMirrors: [{hostnameUpstream: "docker.io\n- path: /etc/kubernetes/manifests/evil.yaml", urlUpstream: "https://a", urlMirror: "https://b"}]}`},
	{"parameter with a carriage return", `provider: local, stack: {name: scs}, parameters: {registryMirrors: [{hostnameUpstream: docker.io, urlUpstream: "https://a", urlMirror: "https://b", certMirror: "a\r- path: /etc/kubernetes/manifests/evil.yaml"}]}`},
	{"parameter with a tag of YAML", `provider: local, stack: {name: scs}, parameters: {registryMirrors: [{hostnameUpstream: "!!binary x", urlUpstream: "https://a", urlMirror: "https://b"}]}`},
	{"parameter with a quote", `provider: local, stack: {name: scs}, parameters: {certSANs: ["a\", b: c"]}`},
	{"names of hosts that are none", `provider: local, stack: {name: scs}, parameters: {certSANs: ["-", a..b, "*", "a.", "api.example.org", "*.example.org", "::1"]}`},
	{"machines that are too small", `provider: local, stack: {name: scs}, controlPlane: {machine: {cpu: 1, memory: 1Mi}}, workers: [{name: a, machine: {cpu: 1, memory: 2500Mi}}]`},
	{"a network of IPv6 alone", `provider: local, stack: {name: scs}, network: {podCIDRs: ["fd00::/56"], serviceCIDRs: ["fd01::/112"]}`},
	{"parameter that another field says", `provider: local, stack: {name: scs}, controlPlane: {machineType: SCS-2V-4}, parameters: {flavor: SCS-4V-8}`},
	{"field that is not there", `provider: local, stack: {name: scs}, worker: []`},
	{"much at once", `provider: local, stack: {name: scs}, controlPlane: {machineType: SCS-2}, workers: [{name: a, zones: [mars]}], oidc: {issuerURL: x, clientID: c}, parameters: {certSAN: [a], podSecurityStandard: none}`},
}

// TestInputs looks at what is said of every bad input: the same to who creates and who only tries. It is not parallel:
// what is said names the providers there are, and another test brings one more.
func TestInputs(t *testing.T) {
	p := shared.Get(t)
	c := &cli{t: t, p: p, ns: p.CreateNamespace(t)}
	catalogueIsThere(t, p.Client(t))
	var out strings.Builder
	for _, w := range wrong {
		file := "apiVersion: polder.dev/v1alpha1\nkind: WorkloadCluster\nmetadata: {name: bad}\nspec: {" + w.spec + "}\n"
		tried := c.run(file, "create", "-f", "-", "--dry-run=server")
		made := c.run(file, "create", "-f", "-")
		if tried.err != made.err || tried.code != made.code {
			t.Errorf("%s: --dry-run=server says\n%s, and without it\n%s", w.name, tried.err, made.err)
		}
		fmt.Fprintf(&out, "# %s\nspec: {%s}\n=> %d\n%s\n", w.name, w.spec, made.code, strings.ReplaceAll(made.err, c.ns, "NAMESPACE"))
	}
	golden(t, "testdata/inputs.txt", out.String())
	if a := c.does("", "get", "-o", "name"); a != "" {
		t.Errorf("something was made: %s", a)
	}
}

// catalogueIsThere waits for the stacks in the binary; a plane is ready before they are.
func catalogueIsThere(t *testing.T, c client.Client) {
	t.Helper()
	testenv.Eventually(t, soon, func() error {
		var l csv1.ClusterStackList
		if err := c.List(t.Context(), &l, client.InNamespace(v1alpha1.CatalogueNamespace)); err != nil {
			return err
		}
		for _, s := range l.Items {
			if !meta.IsStatusConditionTrue(s.Status.Conditions, csv1.ConditionReady) {
				return fmt.Errorf("%s: %+v", s.Name, s.Status.Conditions)
			}
		}
		if len(l.Items) != 3 {
			return fmt.Errorf("%d stacks", len(l.Items))
		}
		return nil
	})
}

// TestChanges looks at what is said of changes that cannot be made. It is not parallel for the same reason.
func TestChanges(t *testing.T) {
	p := shared.Get(t)
	mgmt := p.Client(t)
	catalogueIsThere(t, mgmt)
	o := &v1alpha1.WorkloadCluster{ObjectMeta: metav1.ObjectMeta{Namespace: p.CreateNamespace(t), Name: "fixed"}}
	o.Spec.Provider, o.Spec.Paused, o.Spec.DeletionProtection = "local", ptr.To(true), ptr.To(true)
	o.Spec.Stack = v1alpha1.StackReference{Name: "scs", KubernetesVersion: "1.37"}
	if err := mgmt.Create(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	key := client.ObjectKeyFromObject(o)
	testenv.Eventually(t, soon, func() error {
		if err := mgmt.Get(t.Context(), key, o); err != nil || o.Status.Phase != v1alpha1.PhasePaused {
			return fmt.Errorf("%+v, %w", o.Status, err)
		}
		return nil
	})
	var out strings.Builder
	for _, patch := range []string{
		`{"spec":{"provider":"acme"}}`, `{"spec":{"stack":{"name":"other"}}}`, `{"spec":{"network":{"podCIDRs":["10.1.0.0/16"]}}}`,
		`{"spec":{"stack":{"kubernetesVersion":"1.36"}}}`, `{"spec":{"stack":{"kubernetesVersion":"1.38"}}}`,
	} {
		err := mgmt.Patch(t.Context(), o.DeepCopy(), client.RawPatch("application/merge-patch+json", []byte(patch)))
		if err == nil {
			t.Errorf("%s was accepted", patch)
			continue
		}
		fmt.Fprintf(&out, "%s\n%s\n\n", patch, err)
	}
	if err := mgmt.Delete(t.Context(), o.DeepCopy()); err == nil {
		t.Error("it was deleted, though it is protected")
	} else {
		fmt.Fprintf(&out, "delete\n%s\n\n", err)
	}
	golden(t, "testdata/changes.txt", strings.ReplaceAll(out.String(), o.Namespace, "NAMESPACE"))

	// A field that is left out again keeps what it was given.
	if err := mgmt.Patch(t.Context(), o,
		client.RawPatch("application/merge-patch+json",
			[]byte(`{"spec":{"provider":null,"stack":{"kubernetesVersion":null},"deletionProtection":null}}`))); err != nil {
		t.Fatal(err)
	}
	if o.Spec.Provider != "local" || o.Spec.Stack.KubernetesVersion != "1.37" {
		t.Errorf("%+v", o.Spec)
	}
	if err := mgmt.Delete(t.Context(), o); err != nil {
		t.Error(err)
	}
	testenv.Eventually(t, soon, func() error { // also though it is paused
		if err := mgmt.Get(t.Context(), key, o); !apierrors.IsNotFound(err) {
			return fmt.Errorf("it is still there: %+v, %w", o.Status, err)
		}
		return nil
	})
}

// unsteady is what differs from run to run.
var unsteady = regexp.MustCompile(`127\.0\.0\.1:[0-9]+`)

func golden(t *testing.T, file, got string) {
	t.Helper()
	got = unsteady.ReplaceAllString(got, "ADDRESS")
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), got); d != "" {
		t.Error(d)
	}
}
