package install

import (
	"crypto/sha256"
	"encoding/hex"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/polder-kaas/polder/internal/plane/capi/manifests"
)

// digestAnnotation records from what a definition was made, so that a restart need not even
// decode the large schemas it already installed.
const digestAnnotation = "polder.dev/manifest-digest"

// Definitions are the custom resource definitions of the plane. All fields are needed.
type Definitions struct {
	CRDs          []manifests.CRD
	ConversionURL string
	ConversionCA  func() ([]byte, error)
}

// wanted is a definition with all that goes into it.
type wanted struct {
	manifests.CRD
	conversion apiextensionsv1.CustomResourceConversion
	digest     string
}

func (d Definitions) wanted() ([]wanted, error) {
	ca, err := d.ConversionCA()
	if err != nil {
		return nil, err
	}
	var all []wanted
	for _, crd := range d.CRDs {
		all = append(all, d.want(crd, ca))
	}
	return all, nil
}

func (d Definitions) want(crd manifests.CRD, ca []byte) wanted {
	sum := sha256.New()
	for _, part := range [][]byte{[]byte(crd.SHA256), []byte(d.ConversionURL), ca} {
		sum.Write(part)
		sum.Write([]byte{0})
	}
	return wanted{CRD: crd, digest: hex.EncodeToString(sum.Sum(nil)), conversion: apiextensionsv1.CustomResourceConversion{
		Strategy: apiextensionsv1.WebhookConverter,
		Webhook: &apiextensionsv1.WebhookConversion{
			ConversionReviewVersions: []string{"v1"},
			ClientConfig:             &apiextensionsv1.WebhookClientConfig{URL: ptr.To(d.ConversionURL), CABundle: ca},
		},
	}}
}

// definition is w as it is written.
func (w wanted) definition() (*apiextensionsv1.CustomResourceDefinition, error) {
	crd, err := w.Definition()
	if err != nil {
		return nil, err
	}
	crd.Spec.Conversion = &w.conversion
	metav1.SetMetaDataAnnotation(&crd.ObjectMeta, digestAnnotation, w.digest)
	return crd, nil
}

// markMigrated is for a kind that has no objects yet: there is nothing to migrate. Saying so saves
// Cluster API's migrator a look at each large definition, a second of the first start.
func markMigrated(crd *apiextensionsv1.CustomResourceDefinition) {
	metav1.SetMetaDataAnnotation(&crd.ObjectMeta, clusterv1.CRDMigrationObservedGenerationAnnotation, "1")
}
