package apply

import (
	"slices"
	"strings"

	csv1 "github.com/polder-kaas/polder/api/clusterstack/v1alpha1"
	"github.com/polder-kaas/polder/stack/text"
)

// maxError is how many characters of an error an entry of an inventory can hold.
const maxError = 1024

// InventoryRef returns the Ref of an inventory entry.
func InventoryRef(r csv1.Resource) Ref {
	return Ref{Group: r.Group, Version: r.Version, Kind: r.Kind, Namespace: r.Namespace, Name: r.Name}
}

func newResource(r Ref, s csv1.ResourceStatus) csv1.Resource {
	return csv1.Resource{Group: r.Group, Version: r.Version, Kind: r.Kind, Namespace: r.Namespace, Name: r.Name, Status: s}
}

// PlanInventory returns what the inventory must say before a set is applied: all it has, and all that will come
// as not synced. What the set does not have is stale, and stays listed until it is deleted.
func PlanInventory(have []csv1.Resource, set *Set) (intent []csv1.Resource, stale []Ref) {
	listed := map[Key]bool{}
	for _, h := range have {
		// Entries that name one object in two ways become one.
		ref, ok := set.matchRef(InventoryRef(h))
		if !ok {
			ref = InventoryRef(h)
		}
		if listed[ref.Key()] {
			continue
		}
		listed[ref.Key()] = true
		if !ok {
			stale = append(stale, ref)
		}
		r := newResource(ref, h.Status)
		r.Error, r.UID, r.Generation = h.Error, h.UID, h.Generation
		intent = append(intent, r)
	}
	for _, ref := range set.Refs() {
		if !listed[ref.Key()] {
			intent = append(intent, newResource(ref, csv1.ResourceNotSynced))
		}
	}
	sortInventory(intent)
	return intent, stale
}

// TrustSynced returns a function for Apply that trusts what the inventory has as synced.
func TrustSynced(inventory []csv1.Resource) func(Ref) bool {
	synced := map[Key]bool{}
	for _, r := range inventory {
		synced[InventoryRef(r).Key()] = r.Status == csv1.ResourceSynced
	}
	return func(r Ref) bool { return synced[r.Key()] }
}

// HasAny says whether the inventory has one of the objects.
func HasAny(inventory []csv1.Resource, refs []Ref) bool {
	listed := map[Key]bool{}
	for _, r := range inventory {
		listed[InventoryRef(r).Key()] = true
	}
	return slices.ContainsFunc(refs, func(r Ref) bool { return listed[r.Key()] })
}

// RecordResults returns the inventory after Apply and Prune. What was pruned without error is dropped; what has
// no result stays as it is. The same results give the same inventory, so that an unchanged status is not written
// again.
func RecordResults(inventory []csv1.Resource, applied, pruned []Result) []csv1.Resource {
	results, gone := map[Key]Result{}, map[Key]bool{}
	for _, r := range pruned {
		results[r.Ref.Key()] = r
		gone[r.Ref.Key()] = r.Err == nil
	}
	for _, r := range applied {
		results[r.Ref.Key()] = r
		gone[r.Ref.Key()] = false
	}
	var out []csv1.Resource
	for _, have := range inventory {
		key := InventoryRef(have).Key()
		r, ok := results[key]
		switch {
		case gone[key]:
			continue
		case ok && r.Err == nil:
			have.Status, have.Error = csv1.ResourceSynced, ""
		case ok:
			have.Status, have.Error = csv1.ResourceNotSynced, truncateError(r.Err.Error())
		}
		out = append(out, have)
	}
	sortInventory(out)
	return out
}

// StaleRefs lists what the inventory has beside the objects that are wanted. An inventory of the operator that
// came before may lack namespaces, or have some too many: if in doubt, an entry is not stale.
func StaleRefs(inventory []csv1.Resource, wanted []Ref) (stale []Ref) {
	exact, anywhere := map[Key]bool{}, map[Key]bool{}
	for _, w := range wanted {
		k := w.Key()
		exact[k] = true
		k.Namespace = ""
		anywhere[k] = true
	}
	for _, r := range inventory {
		bare := InventoryRef(r).Key()
		bare.Namespace = ""
		if exact[InventoryRef(r).Key()] || exact[bare] || r.Namespace == "" && anywhere[bare] {
			continue
		}
		stale = append(stale, InventoryRef(r))
	}
	return stale
}

func sortInventory(inventory []csv1.Resource) {
	slices.SortStableFunc(inventory, func(a, b csv1.Resource) int {
		return compareKeys(InventoryRef(a).Key(), InventoryRef(b).Key())
	})
}

// truncateError makes an error one line of at most maxError bytes, which are no more characters.
func truncateError(s string) string {
	return text.Truncate(strings.Join(strings.Fields(strings.ToValidUTF8(s, "?")), " "), maxError)
}
