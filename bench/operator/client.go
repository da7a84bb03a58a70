package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	csv1 "github.com/polder-kaas/polder/api/clusterstack/v1alpha1"
)

// patience is for anything that is waited for.
const patience = 10 * time.Minute

func connect(kubeconfig string) (*rest.Config, client.WithWatch, error) {
	cfg, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, nil, err
	}
	cfg.DisableCompression = true // it would be the plane that compresses
	c, err := newClient(cfg)
	return cfg, c, err
}

func newClient(cfg *rest.Config) (client.WithWatch, error) {
	cfg.QPS = -1
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, clusterv1.AddToScheme, csv1.AddToScheme} {
		if err := add(s); err != nil {
			return nil, err
		}
	}
	return client.NewWithWatch(cfg, client.Options{Scheme: s})
}

// await watches the objects of a kind in a namespace until one is as wanted. Watching tells of it at once
// and asks the plane for nothing meanwhile.
func await[T client.Object](ctx context.Context, c client.WithWatch, list client.ObjectList, namespace string, wanted func(T) bool) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var last T
	for {
		w, err := c.Watch(ctx, list, client.InNamespace(namespace))
		if err != nil {
			return fmt.Errorf("watching %T in %s: %w", list, namespace, err)
		}
		for e := range w.ResultChan() {
			o, ok := e.Object.(T)
			if !ok {
				continue
			}
			if last = o; wanted(o) {
				w.Stop()
				return nil
			}
		}
		if errors.Is(ctx.Err(), context.Canceled) {
			return ctx.Err()
		}
		if ctx.Err() != nil {
			return fmt.Errorf("waiting for %T in %s: %w; the last seen was %+v", list, namespace, ctx.Err(), last)
		}
	}
}

func (b *bench) namespace(ctx context.Context, name string) error {
	return b.client.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
}

// missing is the version of what is not there.
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

// differing are the objects that are new, gone or changed.
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
