package install

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	apiextensionsclient "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset/typed/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/util/retry"

	"github.com/polder-kaas/polder/internal/apierror"
)

// nudgeAnnotation records the resource version at which a stuck definition was nudged.
const nudgeAnnotation = "polder.dev/nudged-at"

// maxParallelWrites is how many definitions are written at the same time.
const maxParallelWrites = 4

func (i *Installer) installCRDs(ctx context.Context) error {
	all, err := i.cfg.Definitions.desired()
	if err != nil {
		return err
	}
	set, err := apiextensions.NewForConfig(i.cfg.Client("polder-install"))
	if err != nil {
		return err
	}
	c := set.ApiextensionsV1().CustomResourceDefinitions()
	have, err := listAfterDeletions(ctx, c, all)
	if err != nil {
		return err
	}
	missing, stuck := findMissingAndStuck(all, have)
	if err := createOrUpdateAll(ctx, c, missing); err != nil {
		return err
	}
	for _, crd := range stuck {
		if err := nudge(ctx, c, crd); err != nil {
			return err
		}
	}
	if len(missing)+len(stuck) == 0 {
		return nil
	}
	return i.awaitServed(ctx, all)
}

// deletionTimeout is how long a start waits for definitions that are being deleted. They go as soon as the API
// server has deleted their objects, unless an object waits for its controller.
const deletionTimeout = 10 * time.Second

// listAfterDeletions lists the definitions once none of ours is being deleted: a deletion that the last shutdown
// cut short would take the definition away after it was found in order.
func listAfterDeletions(ctx context.Context, c apiextensionsclient.CustomResourceDefinitionInterface,
	all []desiredCRD) (have []apiextensionsv1.CustomResourceDefinition, err error) {
	ours := map[string]bool{}
	for _, w := range all {
		ours[w.name()] = true
	}
	err = wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, deletionTimeout, true,
		func(ctx context.Context) (bool, error) {
			var err error
			have, err = listCRDs(ctx, c)
			terminating := slices.ContainsFunc(have, func(crd apiextensionsv1.CustomResourceDefinition) bool {
				return ours[crd.Name] && crd.DeletionTimestamp != nil
			})
			return !terminating, err
		})
	if wait.Interrupted(err) && ctx.Err() == nil {
		return have, nil // held by a finalizer: only a running plane can remove it
	}
	return have, err
}

// findMissingAndStuck finds the definitions that are missing or out of date, and those, ours or not, that an API
// server accepted but did not live to establish.
func findMissingAndStuck(want []desiredCRD,
	have []apiextensionsv1.CustomResourceDefinition,
) (missing []desiredCRD, stuck []apiextensionsv1.CustomResourceDefinition) {
	digests := map[string]string{}
	for _, crd := range have {
		digests[crd.Name] = crd.Annotations[digestAnnotation]
		if !hasCondition(&crd, apiextensionsv1.Established) && hasCondition(&crd, apiextensionsv1.NamesAccepted) {
			stuck = append(stuck, crd)
		}
	}
	for _, w := range want {
		if digests[w.name()] != w.digest {
			missing = append(missing, w)
		}
	}
	return missing, stuck
}

func listCRDs(ctx context.Context,
	c apiextensionsclient.CustomResourceDefinitionInterface) ([]apiextensionsv1.CustomResourceDefinition, error) {
	// From the API server's watch cache, which definitions have: the large schemas need not be read from the
	// store.
	l, err := c.List(ctx, metav1.ListOptions{ResourceVersion: "0"})
	if err != nil {
		return nil, fmt.Errorf("listing: %w", err)
	}
	return l.Items, nil
}

func hasCondition(crd *apiextensionsv1.CustomResourceDefinition,
	t apiextensionsv1.CustomResourceDefinitionConditionType) bool {
	return slices.ContainsFunc(crd.Status.Conditions, func(c apiextensionsv1.CustomResourceDefinitionCondition) bool {
		return c.Type == t && c.Status == apiextensionsv1.ConditionTrue
	})
}

