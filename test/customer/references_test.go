package customer

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/polder-kaas/polder/test/testenv"
)

// How an object is kept from reaching into another namespace.
const (
	byPolicy    = "refused at admission" // and tried by TestReferencesAcrossNamespaces
	byScope     = "of a kind without a namespace, which customers have no rights to"
	byDirection = "offers something to other namespaces, and takes nothing from them"
	byPlace     = "about namespaces of the workload cluster"
	byStatus    = "written by the plane"
	byField     = "the platform operator's alone: admission decides by field, which TestTenantFields tries"
)

// foreign are all fields of all kinds in which a namespace can be written, each with how it is kept from doing harm. A
// new field is to be added here, and tried below if admission is to refuse it.
var foreign = map[string]string{
	"clusters.cluster.x-k8s.io/v1beta2 .spec.topology.classRef.namespace":               byPolicy,
	"clusteraddons.clusterstack.x-k8s.io/v1alpha1 .spec.clusterRef.namespace":           byPolicy,
	"clusterstacks.clusterstack.x-k8s.io/v1alpha1 .spec.providerRef.namespace":          byPolicy,
	"clusterstackreleases.clusterstack.x-k8s.io/v1alpha1 .spec.providerRef.namespace":   byPolicy,
	"clusters.cluster.x-k8s.io/v1beta1 .spec.topology.classNamespace":                   byPolicy, // by conversion to classRef
	"clusterstacks.clusterstack.x-k8s.io/v1alpha1 .spec.allowedNamespaces":              byDirection,
	"machinedrainrules.cluster.x-k8s.io/* .spec.pods[].namespaceSelector":               byPlace,
	"extensionconfigs.runtime.cluster.x-k8s.io/* .spec.clientConfig.service.namespace":  byScope,
	"extensionconfigs.runtime.cluster.x-k8s.io/* .spec.namespaceSelector":               byScope,
	"clusteraddons.clusterstack.x-k8s.io/v1alpha1 .status.resources[].namespace":        byStatus,
	"clusterstackreleases.clusterstack.x-k8s.io/v1alpha1 .status.resources[].namespace": byStatus,
	"tenants.polder.dev/v1alpha1 .spec.namespace":                                       byField,
	"tenants.polder.dev/v1alpha1 .status.namespace":                                     byStatus,
	"machinepools.cluster.x-k8s.io/* .status.nodeRefs[].namespace":                      byStatus,
}

var namespaceField = regexp.MustCompile(`(?i)namespaces?(selector)?$`)

// namespaceFields are the paths of all fields of a schema in which a namespace can be written.
func namespaceFields(s *apiextensionsv1.JSONSchemaProps, path string) (out []string) {
	for name, p := range s.Properties {
		at := path + "." + name
		if namespaceField.MatchString(name) {
			out = append(out, at)
		}
		out = append(out, namespaceFields(&p, at)...)
	}
	if s.Items != nil && s.Items.Schema != nil {
		out = append(out, namespaceFields(s.Items.Schema, path+"[]")...)
	}
	if s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil {
		out = append(out, namespaceFields(s.AdditionalProperties.Schema, path+"{}")...)
	}
	return out
}

// TestReferencesAreKnown compares the fields of all kinds that the plane serves with the table.
func TestReferencesAreKnown(t *testing.T) {
	var l apiextensionsv1.CustomResourceDefinitionList
	if err := shared.Get(t).Client(t).List(t.Context(), &l); err != nil {
		t.Fatal(err)
	}
	unseen := maps.Clone(foreign)
	fields := 0
	for _, crd := range l.Items {
		if strings.HasSuffix(crd.Spec.Group, "example.org") {
			continue // of a test beside
		}
		for _, v := range crd.Spec.Versions {
			if v.Schema == nil || v.Schema.OpenAPIV3Schema == nil || v.Schema.OpenAPIV3Schema.XPreserveUnknownFields != nil {
				t.Errorf("%s/%s has no schema, so anything can be written", crd.Name, v.Name)
				continue
			}
			for _, field := range namespaceFields(v.Schema.OpenAPIV3Schema, "") {
				fields++
				one, all := crd.Name+"/"+v.Name+" "+field, crd.Name+"/* "+field
				how := foreign[one]
				if how == "" {
					how = foreign[all]
				}
				delete(unseen, one)
				delete(unseen, all)
				switch {
				case how == byScope && crd.Spec.Scope != apiextensionsv1.ClusterScoped || how == byStatus && !strings.HasPrefix(field, ".status."):
					t.Errorf("%s is not %s", one, how)
				case how == "" && !v.Storage && convertsAway(crd, field): // tried by TestOlderReferencesAreDropped
				case how == "":
					t.Errorf("%s is a field in which another namespace can be named: refuse it at admission, and say here how", one)
				}
			}
		}
	}
	if fields < len(foreign) || len(unseen) > 0 {
		t.Errorf("%d fields; not found: %v", fields, slices.Sorted(maps.Keys(unseen)))
	}
}

