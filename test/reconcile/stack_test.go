package reconcile

import (
	"context"
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	csv1 "github.com/polder-kaas/polder/api/clusterstack/v1alpha1"
	infrav1 "github.com/polder-kaas/polder/api/infrastructure/v1alpha1"
	"github.com/polder-kaas/polder/internal/apply"
	"github.com/polder-kaas/polder/internal/operator"
	"github.com/polder-kaas/polder/internal/reconcile/reconciletest"
	"github.com/polder-kaas/polder/internal/releases"
	"github.com/polder-kaas/polder/stack/archive"
	"github.com/polder-kaas/polder/test/stackenv"
)

// setupOperator registers the operator's controllers as polderd does. Releases come from a directory, are
// kept in one that outlives the process, and are rendered by the program that was built.
func setupOperator(t *testing.T, source string) func(context.Context, ctrl.Manager) error {
	t.Helper()
	cache := t.TempDir()
	renderer := filepath.Join(shared.Get(t).Tree.Bin, "polder")
	return func(ctx context.Context, mgr ctrl.Manager) error {
		return operator.Setup(ctx, mgr, operator.Settings{
			Releases: operator.Releases{Default: &releases.ConfiguredSource{Reference: source}, Kinds: apply.DefaultKinds()},
			Dir:      cache, Concurrency: 2, Renderer: renderer, WrapWorkload: mgr.GetConfig().WrapTransport,
		})
	}
}

// classKinds are the kinds of a release's objects in the plane.
func classKinds() []client.Object {
	return []client.Object{
		&clusterv1.ClusterClass{}, &controlplanev1.KubeadmControlPlaneTemplate{}, &bootstrapv1.KubeadmConfigTemplate{},
		&infrav1.LocalClusterTemplate{}, &infrav1.LocalMachineTemplate{},
	}
}

// A stack and its releases, with all they bring into the plane.
func TestClusterStack(t *testing.T) {
	source := t.TempDir()
	stackenv.Publish(t, source, stackenv.BuildShipped(t, "local/scs", "1.37", "v1"), stackenv.BuildShipped(t, "local/scs", "1.37", "v2"))
	setVersions := func(versions ...string) reconciletest.Action {
		return func(ctx context.Context, c client.Client, ns string) error {
			return patch(ctx, c, &csv1.ClusterStack{}, ns, "scs", map[string]any{"spec": map[string]any{"versions": versions}})
		}
	}
	reconciletest.Run(t, api(t), reconciletest.Subject{
		Setup: setupOperator(t, source),
		Kinds: append([]client.Object{&csv1.ClusterStack{}, &csv1.ClusterStackRelease{}}, classKinds()...),
		User:  operator.User,
		CreateInputs: func(ctx context.Context, c client.Client, ns string) error {
			s := &csv1.ClusterStack{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "scs"}}
			s.Spec = csv1.ClusterStackSpec{Provider: "local", Name: "scs", KubernetesVersion: "1.37", Versions: []string{"v1"}}
			return c.Create(ctx, s)
		},
		Normalize: func(u *unstructured.Unstructured) {
			refs := slices.DeleteFunc(u.GetOwnerReferences(), func(r metav1.OwnerReference) bool { return r.Kind == "ClusterClass" })
			u.SetOwnerReferences(refs) // those to the class are Cluster API's
			resources, _, _ := unstructured.NestedSlice(u.Object, "status", "resources")
			for _, r := range resources {
				delete(r.(map[string]any), "generation") // it grows with every correction
			}
			if resources != nil {
				_ = unstructured.SetNestedSlice(u.Object, resources, "status", "resources") // as it was read
			}
		},
		BadInputs: []reconciletest.Fault{{
			Name:          "a version that the source does not have",
			Break:         setVersions("v1", "v7"),
			CheckReported: reconciletest.ExpectReason(&csv1.ClusterStackRelease{}, "local-scs-1-37-v7", csv1.ConditionReady, csv1.ReasonNotFound),
			Repair:        setVersions("v1"),
		}},
		MinRequeueAfter: minimalPoll,
	})
}

func patch(ctx context.Context, c client.Client, o client.Object, ns, name string, value map[string]any) error {
	b, err := json.Marshal(value)
	if err != nil {
		return err
	}
	o.SetNamespace(ns)
	o.SetName(name)
	return c.Patch(ctx, o, client.RawPatch(client.Merge.Type(), b))
}

// tiny is the shipped class with one small add-on, whose objects are in the namespace of the cluster.
func tiny(t *testing.T) archive.Tree {
	t.Helper()
	files := stackenv.ReadSource(t, "local/scs")
	for name := range files {
		if strings.HasPrefix(name, "cluster-addon/") {
			delete(files, name)
		}
	}
	files["cluster-addon/tiny/Chart.yaml"] = []byte("apiVersion: v2\nname: tiny\nversion: v1\n")
	files["cluster-addon/tiny/overwrite.yaml"] = []byte("values: |\n  namespace: {{ .Cluster.metadata.namespace }}\n")
	files["cluster-addon/tiny/templates/all.yaml"] = []byte(`apiVersion: v1
kind: ConfigMap
metadata: {name: tiny, namespace: {{ .Values.namespace }}}
data: {password: {{ randAlphaNum 12 }}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: tiny, namespace: {{ .Values.namespace }}}
rules: [{apiGroups: [""], resources: [configmaps], verbs: [get]}]
`)
	files["clusteraddon.yaml"] = []byte(`apiVersion: clusteraddonconfig.x-k8s.io/v1alpha1
clusterAddonVersion: clusteraddons.clusterstack.x-k8s.io/v1alpha1
addonStages:
  AfterControlPlaneInitialized:
    - name: tiny
      action: apply
      waitForPostCondition:
        objects: [{key: map, apiVersion: v1, kind: Namespace, name: default}]
        conditions: map.metadata.name == 'default'
`)
	return files
}

// Add-ons of a cluster. The plane itself plays the workload cluster: it is an API server like any other.
func TestClusterAddon(t *testing.T) {
	source := t.TempDir()
	stackenv.Publish(t, source, stackenv.Build(t, tiny(t), "1.37", "v1"))
	kubeconfig := ownKubeconfig(t)
	secret := func(value []byte) reconciletest.Action {
		return func(ctx context.Context, c client.Client, ns string) error {
			return patch(ctx, c, &corev1.Secret{}, ns, "tiny-kubeconfig", map[string]any{"data": map[string]any{"value": value}})
		}
	}
	reconciletest.Run(t, api(t), reconciletest.Subject{
		Setup: setupOperator(t, source),
		Kinds: []client.Object{&csv1.ClusterAddon{}},
		User:  operator.User,
		CreateInputs: func(ctx context.Context, c client.Client, ns string) error {
			return givenCluster(ctx, c, ns, kubeconfig)
		},
		CheckSettled: settledAddons,
		Delete:       deleteTiny,
		Timeout:      2 * time.Minute, // a process that dies after every write is started thirty times
		CheckDeleted: goneTiny,
		BadInputs: []reconciletest.Fault{{
			Name:          "a kubeconfig that cannot be used",
			Break:         secret([]byte(brokenKubeconfig)),
			CheckReported: reconciletest.ExpectReason(&csv1.ClusterAddon{}, csv1.AddonPrefix+"tiny", csv1.ConditionReady, csv1.ReasonUnreachable),
			Repair:        secret(kubeconfig),
			Timing:        reconciletest.FromStart,
		}},
		MinRequeueAfter: minimalPoll,
	})
}
