package install

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/polder-kaas/polder/internal/plane/capi/manifests"
)

// digestAnnotation records what a definition was made from, so that a restart need not even decode the large
// schemas it already installed.
const digestAnnotation = "polder.dev/manifest-digest"

// Definitions are the custom resource definitions of the plane.
type Definitions struct {
	ClusterAPICRDs []manifests.CRD        // Cluster API's, converted by webhook
	ConversionURL  string                 // of that webhook
	ConversionCA   func() ([]byte, error) // and its authority
	PolderCRDs     []*apiextensionsv1.CustomResourceDefinition
	Clock          clock.PassiveClock // needed by Seed
}

// desiredCRD is one definition as it should be. load decodes it, which is done only if it must be written.
type desiredCRD struct {
	resource schema.GroupVersionResource
	digest   string
	load     func() (*apiextensionsv1.CustomResourceDefinition, error)
}

func (w desiredCRD) name() string { return w.resource.GroupResource().String() }

// definition returns the definition as it is written.
func (w desiredCRD) definition() (*apiextensionsv1.CustomResourceDefinition, error) {
	crd, err := w.load()
	if err != nil {
		return nil, err
	}
	metav1.SetMetaDataAnnotation(&crd.ObjectMeta, digestAnnotation, w.digest)
	return crd, nil
}

func (d Definitions) desired() ([]desiredCRD, error) {
	var all []desiredCRD
	if len(d.ClusterAPICRDs) > 0 {
		ca, err := d.ConversionCA()
		if err != nil {
			return nil, err
		}
		for _, crd := range d.ClusterAPICRDs {
			all = append(all, d.desiredFromManifest(crd, ca))
		}
	}
	for _, crd := range d.PolderCRDs {
		w, err := desiredFromCRD(crd)
		if err != nil {
			return nil, err
		}
		all = append(all, w)
	}
	return all, nil
}

func (d Definitions) desiredFromManifest(crd manifests.CRD, ca []byte) desiredCRD {
	conversion := apiextensionsv1.CustomResourceConversion{
		Strategy: apiextensionsv1.WebhookConverter,
		Webhook: &apiextensionsv1.WebhookConversion{
			ConversionReviewVersions: []string{"v1"},
			ClientConfig:             &apiextensionsv1.WebhookClientConfig{URL: ptr.To(d.ConversionURL), CABundle: ca},
		},
	}
	return desiredCRD{
		resource: crd.Resource(),
		digest:   digest([]byte(crd.SHA256), []byte(d.ConversionURL), ca),
		load: func() (*apiextensionsv1.CustomResourceDefinition, error) {
			c, err := crd.Definition()
			if err != nil {
				return nil, err
			}
			c.Spec.Conversion = &conversion
			return c, nil
		},
	}
}

func desiredFromCRD(crd *apiextensionsv1.CustomResourceDefinition) (desiredCRD, error) {
	b, err := json.Marshal(crd)
	if err != nil {
		return desiredCRD{}, fmt.Errorf("reading CRD %s: %w", crd.Name, err)
	}
	w := desiredCRD{
		resource: schema.GroupVersionResource{Group: crd.Spec.Group, Resource: crd.Spec.Names.Plural},
		digest:   digest(b),
		load: func() (*apiextensionsv1.CustomResourceDefinition, error) {
			return crd.DeepCopy(), nil
		},
	}
	for _, v := range crd.Spec.Versions {
		if v.Storage {
			w.resource.Version = v.Name
		}
	}
	return w, nil
}

func digest(parts ...[]byte) string {
	sum := sha256.New()
	for _, part := range parts {
		sum.Write(part)
		// Separates the parts, so that their boundaries count.
		sum.Write([]byte{0})
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// markMigrated marks a new kind as migrated: it has no objects yet. That saves Cluster API's migrator a look at
// each large definition, a second of the first start.
func markMigrated(crd *apiextensionsv1.CustomResourceDefinition) {
	metav1.SetMetaDataAnnotation(&crd.ObjectMeta, clusterv1.CRDMigrationObservedGenerationAnnotation, "1")
}
