package operator

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	csv1 "github.com/polder-kaas/polder/api/clusterstack/v1alpha1"
	infrav1 "github.com/polder-kaas/polder/api/infrastructure/v1alpha1"
	"github.com/polder-kaas/polder/stack/archive"
	stackregistry "github.com/polder-kaas/polder/stack/registry"
	"github.com/polder-kaas/polder/test/stackenv"
	"github.com/polder-kaas/polder/test/testenv"
)

// overwrite publishes another content under a name, as nobody should.
func (w *walk) overwrite(t *testing.T, kubernetes, v string, change func(archive.Tree)) string {
	t.Helper()
	files := stackenv.ReadSource(t, "local/scs")
	if change != nil {
		change(files)
	}
	return publishAt(t, w.repository, stackregistry.Options{Overwrite: true}, stackenv.Build(t, files, kubernetes, v))[0]
}

// What is damaged on disk is found out, and fetched again by its digest.
func TestReleaseOnDiskIsDamaged(t *testing.T) {
	t.Parallel()
	for name, damage := range map[string]func(t *testing.T, dir string){
		"a bit is flipped": func(t *testing.T, dir string) {
			each(t, dir, func(path string, b []byte) error { b[len(b)/2] ^= 1; return os.WriteFile(path, b, 0o600) })
		},
		"files are cut": func(t *testing.T, dir string) {
			each(t, dir, func(path string, b []byte) error { return os.Truncate(path, int64(len(b)/2)) })
		},
		"files are gone": func(t *testing.T, dir string) {
			each(t, dir, func(path string, _ []byte) error { return os.Remove(path) })
		},
		"a file is added": func(t *testing.T, dir string) {
			if err := os.WriteFile(filepath.Join(dir, "files", "more.yaml"), []byte("kind: Secret"), 0o600); err != nil {
				t.Fatal(err)
			}
		},
		"all of it is gone": func(t *testing.T, dir string) {
			if err := os.RemoveAll(dir); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWalk(t)
			// Releases of the same content share their place on disk.
			w.publish(t, "1.36", "v1", withClass("# "+name))
			w.stack(t, "stack", "1.36", nil)
			w.becomesReady(t, "stack", "v1")
			rel := &csv1.ClusterStackRelease{}
			if err := w.get(t, "local-scs-1-36-v1", rel); err != nil {
				t.Fatal(err)
			}
			dir := filepath.Join(shared.Get(t).Data, "releases", strings.Replace(rel.Status.Digest, ":", "-", 1))
			before := content(t, dir)
			damage(t, dir)
			w.classIsRestored(t, "local-scs-1-36-v1")
			after := content(t, dir)
			for path, b := range before {
				if !bytes.Equal(b, after[path]) {
					t.Errorf("%s is not repaired", path)
				}
			}
			if len(before) < 3 || len(after) != len(before) {
				t.Errorf("%d files, and %d before", len(after), len(before))
			}
		})
	}
}

func content(t *testing.T, dir string) map[string][]byte {
	t.Helper()
	out := map[string][]byte{}
	each(t, dir, func(path string, b []byte) error { out[path] = b; return nil })
	return out
}

func each(t *testing.T, dir string, do func(path string, b []byte) error) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return do(path, b)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// A release is never ready while something of it is missing, and says what.
func TestReleaseWaitsForItsKinds(t *testing.T) {
	t.Parallel()
	w := newWalk(t)
	kind := "T" + strings.ReplaceAll(strings.TrimPrefix(w.ns, "test-"), "-", "") + "Template"
	w.publish(t, "1.36", "v1", withClass(fmt.Sprintf("apiVersion: infrastructure.cluster.x-k8s.io/v1\nkind: %s\nmetadata: {name: more}\nspec: {size: 1}\n", kind)))
	w.stack(t, "stack", "1.36", nil)
	rel := &csv1.ClusterStackRelease{}
	w.says(t, rel, "local-scs-1-36-v1", csv1.ConditionApplied, metav1.ConditionFalse, csv1.ReasonApplyFailed, kind+" more cannot be applied", "install it before")
	w.says(t, &csv1.ClusterStack{}, "stack", csv1.ConditionReady, metav1.ConditionFalse, csv1.ReasonReleasesNotReady, kind)
	if ptr.Deref(rel.Status.Ready, false) || len(rel.Status.Resources) > 0 {
		t.Errorf("a release without its kind: ready %v, resources %v", ptr.Deref(rel.Status.Ready, false), rel.Status.Resources)
	}
	if err := client.IgnoreNotFound(w.get(t, "local-scs-1-36-v1", &clusterv1.ClusterClass{})); err != nil {
		t.Fatal(err)
	}
	// Its provider is installed, with the right for the operator, and nothing else has to be done.
	w.installKind(t, kind)
	w.becomesReady(t, "stack", "v1")
	if err := w.get(t, "local-scs-1-36-v1", rel); err != nil {
		t.Fatal(err)
	}
	for _, r := range rel.Status.Resources {
		if r.Status != csv1.ResourceSynced {
			t.Errorf("%v is not synced, and the release is ready", r)
		}
	}
}

