package measure

import (
	"context"
	"errors"
	"fmt"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	csv1 "github.com/polder-kaas/polder/api/clusterstack/v1alpha1"
	"github.com/polder-kaas/polder/api/v1alpha1"
)

// WaitTimeout is the longest wait for anything.
const WaitTimeout = 10 * time.Minute

func connect(kubeconfig string) (*rest.Config, client.WithWatch, error) {
	cfg, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, nil, err
	}
	cfg.DisableCompression = true // it would be the plane that compresses
	c, err := NewClient(cfg)
	return cfg, c, err
}

// NewClient makes a client without a rate limit.
func NewClient(cfg *rest.Config) (client.WithWatch, error) {
	cfg.QPS = -1
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme, clusterv1.AddToScheme, csv1.AddToScheme,
		v1alpha1.AddToScheme,
	} {
		if err := add(s); err != nil {
			return nil, err
		}
	}
	return client.NewWithWatch(cfg, client.Options{Scheme: s})
}

// Await watches the objects of a kind in a namespace until one is as wanted. A watch reports it at once and sends the
// plane no requests meanwhile.
func Await[T client.Object](ctx context.Context, c client.WithWatch, list client.ObjectList, namespace string,
	wanted func(T) bool) error {
	ctx, cancel := context.WithTimeout(ctx, WaitTimeout)
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