// convertsAway says whether a field of an older version has no counterpart in the one that is stored, by which
// controllers go: the same path is not there, nor is another for a namespace below the same object.
func convertsAway(crd apiextensionsv1.CustomResourceDefinition, field string) bool {
	for _, v := range crd.Spec.Versions {
		if v.Storage {
			parent := field[:strings.LastIndex(field, ".")]
			return !slices.ContainsFunc(namespaceFields(v.Schema.OpenAPIV3Schema, ""), func(f string) bool {
				return f == field || strings.HasPrefix(f, parent+".")
			})
		}
	}
	return false
}

// attempts are objects of a customer that refer to another namespace; FOREIGN is its name.
var attempts = map[string]string{
	"a class": `{"apiVersion":"cluster.x-k8s.io/v1beta2","kind":"Cluster","metadata":{"name":"a"},
		"spec":{"topology":{"classRef":{"name":"stub","namespace":"FOREIGN"},"version":"v1.36.3"}}}`,
	"a class, by an older version": `{"apiVersion":"cluster.x-k8s.io/v1beta1","kind":"Cluster","metadata":{"name":"a"},
		"spec":{"topology":{"class":"stub","classNamespace":"FOREIGN","version":"v1.36.3"}}}`,
	"a cluster of an add-on": `{"apiVersion":"clusterstack.x-k8s.io/v1alpha1","kind":"ClusterAddon","metadata":{"name":"a"},
		"spec":{"clusterRef":{"kind":"Cluster","name":"a","namespace":"FOREIGN"}}}`,
	"a provider of a stack": `{"apiVersion":"clusterstack.x-k8s.io/v1alpha1","kind":"ClusterStack","metadata":{"name":"a"},
		"spec":{"provider":"local","name":"scs","kubernetesVersion":"1.37","channel":"stable","providerRef":{"kind":"X","name":"a","namespace":"FOREIGN"}}}`,
	"a provider of a release": `{"apiVersion":"clusterstack.x-k8s.io/v1alpha1","kind":"ClusterStackRelease","metadata":{"name":"local-scs-1-37-v1"},
		"spec":{"providerRef":{"kind":"X","name":"a","namespace":"FOREIGN"}}}`,
}

// TestReferencesAcrossNamespaces tries them as a customer who has all rights in his namespace, on creation and on
// update. The same within his namespace is not refused for that.
func TestReferencesAcrossNamespaces(t *testing.T) {
	p := shared.Get(t)
	admin := p.Client(t)
	ns, other := customerNamespace(t, admin, nil), p.CreateNamespace(t)
	customer := clientOf(t, p, ns, "mallory", "cluster-admin")
	tried := map[string]bool{}
	for name, text := range attempts {
		t.Run(name, func(t *testing.T) {
			object := func(in string) *unstructured.Unstructured {
				u := &unstructured.Unstructured{}
				if err := json.Unmarshal([]byte(strings.ReplaceAll(text, "FOREIGN", in)), u); err != nil {
					t.Fatal(err)
				}
				u.SetNamespace(ns)
				return u
			}
			u := object(other)
			tried[strings.ToLower(u.GetKind())+"s."+u.GroupVersionKind().Group+"/"+u.GroupVersionKind().Version] = true
			testenv.Eventually(t, soon, func() error {
				return refusedForNamespace(customer.Create(t.Context(), object(other), client.DryRunAll))
			})
			if err := refusedForNamespace(customer.Create(t.Context(), object(ns), client.DryRunAll)); err == nil {
				t.Error("its own namespace is refused")
			}
			if err := refusedForNamespace(admin.Create(t.Context(), object(other), client.DryRunAll)); err == nil {
				t.Error("the platform operator is refused")
			}
		})
	}
	for field, how := range foreign {
		if kind, _, _ := strings.Cut(field, " "); how == byPolicy && !tried[kind] {
			t.Errorf("nobody has tried %s", field)
		}
	}
}