func (w *walk) installKind(t *testing.T, kind string) {
	t.Helper()
	plural := strings.ToLower(kind) + "s"
	crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{
		Name: plural + ".infrastructure.cluster.x-k8s.io", Labels: map[string]string{"cluster.x-k8s.io/v1beta2": "v1"},
	}}
	crd.Spec = apiextensionsv1.CustomResourceDefinitionSpec{
		Group: "infrastructure.cluster.x-k8s.io", Scope: apiextensionsv1.NamespaceScoped,
		Names: apiextensionsv1.CustomResourceDefinitionNames{Kind: kind, ListKind: kind + "List", Plural: plural, Singular: strings.ToLower(kind)},
		Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{Name: "v1", Served: true, Storage: true, Schema: &apiextensionsv1.CustomResourceValidation{
			OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: ptr.To(true)},
		}}},
	}
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: plural, Labels: map[string]string{"polder.dev/aggregate-to-operator": "true"}}}
	role.Rules = []rbacv1.PolicyRule{
		{APIGroups: []string{crd.Spec.Group}, Resources: []string{plural}, Verbs: []string{"get", "list", "watch", "create", "update", "patch", "delete"}},
	}
	for _, o := range []client.Object{role, crd} {
		if err := w.mgmt.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = w.mgmt.Delete(t.Context(), o) }) // nobody else minds
	}
}

// Templates that somebody deletes come back, though nobody asks.
func TestTemplateIsDeleted(t *testing.T) {
	t.Parallel()
	w := newWalk(t)
	w.publish(t, "1.36", "v1", nil)
	w.stack(t, "stack", "1.36", nil)
	w.becomesReady(t, "stack", "v1")
	for _, o := range []client.Object{&infrav1.LocalMachineTemplate{}, &infrav1.LocalClusterTemplate{}} {
		name := "local-scs-1-36-v1"
		if _, ok := o.(*infrav1.LocalMachineTemplate); ok {
			name += "-worker"
		}
		if err := w.get(t, name, o); err != nil {
			t.Fatal(err)
		}
		was := o.GetUID()
		if err := w.mgmt.Delete(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		testenv.Eventually(t, soon, func() error {
			if err := w.get(t, name, o); err != nil {
				return err
			}
			if o.GetUID() == was || metav1.GetControllerOf(o) == nil {
				return fmt.Errorf("%T %s is not made anew", o, name)
			}
			return nil
		})
	}
	w.becomesReady(t, "stack", "v1")
}

// What is in the plane already and belongs to somebody is left alone, and named.
func TestReleaseLeavesAloneWhatBelongsToOthers(t *testing.T) {
	t.Parallel()
	w := newWalk(t)
	theirs := &infrav1.LocalClusterTemplate{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: "local-scs-1-36-v1", Labels: map[string]string{"whose": "theirs"}},
	}
	if err := w.mgmt.Create(t.Context(), theirs, client.FieldOwner("somebody")); err != nil {
		t.Fatal(err)
	}
	w.publish(t, "1.36", "v1", nil)
	w.stack(t, "stack", "1.36", nil)
	w.says(t, &csv1.ClusterStackRelease{}, "local-scs-1-36-v1", csv1.ConditionApplied, metav1.ConditionFalse, csv1.ReasonApplyFailed,
		"LocalClusterTemplate "+w.ns+"/local-scs-1-36-v1 belongs to somebody else (field managers somebody)", "kubectl label")
	if err := w.get(t, theirs.Name, theirs); err != nil || theirs.Labels[csv1.OwnedLabel] != "" {
		t.Errorf("it was taken: %v, %v", theirs.Labels, err)
	}
	for _, f := range theirs.ManagedFields { // Cluster API writes to it too
		if f.Manager == "polder-release" {
			t.Error("it was written to")
		}
	}
	// It goes out of the way, and nothing else has to be done.
	if err := w.mgmt.Delete(t.Context(), theirs); err != nil {
		t.Fatal(err)
	}
	w.becomesReady(t, "stack", "v1")
}
