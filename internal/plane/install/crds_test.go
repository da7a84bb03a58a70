package install

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/polder-kaas/polder/internal/plane/capi/manifests"
)

func crd(name, digest string, conditions ...apiextensionsv1.CustomResourceDefinitionConditionType) apiextensionsv1.CustomResourceDefinition {
	c := apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{digestAnnotation: digest}}}
	for _, t := range conditions {
		c.Status.Conditions = append(c.Status.Conditions, apiextensionsv1.CustomResourceDefinitionCondition{Type: t, Status: apiextensionsv1.ConditionTrue})
	}
	return c
}

func TestFindMissingAndStuck(t *testing.T) {
	const accepted, established = apiextensionsv1.NamesAccepted, apiextensionsv1.Established
	var want []desiredCRD
	for _, n := range []string{"same", "changed", "absent", "half"} {
		want = append(want, desiredCRD{resource: schema.GroupVersionResource{Resource: n}, digest: "new"})
	}
	missing, stuck := findMissingAndStuck(want, []apiextensionsv1.CustomResourceDefinition{
		crd("same", "new", accepted, established),
		crd("changed", "old", accepted, established),
		crd("half", "new", accepted),
		crd("a user's", "", accepted),
		crd("not looked at yet", ""),
	})
	var gotMissing, gotStuck []string
	for _, m := range missing {
		gotMissing = append(gotMissing, m.name())
	}
	for _, s := range stuck {
		gotStuck = append(gotStuck, s.Name)
	}
	if diff := cmp.Diff([]string{"changed", "absent"}, gotMissing); diff != "" {
		t.Errorf("missing (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"half", "a user's"}, gotStuck); diff != "" {
		t.Errorf("stuck (-want +got):\n%s", diff)
	}
}

func TestWantChangesWithEachInput(t *testing.T) {
	d := Definitions{ConversionURL: "u"}
	base := d.desiredFromManifest(manifests.CRD{SHA256: "a"}, []byte("ca"))
	other := Definitions{ConversionURL: "v"}
	for name, w := range map[string]desiredCRD{
		"content":   d.desiredFromManifest(manifests.CRD{SHA256: "b"}, []byte("ca")),
		"authority": d.desiredFromManifest(manifests.CRD{SHA256: "a"}, []byte("other")),
		"URL":       other.desiredFromManifest(manifests.CRD{SHA256: "a"}, []byte("ca")),
	} {
		if w.digest == base.digest {
			t.Errorf("another %s is not noticed", name)
		}
	}
}
