package customer

import (
	"bytes"
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/polder-kaas/polder/api/v1alpha1"
	"github.com/polder-kaas/polder/test/testenv"
)

// TestBeside runs the provider of docs/provider-author beside the plane, as its author would: it acts on what names it,
// and on nothing else.
func TestBeside(t *testing.T) {
	t.Parallel()
	p := shared.Get(t)
	mgmt := p.Client(t)
	c := &cli{t: t, p: p, ns: p.CreateNamespace(t)}
	t.Cleanup(func() { uninstall(t, mgmt) })
	kubeconfig := providerAccount(t, p, "acme")
	stop := startExample(t, p, kubeconfig)
	testenv.Eventually(t, soon, func() error {
		o := &v1alpha1.Provider{}
		if err := mgmt.Get(t.Context(), client.ObjectKey{Name: "acme"}, o); err != nil {
			return err
		}
		if !meta.IsStatusConditionTrue(o.Status.Conditions, v1alpha1.ConditionReady) || len(o.Status.MachineTypes) != 3 {
			return fmt.Errorf("%+v", o.Status)
		}
		return nil
	})

	// What only the provider knows, it says itself, as soon as the plane knows where to ask it.
	testenv.Eventually(t, soon, func() error {
		if a := c.run("", "create", "big", "--provider", "acme", "--stack", "scs", "--workers", "21", "--dry-run=server"); a.code == 0 {
			return fmt.Errorf("nobody has asked the provider: %s", a.out)
		}
		return nil
	})
	c.fails(2, "a cluster has at most 20 workers; ask us for more", "", "create", "big", "--provider", "acme", "--stack", "scs", "--workers", "21")
	c.fails(2, `acme has no machine type "huge"; choose from small, medium, large`, "", "create", "odd", "--provider", "acme", "--stack", "scs", "--workers", "1",
		"--worker-type", "huge")
	c.fails(2, "it must be like ^[0-9]{4}$, for example 4711", "", "create", "odd", "--provider", "acme", "--stack", "scs", "--set", "costCentre=x")

	c.does("", "create", "theirs", "--provider", "acme", "--stack", "scs", "--workers", "1", "--worker-type", "large", "--set", `costCentre="4711"`)
	c.does("", "create", "ours", "--provider", "local", "--stack", "scs", "--workers", "0")
	c.does("", "wait", "theirs", "--timeout", "3m")
	c.does("", "wait", "ours", "--timeout", "3m")
	made := &clusterv1.Cluster{}
	if err := mgmt.Get(t.Context(), client.ObjectKey{Namespace: c.ns, Name: "theirs"}, made); err != nil {
		t.Fatal(err)
	}
	pool := made.Spec.Topology.Workers.MachineDeployments[0]
	if len(pool.Variables.Overrides) != 1 || string(pool.Variables.Overrides[0].Value.Raw) != `"SCS-8V-32"` ||
		made.Annotations["acme.example.org/cost-centre"] != `"4711"` {
		t.Errorf("%+v, %v", pool, made.Annotations)
	}

	keepsToItself(t, kubeconfig, c.ns)

	// Once it has stopped, nobody acts on its clusters, and those of others do not mind.
	stop()
	c.does("", "scale", "ours", "--pool", "default=1", "--wait", "--timeout", "1m")
	c.fails(1, "acme.provider.polder.dev", "", "scale", "theirs", "--workers", "2")
	protect := client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"deletionProtection":true}}`))
	unprotect := client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"deletionProtection":null}}`))
	for _, patch := range []client.Patch{protect, unprotect} { // what does not concern the provider goes without it
		if err := mgmt.Patch(t.Context(), &v1alpha1.WorkloadCluster{ObjectMeta: metav1.ObjectMeta{Namespace: c.ns, Name: "theirs"}}, patch); err != nil {
			t.Error(err)
		}
	}
	if got := workersOf(t, mgmt, c.ns, "theirs"); got != 1 {
		t.Errorf("%d workers, though nobody was there to change that", got)
	}
	stop = startExample(t, p, kubeconfig)
	testenv.Eventually(t, soon, func() error {
		if a := c.run("", "scale", "theirs", "--workers", "2"); a.code != 0 {
			return fmt.Errorf("%s", a.err)
		}
		return nil
	})
	c.does("", "wait", "theirs", "--timeout", "2m")
	if got := workersOf(t, mgmt, c.ns, "theirs"); got != 2 {
		t.Errorf("%d workers", got)
	}

	// One that is not installed any more leaves its clusters to the plane, which says so, and can delete them.
	stop()
	uninstall(t, mgmt)
	testenv.Eventually(t, soon, func() error {
		o := &v1alpha1.WorkloadCluster{}
		if err := mgmt.Get(t.Context(), client.ObjectKey{Namespace: c.ns, Name: "theirs"}, o); err != nil {
			return err
		}
		if o.Status.Message != "provider acme is not installed, so nobody acts on this cluster" {
			return fmt.Errorf("%s", o.Status.Message)
		}
		return nil
	})
	c.does("", "delete", "theirs", "ours", "--yes", "--wait", "--timeout", "3m")
	if err := mgmt.Get(t.Context(), client.ObjectKeyFromObject(made), made); !apierrors.IsNotFound(err) {
		t.Errorf("the Cluster is left: %v", err)
	}
}

