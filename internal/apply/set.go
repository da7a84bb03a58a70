package apply

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Set is a list of objects that Prepare has completed, checked and sorted. It does not change.
type Set struct {
	items     []item
	digest    string
	namespace string // for objects that name none
	kinds     map[schema.GroupVersionKind]bool
	index     map[Key]int
}

type item struct {
	ref    Ref
	rank   rank
	object *unstructured.Unstructured
}

// Refs are the objects, in the order they are applied in.
func (s *Set) Refs() []Ref {
	out := make([]Ref, len(s.items))
	for i, it := range s.items {
		out[i] = it.ref
	}
	return out
}

// Object returns an object of the set as it is applied, or nil. It must not be changed.
func (s *Set) Object(r Ref) *unstructured.Unstructured {
	if i, ok := s.index[r.Key()]; ok {
		return s.items[i].object
	}
	return nil
}

// Digest is the SHA-256 digest of all objects as they are applied, as sha256:…. The order they came in does not
// matter.
func (s *Set) Digest() string { return s.digest }

// definesKindOf says whether a definition of the set brings the kind of an object.
func (s *Set) definesKindOf(r Ref) bool { return s.kinds[r.GroupVersionKind()] }

// rankGroups splits the objects by rank, lowest first. Those of one group can be applied at the same time.
func (s *Set) rankGroups() [][]item {
	var out [][]item
	for i, it := range s.items {
		if i == 0 || it.rank != s.items[i-1].rank {
			out = append(out, nil)
		}
		out[len(out)-1] = append(out[len(out)-1], it)
	}
	return out
}

// matchRef finds the object of the set that an inventory entry stands for. The entry may not name the namespace
// as we do: the operator that came before listed what charts said, not where the object is.
func (s *Set) matchRef(r Ref) (Ref, bool) {
	k := r.Key()
	i, ok := s.index[k]
	if !ok {
		if k.Namespace == "" {
			k.Namespace = s.namespace
		} else {
			k.Namespace = "" // for a cluster-scoped kind
		}
		i, ok = s.index[k]
	}
	if !ok {
		return Ref{}, false
	}
	return s.items[i].ref, true
}

// sortAndDigest sorts the objects and computes their digest.
func (s *Set) sortAndDigest() error {
	slices.SortFunc(s.items, func(a, b item) int {
		return cmp.Or(cmp.Compare(a.rank, b.rank), compareKeys(a.ref.Key(), b.ref.Key()))
	})
	sum := sha256.New()
	s.index = map[Key]int{}
	for i, it := range s.items {
		s.index[it.ref.Key()] = i
		b, err := json.Marshal(it.object.Object) // with sorted keys
		if err != nil {
			return fmt.Errorf("%s is no JSON: %w", it.ref, err)
		}
		sum.Write(append(b, '\n'))
	}
	s.digest = "sha256:" + hex.EncodeToString(sum.Sum(nil))
	return nil
}
