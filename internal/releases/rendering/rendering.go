// Package rendering renders releases for controllers: a few at a time, since each rendering is a process
// of its own, and with one error for all that is wrong.
package rendering

import (
	"context"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/polder-kaas/polder/stack"
	"github.com/polder-kaas/polder/stack/class"
	"github.com/polder-kaas/polder/stack/lint"
	"github.com/polder-kaas/polder/stack/render"
)

// Pool renders a limited number of releases at the same time. It may be used by many goroutines.
type Pool struct {
	renderer render.Renderer
	slots    chan struct{}

	mu    sync.Mutex
	cache []cachedClass
}

// cachedClass is the class of a release, by the digest of the release.
type cachedClass struct {
	digest string
	class  *class.Class
}

// maxCachedClasses is how many classes are cached. The oldest is dropped first.
const maxCachedClasses = 32

// New makes a pool that renders at most so many releases at once. An empty program means the running one.
func New(most int, program string) *Pool {
	return &Pool{renderer: render.Renderer{Executable: program}, slots: make(chan struct{}, most)}
}

func (p *Pool) acquireSlot(ctx context.Context) (leave func(), err error) {
	select {
	case p.slots <- struct{}{}:
		return func() { <-p.slots }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// RenderClass renders the class of a release and its templates, to install it: a release that lint would find an
// error in is refused. An error of type finding.List is about the release, any other about the renderer.
func (p *Pool) RenderClass(ctx context.Context, r *stack.Release, namespace string) ([]render.Object, error) {
	c, err := p.renderClass(ctx, r, namespace)
	if err != nil {
		return nil, err
	}
	if err := lint.CheckRelease(ctx, r, c).Err(); err != nil {
		return nil, err
	}
	return c.Objects, nil
}

func (p *Pool) renderClass(ctx context.Context, r *stack.Release, namespace string) (*stack.Class, error) {
	leave, err := p.acquireSlot(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	c, found, err := r.RenderClass(ctx, &p.renderer, namespace)
	if err != nil {
		return nil, err
	}
	if err := found.Err(); err != nil {
		return nil, err
	}
	return c, nil
}

// Class returns the class of the release with a digest. Once rendered, it is cached.
func (p *Pool) Class(ctx context.Context, r *stack.Release, digest string) (*class.Class, error) {
	if c := p.findCached(digest); c != nil {
		return c, nil
	}
	c, err := p.renderClass(ctx, r, stack.AddonNamespace)
	if err != nil {
		return nil, err
	}
	return p.storeCached(digest, c.Class), nil
}

func (p *Pool) findCached(digest string) *class.Class {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.findCachedLocked(digest)
}

func (p *Pool) findCachedLocked(digest string) *class.Class {
	if i := slices.IndexFunc(p.cache, func(k cachedClass) bool { return k.digest == digest }); i >= 0 {
		return p.cache[i].class
	}
	return nil
}

// storeCached caches a class, unless somebody else has rendered it meanwhile; then it returns theirs.
func (p *Pool) storeCached(digest string, c *class.Class) *class.Class {
	p.mu.Lock()
	defer p.mu.Unlock()
	if existing := p.findCachedLocked(digest); existing != nil {
		return existing
	}
	if len(p.cache) == maxCachedClasses {
		p.cache = slices.Delete(p.cache, 0, 1)
	}
	p.cache = append(p.cache, cachedClass{digest: digest, class: c})
	return c
}

// RenderAddons renders the add-ons of a cluster. Its errors are like those of RenderClass.
func (p *Pool) RenderAddons(ctx context.Context, r *stack.Release, in stack.AddonInput) ([]stack.RenderedStage, error) {
	leave, err := p.acquireSlot(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	stages, found, err := r.RenderAddons(ctx, &p.renderer, in)
	if err != nil {
		return nil, err
	}
	return stages, found.Err()
}

// ToUnstructured converts rendered objects to the type that is applied.
func ToUnstructured(objects []render.Object) []*unstructured.Unstructured {
	out := make([]*unstructured.Unstructured, len(objects))
	for i, o := range objects {
		out[i] = &unstructured.Unstructured{Object: o.Value}
	}
	return out
}