// startExample starts the example provider; what it returns stops it as SIGTERM does.
func startExample(t *testing.T, p *testenv.Plane, kubeconfig string) (stop func()) {
	t.Helper()
	cmd := p.Tree.Command("example-provider", "--kubeconfig", kubeconfig)
	var log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &log, &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	stopped := false
	stop = func() {
		if stopped {
			return
		}
		stopped = true
		_ = cmd.Process.Signal(syscall.SIGTERM) // it may have ended already
		select {
		case err := <-ended:
			if err != nil {
				t.Errorf("the provider ended with %v:\n%s", err, log.String())
			}
		case <-time.After(soon):
			_ = cmd.Process.Kill()
			t.Errorf("the provider does not end:\n%s", log.String())
		}
	}
	t.Cleanup(stop)
	return stop
}

// providerAccount makes a service account for a provider, as the documentation says, and a kubeconfig with a token of
// it.
func providerAccount(t *testing.T, p *testenv.Plane, name string) string {
	t.Helper()
	c := p.Client(t)
	sa := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: v1alpha1.ProvidersNamespace, Name: name}}
	if err := client.IgnoreAlreadyExists(c.Create(t.Context(), sa)); err != nil {
		t.Fatal(err)
	}
	token := &authenticationv1.TokenRequest{}
	if err := c.SubResource("token").Create(t.Context(), sa, token); err != nil {
		t.Fatal(err)
	}
	admin := p.RESTConfig(t)
	k := clientcmdapi.NewConfig()
	k.Clusters["c"] = &clientcmdapi.Cluster{Server: admin.Host, CertificateAuthorityData: admin.CAData, TLSServerName: admin.ServerName}
	k.AuthInfos["u"] = &clientcmdapi.AuthInfo{Token: token.Status.Token}
	k.Contexts["c"] = &clientcmdapi.Context{Cluster: "c", AuthInfo: "u"}
	k.CurrentContext = "c"
	file := filepath.Join(p.Tree.Home, name+".kubeconfig")
	if err := clientcmd.WriteToFile(*k, file); err != nil {
		t.Fatal(err)
	}
	testenv.Chown(t, file)
	return file
}

