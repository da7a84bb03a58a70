package operator

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	csv1 "github.com/polder-kaas/polder/api/clusterstack/v1alpha1"
	"github.com/polder-kaas/polder/api/v1alpha1"
	"github.com/polder-kaas/polder/internal/apierror"
	"github.com/polder-kaas/polder/internal/lineage"
	"github.com/polder-kaas/polder/internal/reconcile/unreadable"
	"github.com/polder-kaas/polder/internal/tenancy"
)

// checkForeignClass decides on a class that has the name of a release's class and is not the release's. Somebody else's
// may be used. One of another namespace that is not there may not: it could come later, and the cluster that waits for
// it would use a class that does not serve it, and keep it from being deleted.
func checkForeignClass(ctx context.Context, c client.Reader, class client.ObjectKey,
	namespace string) admission.Response {
	if class.Namespace == namespace {
		return admission.Allowed("")
	}
	o := &metav1.PartialObjectMetadata{}
	o.SetGroupVersionKind(clusterv1.GroupVersion.WithKind("ClusterClass"))
	err := c.Get(ctx, class, o)
	switch {
	case apierrors.IsNotFound(err):
		return admission.Denied(
			fmt.Sprintf("spec.topology.classRef: there is no class %s yet; a class of another namespace can be used once it is there, and serves namespace %s", class, namespace),
		)
	case err != nil:
		return admission.Errored(http.StatusInternalServerError, err)
	}
	return admission.Allowed("")
}

// checkNamespace refuses the deletion of a namespace with classes that clusters of other namespaces use: the templates
// would go at once. Clusters of the namespace itself go with it, unless one is protected.
func checkNamespace(c client.Reader, listUnreadable func() []unreadable.Object,
	planes tenancy.Planes) admission.HandlerFunc {
	return func(ctx context.Context, req admission.Request) admission.Response {
		if refused := checkOwnPlane(ctx, c, planes, req.Name); refused != "" {
			return admission.Denied(refused)
		}
		for _, o := range listUnreadable() {
			if o.Namespace == req.Name && o.Kind.Kind == "WorkloadCluster" {
				return admission.Denied(
					fmt.Sprintf("cluster %s of this namespace may be protected from deletion, but cannot be read: %s; repair it first", o.Name, o.Problem),
				)
			}
		}
		var l csv1.ClusterStackReleaseList
		if err := c.List(ctx, &l, client.InNamespace(req.Name)); err != nil {
			return admission.Errored(http.StatusInternalServerError, err)
		}
		var users []clusterv1.Cluster
		for i := range l.Items {
			of, err := lineage.ClustersOfRelease(ctx, c, client.ObjectKeyFromObject(&l.Items[i]))
			if err != nil {
				return admission.Errored(http.StatusInternalServerError, err)
			}
			for _, u := range of {
				if u.Namespace != req.Name {
					users = append(users, u)
				}
			}
		}
		var clusters v1alpha1.WorkloadClusterList
		if err := c.List(ctx, &clusters, client.InNamespace(req.Name)); err != nil {
			return admission.Errored(http.StatusInternalServerError, err)
		}
		for i := range clusters.Items {
			if ptr.Deref(clusters.Items[i].Spec.DeletionProtection, false) {
				return admission.Denied(
					fmt.Sprintf("cluster %s of this namespace is protected from deletion; set its spec.deletionProtection to false first", clusters.Items[i].Name),
				)
			}
		}
		if len(users) > 0 {
			return admission.Denied(
				fmt.Sprintf("releases of this namespace are used by %s; give them another class, or delete them",
					lineage.ClusterNames(users)),
			)
		}
		return admission.Allowed("")
	}
}

// checkOwnPlane asks the plane that a namespace has of its own whether the namespace may be deleted there, and returns
// why not.
func checkOwnPlane(ctx context.Context, c client.Reader, planes tenancy.Planes, name string) string {
	ns := &corev1.Namespace{}
	err := c.Get(ctx, client.ObjectKey{Name: name}, ns)
	switch {
	case apierrors.IsNotFound(err), err == nil && !tenancy.HasOwnPlane(ns):
		return ""
	case err != nil:
		return err.Error()
	case ns.Annotations[v1alpha1.PlaneUIDAnnotation] == "" || !ns.DeletionTimestamp.IsZero():
		return "" // nothing was ever stored in it, or it is being emptied
	case planes == nil:
		return "this namespace has a plane of its own, which nobody here runs"
	}
	its, err := planes.Client(ns.UID)
	if err == nil {
		err = client.IgnoreNotFound(its.Delete(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}},
			client.DryRunAll))
	}
	if err == nil {
		return ""
	}
	if s := apierrors.APIStatus(nil); errors.As(err, &s) && s.Status().Code == http.StatusForbidden {
		return apierror.TrimDenialPrefix(s.Status().Message)
	}
	return fmt.Sprintf("the plane of this namespace cannot be asked whether a cluster in it is protected: %v; if its data are gone for good: kubectl annotate namespace %s %s-",
		err, name, v1alpha1.PlaneUIDAnnotation)
}