// nudge changes a definition that is stuck. The API server establishes a definition when it changes, not when it
// first sees one, so after a crash between the two it would wait for minutes.
func nudge(ctx context.Context, c apiextensionsclient.CustomResourceDefinitionInterface,
	crd apiextensionsv1.CustomResourceDefinition) error {
	patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, nudgeAnnotation, crd.ResourceVersion)
	_, err := c.Patch(ctx, crd.Name, types.MergePatchType, []byte(patch), metav1.PatchOptions{
		FieldManager: string(fieldOwner),
	})
	if apierror.IgnoreObjectNotFound(err, "customresourcedefinitions", crd.Name) != nil {
		return fmt.Errorf("nudging %s: %w", crd.Name, err)
	}
	return nil
}

func createOrUpdateAll(ctx context.Context, c apiextensionsclient.CustomResourceDefinitionInterface,
	all []desiredCRD) error {
	slots := make(chan struct{}, maxParallelWrites)
	errs := make(chan error, len(all))
	for _, w := range all {
		go func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			errs <- createOrUpdate(ctx, c, w)
		}()
	}
	var failed []error
	for range all {
		failed = append(failed, <-errs)
	}
	return errors.Join(failed...)
}

// createOrUpdate creates or replaces one definition. It keeps labels and annotations that others added:
// Cluster API records in them which stored objects it has migrated.
func createOrUpdate(ctx context.Context, c apiextensionsclient.CustomResourceDefinitionInterface, w desiredCRD) error {
	crd, err := w.definition()
	if err != nil {
		return err
	}
	fresh := crd.DeepCopy()
	markMigrated(fresh)
	if _, err := c.Create(ctx, fresh,
		metav1.CreateOptions{FieldManager: string(fieldOwner)}); !apierrors.IsAlreadyExists(err) {
		return err
	}
	return retry.RetryOnConflict(retry.DefaultRetry, func() error {
		old, err := c.Get(ctx, crd.Name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		for k, v := range crd.Annotations {
			metav1.SetMetaDataAnnotation(&old.ObjectMeta, k, v)
		}
		for k, v := range crd.Labels {
			metav1.SetMetaDataLabel(&old.ObjectMeta, k, v)
		}
		old.Spec = crd.Spec
		_, err = c.Update(ctx, old, metav1.UpdateOptions{FieldManager: string(fieldOwner)})
		return err
	})
}

// awaitServed waits until every kind can be listed. That is what matters, and it is cheaper than reading the
// large definitions again and again for their conditions.
func (i *Installer) awaitServed(ctx context.Context, all []desiredCRD) error {
	client, err := metadata.NewForConfig(metadata.ConfigFor(i.cfg.Client("polder-install")))
	if err != nil {
		return err
	}
	for _, w := range all {
		var last error
		err := wait.PollUntilContextTimeout(ctx, 20*time.Millisecond, time.Minute, true,
			func(ctx context.Context) (bool, error) {
				_, last = client.Resource(w.resource).List(ctx, metav1.ListOptions{Limit: 1})
				return last == nil, nil
			})
		if err != nil {
			return fmt.Errorf("waiting for %s to be served: %w: %w", w.name(), err, last)
		}
	}
	return i.awaitDiscovered(ctx, all)
}

// awaitDiscovered waits until the API server's discovery lists them too, which is a little later; a client that
// asks before is told that there is no such kind.
func (i *Installer) awaitDiscovered(ctx context.Context, all []desiredCRD) error {
	client, err := discovery.NewDiscoveryClientForConfig(i.cfg.Client("polder-install"))
	if err != nil {
		return err
	}
	var missing []string
	err = wait.PollUntilContextTimeout(ctx, 20*time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
		_, lists, err := client.ServerGroupsAndResources()
		missing = undiscoveredNames(all, lists)
		return err == nil && len(missing) == 0, nil
	})
	if err != nil {
		return fmt.Errorf("waiting for %s to be discovered: %w", strings.Join(missing, ", "), err)
	}
	return nil
}

func undiscoveredNames(all []desiredCRD, lists []*metav1.APIResourceList) (missing []string) {
	discovered := map[string]bool{}
	for _, l := range lists {
		for _, r := range l.APIResources {
			discovered[l.GroupVersion+"/"+r.Name] = true
		}
	}
	for _, w := range all {
		if !discovered[w.resource.GroupVersion().String()+"/"+w.resource.Resource] {
			missing = append(missing, w.name())
		}
	}
	return missing
}