// keepsToItself checks that a provider can do nothing to what is not its own.
func keepsToItself(t *testing.T, kubeconfig, ns string) {
	t.Helper()
	cfg, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	c, ctx := testenv.NewClient(t, cfg), t.Context()
	patch := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"annotations":{"by":"acme"}}}`))
	status := client.RawPatch("application/merge-patch+json", []byte(`{"status":{"title":"mine"}}`))
	in := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: ns, Name: name} }
	for what, err := range map[string]error{
		"change another's WorkloadCluster": c.Patch(ctx, &v1alpha1.WorkloadCluster{ObjectMeta: in("ours")}, patch),
		"change another's Cluster":         c.Patch(ctx, &clusterv1.Cluster{ObjectMeta: in("ours")}, patch),
		"delete another's Cluster":         c.Delete(ctx, &clusterv1.Cluster{ObjectMeta: in("ours")}),
		"make a Cluster of its own": c.Create(ctx, &clusterv1.Cluster{
			ObjectMeta: in("stray"), Spec: clusterv1.ClusterSpec{InfrastructureRef: clusterv1.ContractVersionedObjectReference{APIGroup: "a.b", Kind: "C", Name: "d"}},
		}),
		"speak for another": c.Status().Patch(ctx, &v1alpha1.Provider{ObjectMeta: metav1.ObjectMeta{Name: "local"}}, status),
		"read secrets":      c.List(ctx, &corev1.SecretList{}, client.InNamespace(ns)),
		"listen to others":  c.Create(ctx, &admissionv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "evil"}}),
		"take another provider's lease": c.Create(ctx, &coordinationv1.Lease{
			ObjectMeta: metav1.ObjectMeta{Namespace: v1alpha1.ProvidersNamespace, Name: "polder-provider-other"},
		}),
		"take another's lease": c.Create(ctx, &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "x"}}),
	} {
		if !apierrors.IsForbidden(err) && !apierrors.IsInvalid(err) {
			t.Errorf("a provider may %s: %v", what, err)
		}
	}
	if err := c.Patch(ctx, &v1alpha1.WorkloadCluster{ObjectMeta: in("theirs")}, patch); err != nil {
		t.Errorf("a provider may not change its own: %v", err)
	}
}

// uninstall removes what a provider leaves when it stops, since it may come back: its object, and with that the rest.
func uninstall(t *testing.T, c client.Client) {
	t.Helper()
	if err := client.IgnoreNotFound(c.Delete(context.Background(), &v1alpha1.Provider{ObjectMeta: metav1.ObjectMeta{Name: "acme"}})); err != nil {
		t.Error(err)
	}
	testenv.Eventually(t, soon, func() error {
		err := c.Get(context.Background(), client.ObjectKey{Name: "polder-provider-acme"}, &admissionv1.ValidatingWebhookConfiguration{})
		if !apierrors.IsNotFound(err) {
			return fmt.Errorf("its say in admission is left: %w", err)
		}
		return nil
	})
}

func workersOf(t *testing.T, c client.Client, ns, name string) int32 {
	t.Helper()
	o := &clusterv1.Cluster{}
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: ns, Name: name}, o); err != nil {
		t.Fatal(err)
	}
	return *o.Spec.Topology.Workers.MachineDeployments[0].Replicas
}

// TestInterrupted is Ctrl-C while a cluster is being made: it goes on, and the command says how to wait for it again.
func TestInterrupted(t *testing.T) {
	t.Parallel()
	p := shared.Get(t)
	c := &cli{t: t, p: p, ns: p.CreateNamespace(t)}
	cmd := c.command("create", "left", "--provider", "local", "--stack", "scs", "--workers", "0", "--wait")
	out, errs := &testenv.Buffer{}, &testenv.Buffer{}
	cmd.Stdout, cmd.Stderr = out, errs
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	testenv.Eventually(t, soon, func() error {
		if !strings.Contains(out.String()+errs.String(), string(v1alpha1.PhaseCreating)) {
			return fmt.Errorf("%s%s", out, errs)
		}
		return nil
	})
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // the code is looked at below
	if code := cmd.ProcessState.ExitCode(); code != 130 || !strings.Contains(errs.String()+out.String(), "polder wait left") {
		t.Errorf("exit code %d\n%s%s", code, out, errs)
	}
	c.does("", "wait", "left", "--timeout", "3m")
	if a := c.run("", "describe", "left"); a.code != 0 || !strings.Contains(a.out, "control plane") {
		t.Errorf("%+v", a)
	}
	c.does("", "delete", "left", "--yes", "--wait", "--timeout", "2m")
	c.fails(2, "there is no cluster \"left\"", "", "describe", "left")
}