// refusedForNamespace returns nil for a refusal of a foreign namespace.
func refusedForNamespace(err error) error {
	if apierrors.IsForbidden(err) && strings.Contains(err.Error(), "refer to no other namespace") {
		return nil
	}
	return fmt.Errorf("want a refusal, got: %w", err)
}

// TestReferencesOfThePlane shows that what the plane itself wrote does not get into the way of a customer: he changes
// other fields of a Cluster whose class is in the catalogue, and cannot change the class.
func TestReferencesOfThePlane(t *testing.T) {
	p := shared.Get(t)
	admin := p.Client(t)
	catalogueIsThere(t, admin)
	ns := customerNamespace(t, admin, nil)
	c := &cli{t: t, p: p, ns: ns}
	testenv.Eventually(t, soon, func() error { // its quota may not be counted yet
		if a := c.run("", "create", "demo", "--stack", "scs", "--provider", "local", "--workers", "0"); a.code != 0 {
			return fmt.Errorf("%s", a.err)
		}
		return nil
	})
	customer := clientOf(t, p, ns, "mallory", "cluster-admin")
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(schema.GroupVersionKind{Group: "cluster.x-k8s.io", Version: "v1beta2", Kind: "Cluster"})
	testenv.Eventually(t, soon, func() error { return admin.Get(t.Context(), client.ObjectKey{Namespace: ns, Name: "demo"}, u) })
	if got, _, _ := unstructured.NestedString(u.Object, "spec", "topology", "classRef", "namespace"); got != "polder-catalogue" {
		t.Fatalf("its class is in namespace %q", got)
	}
	patch := func(text string) error {
		return customer.Patch(t.Context(), u.DeepCopy(), client.RawPatch("application/merge-patch+json", []byte(text)), client.DryRunAll)
	}
	if err := patch(`{"metadata":{"annotations":{"a":"b"}}}`); err != nil {
		t.Error(err)
	}
	testenv.Eventually(t, soon, func() error {
		return refusedForNamespace(patch(`{"spec":{"topology":{"classRef":{"name":"other"}}}}`))
	})
	c.does("", "wait", "demo", "--timeout", "4m") // with Secrets, machines and all that the quota counts
	c.does("", "delete", "demo", "--yes", "--wait", "--timeout", "3m")
}

// TestOlderReferencesAreDropped shows what becomes of a namespace in an older version of a kind, which the version that
// is stored has no field for: the object refers to its own.
func TestOlderReferencesAreDropped(t *testing.T) {
	p := shared.Get(t)
	admin := p.Client(t)
	ns, other := p.CreateNamespace(t), p.CreateNamespace(t)
	for _, text := range []string{
		`{"apiVersion":"cluster.x-k8s.io/v1beta1","kind":"Cluster","metadata":{"name":"a"},"spec":{
			"infrastructureRef":{"apiVersion":"infrastructure.cluster.x-k8s.io/v1alpha1","kind":"LocalCluster","name":"a","namespace":"FOREIGN"},
			"controlPlaneRef":{"apiVersion":"controlplane.cluster.x-k8s.io/v1beta1","kind":"KubeadmControlPlane","name":"a","namespace":"FOREIGN"}}}`,
		`{"apiVersion":"cluster.x-k8s.io/v1beta1","kind":"Machine","metadata":{"name":"a"},"spec":{"clusterName":"a",
			"infrastructureRef":{"apiVersion":"infrastructure.cluster.x-k8s.io/v1alpha1","kind":"LocalMachine","name":"a","namespace":"FOREIGN"},
			"bootstrap":{"configRef":{"apiVersion":"bootstrap.cluster.x-k8s.io/v1beta1","kind":"KubeadmConfig","name":"a","namespace":"FOREIGN"}}}}`,
	} {
		u := &unstructured.Unstructured{}
		if err := json.Unmarshal([]byte(strings.ReplaceAll(text, "FOREIGN", other)), u); err != nil {
			t.Fatal(err)
		}
		u.SetNamespace(ns)
		err := admin.Create(t.Context(), u, client.DryRunAll)
		if err != nil && !strings.Contains(err.Error(), "namespace") { // Cluster API may refuse it as well
			t.Errorf("%s: %v", u.GetKind(), err)
		}
		b, jsonErr := json.Marshal(u.Object["spec"])
		if jsonErr != nil || err == nil && strings.Contains(string(b), other) {
			t.Errorf("%s: %s, %v", u.GetKind(), b, jsonErr)
		}
	}
}
