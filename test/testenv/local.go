package testenv

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/polder-kaas/polder/internal/plane/lifecycle"
	"github.com/polder-kaas/polder/internal/providers/local/hostapi"
	"github.com/polder-kaas/polder/internal/providers/local/launch"
)

// InstallLocalClass installs the sample class of local clusters in a namespace; change may alter its
// objects before.
func InstallLocalClass(t testing.TB, c client.Client, namespace string, change func(*unstructured.Unstructured)) {
	t.Helper()
	for _, u := range loadSamples(t, "local/class.yaml") {
		u.SetNamespace(namespace)
		if change != nil {
			change(u)
		}
		if err := client.IgnoreAlreadyExists(c.Create(t.Context(), u)); err != nil {
			t.Fatal(err)
		}
	}
	Eventually(t, startTimeout, func() error {
		cc := &clusterv1.ClusterClass{}
		if err := c.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "local"}, cc); err != nil {
			return err
		}
		if cc.Status.ObservedGeneration != cc.Generation || len(cc.Status.Variables) == 0 {
			return fmt.Errorf("the class has not been observed yet: %v", cc.Status.Conditions)
		}
		return nil
	})
}

// LocalCluster is the sample local cluster, not yet created.
func LocalCluster(t testing.TB, namespace, name, version string) *unstructured.Unstructured {
	t.Helper()
	u := loadSamples(t, "local/cluster.yaml")[0]
	u.SetNamespace(namespace)
	u.SetName(name)
	if err := unstructured.SetNestedField(u.Object, version, "spec", "topology", "version"); err != nil {
		t.Fatal(err)
	}
	return u
}

// WorkloadConfig is the administrator's access to a workload cluster, from the Secret Cluster API keeps.
func WorkloadConfig(t testing.TB, c client.Client, namespace, name string) *rest.Config {
	t.Helper()
	var s corev1.Secret
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name + "-kubeconfig"}, &s); err != nil {
		t.Fatal(err)
	}
	cfg, err := clientcmd.RESTConfigFromKubeConfig(s.Data["value"])
	if err != nil {
		t.Fatal(err)
	}
	cfg.QPS = -1
	return cfg
}

func (p *Plane) launcher() launch.Launcher {
	return launch.Launcher{HostsDir: hostapi.HostsDir(p.Data)}
}

// HostStatus returns the status of a local cluster's host, and a client for the host.
func (p *Plane) HostStatus(ctx context.Context, namespace, name string) (hostapi.Status, *hostapi.Client, error) {
	all, err := p.launcher().Clusters()
	if err != nil {
		return hostapi.Status{}, nil, err
	}
	for _, c := range all {
		if c.Namespace == namespace && c.Name == name {
			h := hostapi.NewClient(p.launcher().Dir(c.UID))
			s, err := h.Status(ctx)
			return s, h, err
		}
	}
	return hostapi.Status{}, nil, fmt.Errorf("there is no host for cluster %s/%s", namespace, name)
}

// StopEverything kills the plane and ends the hosts of its clusters, for tests that take their files away.
func (p *Plane) StopEverything(t testing.TB) {
	t.Helper()
	p.Kill()
	if err := p.stopHosts(); err != nil {
		t.Error(err)
	}
}

// stopHosts ends the hosts of local clusters, which outlive their plane.
func (p *Plane) stopHosts() error {
	planes, err := filepath.Glob(filepath.Join(p.Data, lifecycle.TenantPlanesDir, "*")) // of tenants
	errs := []error{err}
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	for _, data := range append(planes, p.Data) {
		l := p.launcher()
		l.HostsDir = hostapi.HostsDir(data)
		if _, err := os.Stat(l.HostsDir); err != nil {
			continue // there never was one
		}
		all, err := l.Clusters()
		errs = append(errs, err)
		for _, c := range all {
			errs = append(errs, l.Stop(ctx, c.UID, true))
		}
	}
	return errors.Join(errs...)
}

// Processes lists the processes that have to do with the plane: those that name its tree.
func (p *Plane) Processes() ([]string, error) {
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		return nil, err
	}
	var found []string
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil || !bytes.Contains(b, []byte(p.Tree.Root)) && !bytes.Contains(b, []byte(p.Tree.Bin)) {
			continue // it has ended, or is another's
		}
		found = append(found, strings.TrimSpace(filepath.Base(filepath.Dir(f))+" "+strings.ReplaceAll(string(b), "\x00", " ")))
	}
	return found, nil
}
