package install

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/uuid"
)

// crdPrefix is the prefix of the keys under which the API server stores definitions.
const crdPrefix = "/registry/apiextensions.k8s.io/customresourcedefinitions/"

// Seed writes the definitions, already established, into a store that has none. The API server then starts as
// with definitions of an earlier run; asked to accept and establish them one by one, it would take as long again
// (docs/adr/0006). A store with definitions is left to the API.
func (d Definitions) Seed(ctx context.Context, store clientv3.KV) error {
	have, err := store.Get(ctx, crdPrefix, clientv3.WithPrefix(), clientv3.WithLimit(1), clientv3.WithKeysOnly())
	if err != nil || have.Count > 0 {
		return err
	}
	all, err := d.desired()
	if err != nil {
		return err
	}
	scheme := runtime.NewScheme()
	if err := apiextensionsv1.AddToScheme(scheme); err != nil {
		return err
	}
	now := metav1.NewTime(d.Clock.Now().Truncate(time.Second))
	for _, w := range all {
		crd, err := w.definition()
		if err != nil {
			return err
		}
		establish(crd, now)
		scheme.Default(crd)
		b, err := json.Marshal(crd)
		if err != nil {
			return fmt.Errorf("writing CRD %s: %w", crd.Name, err)
		}
		if _, err := store.Put(ctx, crdPrefix+crd.Name, string(b)); err != nil {
			return fmt.Errorf("writing CRD %s: %w", crd.Name, err)
		}
	}
	return nil
}

// establishedAge is how long ago seeded definitions were established: the API server delays the creation of
// objects of a younger kind by two seconds, for the sake of other API servers that may not know the kind yet.
const establishedAge = 2 * time.Second

// establish sets what the API server sets in a definition when nothing is wrong with it.
func establish(crd *apiextensionsv1.CustomResourceDefinition, now metav1.Time) {
	crd.TypeMeta = metav1.TypeMeta{
		APIVersion: apiextensionsv1.SchemeGroupVersion.String(), Kind: "CustomResourceDefinition",
	}
	crd.UID, crd.Generation, crd.CreationTimestamp = uuid.NewUUID(), 1, now
	markMigrated(crd)
	crd.Status = apiextensionsv1.CustomResourceDefinitionStatus{AcceptedNames: crd.Spec.Names}
	for _, v := range crd.Spec.Versions {
		if v.Storage {
			crd.Status.StoredVersions = []string{v.Name}
		}
	}
	for _, c := range []apiextensionsv1.CustomResourceDefinitionCondition{
		{Type: apiextensionsv1.NamesAccepted, Reason: "NoConflicts", Message: "no conflicts found"},
		{Type: apiextensionsv1.Established, Reason: "InitialNamesAccepted", Message: "the initial names have been accepted"},
	} {
		c.Status, c.LastTransitionTime = apiextensionsv1.ConditionTrue, metav1.NewTime(now.Add(-establishedAge))
		crd.Status.Conditions = append(crd.Status.Conditions, c)
	}
}
