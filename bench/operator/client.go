package main

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	csv1 "github.com/polder-kaas/polder/api/clusterstack/v1alpha1"
)

func (b *bench) namespace(ctx context.Context, name string) error {
	return b.Client.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
}

// missing stands for the version of an object that is not there.
const missing = "missing"

// versions are the resourceVersions of objects, by kind and name.
func versions(ctx context.Context, c client.Reader, objects []csv1.Resource) (map[string]string, error) {
	kinds, out := map[schema.GroupVersionKind]bool{}, map[string]string{}
	for _, o := range objects {
		out[nameOf(o.Kind, o.Namespace, o.Name)] = missing
		kinds[schema.GroupVersionKind{Group: o.Group, Version: o.Version, Kind: o.Kind}] = true
	}
	for k := range kinds {
		var l metav1.PartialObjectMetadataList
		l.SetGroupVersionKind(k)
		if err := c.List(ctx, &l); err != nil {
			return nil, err
		}
		for _, o := range l.Items {
			if name := nameOf(k.Kind, o.Namespace, o.Name); out[name] != "" {
				out[name] = o.ResourceVersion
			}
		}
	}
	return out, nil
}

func nameOf(kind, namespace, name string) string { return kind + " " + namespace + "/" + name }

// differing names the objects that are new, gone or changed.
func differing(before, after map[string]string) (names []string) {
	for n, v := range after {
		if before[n] != v {
			names = append(names, n)
		}
	}
	for n := range before {
		if _, ok := after[n]; !ok {
			names = append(names, n)
		}
	}
	return names
}

func isReady(conditions []metav1.Condition) bool {
	return meta.IsStatusConditionTrue(conditions, csv1.ConditionReady)
}
