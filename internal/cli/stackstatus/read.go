package stackstatus

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/clientcmd"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	csv1 "github.com/polder-kaas/polder/api/clusterstack/v1alpha1"
	"github.com/polder-kaas/polder/internal/cli/connect"
	"github.com/polder-kaas/polder/internal/program/exit"
)

// planeReader reads objects of the plane.
type planeReader struct {
	client    dynamic.Interface
	namespace string // that is meant where none is named
	dir       string
	hint      func(command string) string
}

// newPlaneReader is one for the plane of the data directory, as its administrator.
func newPlaneReader(g *connect.Globals) (*planeReader, error) {
	p, err := g.Plane()
	if err != nil {
		return nil, err
	}
	file, err := clientcmd.LoadFromFile(p.Kubeconfig())
	if errors.Is(err, os.ErrNotExist) {
		return nil, exit.Errorf(exit.Failure, "there is no plane in %s yet; start one with: %s", p.Dir(), g.Hint("up"))
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", p.Kubeconfig(), err)
	}
	loaded := clientcmd.NewDefaultClientConfig(*file, &clientcmd.ConfigOverrides{})
	config, err := loaded.ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("%s cannot be used: %w", p.Kubeconfig(), err)
	}
	config.Timeout, config.QPS = connect.RequestTimeout, -1 // a few lists need no brake
	r := &planeReader{dir: p.Dir(), hint: g.Hint}
	if r.namespace, _, err = loaded.Namespace(); err != nil {
		return nil, fmt.Errorf("%s cannot be used: %w", p.Kubeconfig(), err)
	}
	if r.client, err = dynamic.NewForConfig(config); err != nil {
		return nil, fmt.Errorf("%s cannot be used: %w", p.Kubeconfig(), err)
	}
	return r, nil
}

// objectSet is all there is in the plane about stacks, in all namespaces, in no order.
type objectSet struct {
	stacks   []csv1.ClusterStack
	releases []csv1.ClusterStackRelease
	clusters []clusterv1.Cluster
	addons   []csv1.ClusterAddon
}

// readObjects reads everything: clusters of any namespace may use the releases of another.
func (p *planeReader) readObjects(ctx context.Context) (w objectSet, err error) {
	if w.stacks, err = readAll[csv1.ClusterStack](ctx, p, csv1.GroupVersion.WithResource("clusterstacks")); err != nil {
		return w, err
	}
	if w.releases, err = readAll[csv1.ClusterStackRelease](ctx, p,
		csv1.GroupVersion.WithResource("clusterstackreleases")); err != nil {
		return w, err
	}
	if w.clusters, err = readAll[clusterv1.Cluster](ctx, p, clusterv1.GroupVersion.WithResource("clusters")); err != nil {
		return w, err
	}
	w.addons, err = readAll[csv1.ClusterAddon](ctx, p, csv1.GroupVersion.WithResource("clusteraddons"))
	return w, err
}

// readAll reads all objects of a kind. It asks for one answer, and follows one that comes in parts.
func readAll[T any](ctx context.Context, p *planeReader, kind schema.GroupVersionResource) ([]T, error) {
	var items []T
	var o metav1.ListOptions
	for {
		l, err := p.client.Resource(kind).List(ctx, o)
		if err != nil {
			return nil, p.explainListError(kind, err)
		}
		for _, u := range l.Items {
			var item T
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &item); err != nil {
				return nil, fmt.Errorf("%s %s/%s cannot be read: %w", u.GetKind(), u.GetNamespace(), u.GetName(), err)
			}
			items = append(items, item)
		}
		if o.Continue = l.GetContinue(); o.Continue == "" {
			return items, nil
		}
	}
}

// explainListError says in one sentence why objects cannot be listed, and what to do.
func (p *planeReader) explainListError(kind schema.GroupVersionResource, err error) error {
	var transport *url.Error
	switch {
	case apierrors.IsNotFound(err):
		return fmt.Errorf("the plane in %s has no %s: its polderd is older than this polder; start the one beside it with: %s, then %s",
			p.dir, kind.GroupResource(), p.hint("down"), p.hint("up"))
	case errors.As(err, &transport):
		return fmt.Errorf("the plane in %s does not answer: %w; see: %s", p.dir, transport.Err, p.hint("status"))
	}
	return fmt.Errorf("the plane in %s does not list %s: %w", p.dir, kind.GroupResource(), err)
}
