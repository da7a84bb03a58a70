package apply

import (
	"context"
	"fmt"
	"maps"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	csv1 "github.com/polder-kaas/polder/api/clusterstack/v1alpha1"
)

// Prepare makes a set of objects, which it does not change. It completes namespaces, labels and owner references,
// checks all rules, and writes nothing to the cluster. All that is wrong with the objects is reported at once, as
// a RefusedError. If only kinds are missing in the cluster, the error is one that meta.IsNoMatchError is true
// for.
func (a *Applier) Prepare(ctx context.Context, objects []*unstructured.Unstructured) (*Set, error) {
	p := a.newPreparation(objects)
	for i, o := range objects {
		if err := context.Cause(ctx); err != nil {
			return nil, err
		}
		if err := p.addObject(i+1, o); err != nil {
			return nil, err
		}
	}
	switch {
	case len(p.refused) > 0:
		return nil, &RefusedError{Reasons: append(p.refused, p.scopes.missingKinds...)}
	case len(p.scopes.missingKinds) > 0:
		return nil, failures(p.scopes.missingKinds)
	}
	return p.set, p.set.sortAndDigest()
}

// Refs names objects as Prepare would. It does not check whether they are allowed, and their kinds may be
// missing.
func (a *Applier) Refs(objects []*unstructured.Unstructured) ([]Ref, error) {
	p := a.newPreparation(objects)
	var out []Ref
	for i, o := range objects {
		u, err := sanitizeObject(o)
		if err != nil {
			return nil, refusal(fmt.Sprintf("object %d is none: %v", i+1, err))
		}
		where, err := p.scopes.scopeOfObject(RefOf(u))
		if err != nil {
			return nil, err
		}
		if err := p.setNamespace(u, where); err != nil {
			return nil, err
		}
		out = append(out, RefOf(u))
	}
	return out, nil
}

func (a *Applier) newPreparation(objects []*unstructured.Unstructured) *preparation {
	defined := definedKinds(objects)
	kinds := map[schema.GroupVersionKind]bool{}
	for gvk := range defined {
		kinds[gvk] = true
	}
	return &preparation{
		Applier:   a,
		set:       &Set{namespace: a.Namespace, kinds: kinds},
		scopes:    scopes{mapper: a.Client.RESTMapper(), defined: defined, known: map[schema.GroupVersionKind]scope{}},
		positions: map[Key]int{},
	}
}

// preparation collects a set and what is wrong with its objects, one object after the other.
type preparation struct {
	*Applier
	set       *Set
	scopes    scopes
	refused   []error
	positions map[Key]int // numbers of the objects so far, counted from 1
}

func (p *preparation) refuse(format string, args ...any) {
	p.refused = append(p.refused, refusal(fmt.Sprintf(format, args...)))
}

// addObject checks the object with a number and adds it to the set. What is wrong with the object is collected;
// an error is returned only if the cluster cannot be asked.
func (p *preparation) addObject(number int, o *unstructured.Unstructured) error {
	u, err := sanitizeObject(o)
	if err != nil {
		p.refuse("object %d is none: %v", number, err)
		return nil
	}
	where, err := p.scopes.scopeOfObject(RefOf(u))
	if err != nil {
		return err
	}
	if err := p.setNamespace(u, where); err != nil {
		p.refused = append(p.refused, err)
		return nil
	}
	ref := RefOf(u)
	if other, ok := p.positions[ref.Key()]; ok {
		p.refuse("objects %d and %d are both %s", other, number, ref)
		return nil
	}
	p.positions[ref.Key()] = number
	if err := normalizeContent(ref, u); err != nil {
		p.refuse("%s %v", ref, err)
		return nil
	}
	for _, rule := range p.Rules {
		if err := rule(ref, u); err != nil {
			p.refuse("%v", err)
		}
	}
	p.setOwnerMetadata(u)
	p.set.items = append(p.set.items, item{ref: ref, rank: rankOf(ref), object: u})
	return nil
}

// setNamespace gives u the namespace that it is applied in.
func (p *preparation) setNamespace(u *unstructured.Unstructured, where scope) error {
	switch {
	case where == clusterScoped:
		u.SetNamespace("") // charts often name one, and everybody ignores it
	case u.GetNamespace() == "" && p.Namespace == "":
		return refusal(RefOf(u).String() + " needs a namespace; name one in the chart")
	case u.GetNamespace() == "":
		u.SetNamespace(p.Namespace)
	}
	return nil
}

// setOwnerMetadata adds the labels and owner references that mark u as ours.
func (p *preparation) setOwnerMetadata(u *unstructured.Unstructured) {
	labels := u.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}
	maps.Copy(labels, p.Labels)
	labels[csv1.OwnedLabel] = csv1.OwnedValue
	u.SetLabels(labels)
	// An owner must be in the same namespace; elsewhere the garbage collector would delete the object as an
	// orphan.
	if len(p.OwnerRefs) > 0 && u.GetNamespace() == p.Namespace {
		u.SetOwnerReferences(append(u.GetOwnerReferences(), p.OwnerRefs...))
	}
}
