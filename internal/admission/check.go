// Package admission checks WorkloadClusters before they are stored: it fills in fields that were left out, and reports
// all errors at once, each with its field, what is allowed there, and what was perhaps meant.
package admission

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/polder-kaas/polder/api/v1alpha1"
	"github.com/polder-kaas/polder/internal/lineage"
	"github.com/polder-kaas/polder/internal/providers/guard"
	"github.com/polder-kaas/polder/internal/quota"
	"github.com/polder-kaas/polder/internal/suggest"
	"github.com/polder-kaas/polder/internal/topology"
	"github.com/polder-kaas/polder/provider"
)

// Checker checks WorkloadClusters.
type Checker struct {
	Client    client.Reader           // may read from a cache
	Live      client.Reader           // reads from the API server
	Providers map[string]*guard.Guard // those that run in this process; others have webhooks of their own

	Reservations *quota.Reservations // of what is asked for and not stored yet
}

// clusterReview is one WorkloadCluster under review, with all that it is checked against.
type clusterReview struct {
	object, old *v1alpha1.WorkloadCluster // old is nil if it is created
	cluster     *clusterv1.Cluster        // nil if there is none
	providers   []v1alpha1.Provider
	catalogue   *lineage.Catalogue
	dryRun      bool // nothing will be stored
	errs        field.ErrorList
}

var spec = field.NewPath("spec")

// addError adds an error. Checks go on after it, so that all errors are reported at once.
func (q *clusterReview) addError(err *field.Error) { q.errs = append(q.errs, err) }

// Check returns all errors of a WorkloadCluster. The second result is for a check that could not be made.
func (c *Checker) Check(ctx context.Context, o, old *v1alpha1.WorkloadCluster, dryRun bool) (field.ErrorList, error) {
	if !o.DeletionTimestamp.IsZero() || old != nil && isSameSpec(&o.Spec, &old.Spec) {
		return nil, nil // errors that were there before must not keep anybody from changing metadata or deleting
	}
	q := &clusterReview{object: o, old: old, dryRun: dryRun}
	if err := c.gather(ctx, q); err != nil {
		return nil, err
	}
	q.checkName()
	q.checkImmutable()
	q.checkNetwork()
	q.checkOIDC()
	q.checkWorkers()
	q.checkShapes()
	parametersFit := q.checkParameterSize()
	// A provider that has gone keeps nobody from changing a cluster, but not beyond the quota either.
	if p := q.findProvider(); p != nil {
		if err := c.checkWithProvider(ctx, q, p, parametersFit); err != nil {
			return nil, err
		}
	}
	// At the end: what is refused reserves nothing.
	err := c.checkAskedQuota(ctx, q)
	return q.errs, err
}

// checkWithProvider checks what depends on the provider.
func (c *Checker) checkWithProvider(ctx context.Context, q *clusterReview, p *v1alpha1.Provider,
	parametersFit bool) error {
	q.checkZones(p)
	if err := c.checkTenant(ctx, q, p); err != nil {
		return err
	}
	if err := c.checkMachineQuota(ctx, q); err != nil {
		return err
	}
	return c.checkRelease(ctx, q, p, parametersFit)
}

// checkRelease checks what depends on the release that the spec asks for.
func (c *Checker) checkRelease(ctx context.Context, q *clusterReview, p *v1alpha1.Provider, parametersFit bool) error {
	o, old := q.object, q.old
	if old == nil && o.Annotations[v1alpha1.MovingAnnotation] != "" {
		return nil // its stack may come after it from the other plane; it makes nothing before its Cluster is there
	}
	rel, ok := q.chooseRelease(p)
	if !ok || !parametersFit || old != nil && topology.HasSameInput(o, old) {
		return nil // the rest was accepted before, or is reported in the status
	}
	return c.checkClass(ctx, q, p, rel)
}

// isSameSpec reports whether two specs are written alike. Quantities are not compared as numbers: a stored one may be
// such that this takes all memory.
func isSameSpec(a, b *v1alpha1.WorkloadClusterSpec) bool {
	x, err := json.Marshal(a)
	y, err2 := json.Marshal(b)
	return err == nil && err2 == nil && bytes.Equal(x, y)
}

// CheckProvider returns the errors that only the provider can find.
func (c *Checker) CheckProvider(ctx context.Context, o, old *v1alpha1.WorkloadCluster) (field.ErrorList, error) {
	g, ok := c.Providers[o.Spec.Provider]
	// The plane reports parameters that are too large.
	if !ok || !o.DeletionTimestamp.IsZero() || exceedsMaxParameters(o.Spec.Parameters) {
		return nil, nil
	}
	if old != nil && topology.HasSameInput(o, old) {
		return nil, nil
	}
	q := &clusterReview{object: o, old: old}
	if err := c.gather(ctx, q); err != nil {
		return nil, err
	}
	p := q.findProvider()
	if p == nil {
		return nil, nil // the plane says so
	}
	rel, err := q.catalogue.Choose(stackProviderOf(p), o.Spec.Stack)
	if err != nil {
		return nil, nil //nolint:nilerr // as above
	}
	release, err := topology.ReleaseForProvider(ctx, c.Client, rel)
	if err != nil {
		// The class is not in the cache yet; the plane's check lets that through too.
		return nil, client.IgnoreNotFound(err)
	}
	in := provider.Input{Cluster: o, Release: release}
	errs, err := g.Validate(ctx, in)
	if err != nil || len(errs) > 0 {
		return q.dropUnchangedMachineErrors(p, errs), err
	}
	set, err := g.Topology(ctx, in)
	if err != nil {
		return nil, err
	}
	by, own := variableSources(set), providerParameters(p)
	for _, name := range slices.Sorted(maps.Keys(o.Spec.Parameters)) {
		if err := checkProviderVariable(name, by, own); err != nil {
			errs = append(errs, err)
		}
	}
	return errs, nil
}

// gather reads the providers, the catalogue and the Cluster that a review needs.
func (c *Checker) gather(ctx context.Context, q *clusterReview) error {
	var l v1alpha1.ProviderList
	if err := c.Client.List(ctx, &l); err != nil {
		return fmt.Errorf("reading the providers: %w", err)
	}
	q.providers = l.Items
	var err error
	if q.catalogue, err = lineage.ReadCatalogue(ctx, c.Client, q.object.Namespace); err != nil {
		return err
	}
	q.cluster = &clusterv1.Cluster{}
	err = c.Client.Get(ctx, client.ObjectKeyFromObject(q.object), q.cluster)
	if apierrors.IsNotFound(err) {
		q.cluster, err = nil, nil
	}
	return err
}

// checkName requires a name that all objects which are named after the cluster can have too.
func (q *clusterReview) checkName() {
	if q.old != nil || q.object.Name == "" { // generateName is filled in later
		return
	}
	for _, why := range validation.IsDNS1035Label(q.object.Name) {
		q.addError(field.Invalid(field.NewPath("metadata", "name"), q.object.Name, why))
	}
}

// checkParameterSize reports whether parameters are small enough to be checked.
func (q *clusterReview) checkParameterSize() bool {
	if !exceedsMaxParameters(q.object.Spec.Parameters) || q.old != nil && topology.HasSameInput(q.object, q.old) {
		return true
	}
	q.addError(field.Invalid(spec.Child("parameters"), field.OmitValueType{},
		fmt.Sprintf("all together they are more than %d KiB, which no stack takes; write less", maxParameters>>10)))
	return false
}

// checkImmutable forbids changes that need a new cluster.
func (q *clusterReview) checkImmutable() {
	if q.old == nil {
		return
	}
	o, old := &q.object.Spec, &q.old.Spec
	if o.Provider != old.Provider {
		q.addError(field.Forbidden(spec.Child("provider"),
			fmt.Sprintf("a cluster stays at its provider, %s; make the same elsewhere with: polder export %s | polder create NEW-NAME -f - --provider %s", old.Provider, q.object.Name, o.Provider)))
	}
	if o.Stack.Name != old.Stack.Name {
		q.addError(field.Forbidden(spec.Child("stack", "name"),
			fmt.Sprintf("a cluster stays with its stack, %s; make another cluster", old.Stack.Name)))
	}
	if !slices.Equal(o.Network.PodCIDRs, old.Network.PodCIDRs) {
		q.addError(field.Forbidden(spec.Child("network", "podCIDRs"),
			fmt.Sprintf("it cannot be changed from %s; make another cluster", strings.Join(old.Network.PodCIDRs, ", "))))
	}
	if !slices.Equal(o.Network.ServiceCIDRs, old.Network.ServiceCIDRs) {
		q.addError(field.Forbidden(spec.Child("network", "serviceCIDRs"),
			fmt.Sprintf("it cannot be changed from %s; make another cluster", strings.Join(old.Network.ServiceCIDRs, ", "))))
	}
}

// findProvider returns the provider that the spec names; nil if it is not there.
func (q *clusterReview) findProvider() *v1alpha1.Provider {
	var names []string
	for i := range q.providers {
		if q.providers[i].Name == q.object.Spec.Provider {
			return &q.providers[i]
		}
		names = append(names, q.providers[i].Name)
	}
	slices.Sort(names)
	at := spec.Child("provider")
	switch {
	case q.old != nil && q.old.Spec.Provider == q.object.Spec.Provider:
		return nil // it was there before; the object must stay editable
	case len(names) == 0:
		q.addError(field.Invalid(at, q.object.Spec.Provider, "no provider is installed here; ask the platform operator"))
	case q.object.Spec.Provider == "":
		q.addError(field.Required(at, "choose from "+strings.Join(names, ", ")))
	default:
		q.addError(field.Invalid(at, q.object.Spec.Provider,
			"there is no such provider; choose from "+strings.Join(names, ", ")+suggest.Hint(q.object.Spec.Provider, names)))
	}
	return nil
}

// chooseRelease returns the release that the spec asks for, and whether it can be checked against. One that is not
// ready yet is no error of the spec.
func (q *clusterReview) chooseRelease(p *v1alpha1.Provider) (lineage.CatalogueEntry, bool) {
	rel, err := q.catalogue.Choose(stackProviderOf(p), q.object.Spec.Stack)
	var unavailable *lineage.ReleaseUnavailableError
	same := q.old != nil && q.old.Spec.Stack == q.object.Spec.Stack
	if errors.As(err, &unavailable) {
		known := unavailable.Reason == v1alpha1.ReasonReleaseNotReady ||
			unavailable.Reason == v1alpha1.ReasonReleaseMissing && unavailable.Actor != v1alpha1.Customer
		if !same && !known {
			q.addError(field.Invalid(spec.Child("stack", unavailable.Field), q.stackField(unavailable.Field), unavailable.Text))
		}
		return rel, false
	}
	if !same && q.object.Spec.Stack.Channel == v1alpha1.ChannelCustom && q.object.Spec.Stack.Version != "" &&
		rel.Version.IsStable() {
		q.addError(field.Invalid(spec.Child("stack", "channel"), string(v1alpha1.ChannelCustom),
			fmt.Sprintf("release %s, which is pinned, is of channel stable; leave the channel out", rel.Version)))
	}
	if q.cluster == nil {
		return rel, true
	}
	if why, _ := lineage.CheckUpgrade(q.cluster.Spec.Topology.Version, rel.Object.Status.KubernetesVersion); why != "" {
		if same {
			// The newest release was withdrawn: the cluster stays at its own, and the object must stay editable.
			return rel, false
		}
		// The error is at the field that was changed.
		at, value := spec.Child("stack", "kubernetesVersion"), q.object.Spec.Stack.KubernetesVersion
		if q.old != nil && value == q.old.Spec.Stack.KubernetesVersion {
			at, value = spec.Child("stack", "version"), q.object.Spec.Stack.Version
		}
		q.addError(field.Invalid(at, value, why))
		return rel, false
	}
	return rel, true
}

// stackField returns the value of a field of spec.stack.
func (q *clusterReview) stackField(name string) string {
	s := q.object.Spec.Stack
	return map[string]string{"name": s.Name, "kubernetesVersion": s.KubernetesVersion, "channel": string(s.Channel),
		"version": s.Version}[name]
}

// stackProviderOf returns the provider's name in names of stacks, which may be another than its own.
func stackProviderOf(p *v1alpha1.Provider) string {
	if p.Status.StackProvider != "" {
		return p.Status.StackProvider
	}
	return p.Name
}

// checkClass checks all that depends on the class of the release, and asks the provider.
func (c *Checker) checkClass(ctx context.Context, q *clusterReview, p *v1alpha1.Provider,
	rel lineage.CatalogueEntry) error {
	release, err := topology.ReleaseForProvider(ctx, c.Client, rel)
	if apierrors.IsNotFound(err) {
		return nil // the release is new, and its class will come
	}
	if err != nil {
		return err
	}
	in := provider.Input{Cluster: q.object, Release: release}
	g, ok := c.Providers[q.object.Spec.Provider]
	// A provider outside of this process is asked by its own webhook.
	if !ok {
		q.checkParameters(ctx, p, release, nil)
		return nil
	}
	errs, err := g.Validate(ctx, in)
	if err != nil {
		return fmt.Errorf("asking provider %s: %w", p.Name, err)
	}
	q.errs = append(q.errs, q.dropUnchangedMachineErrors(p, errs)...)
	if len(errs) > 0 {
		q.checkParameters(ctx, p, release, nil) // what the provider would set is not known
		return nil
	}
	set, err := g.Topology(ctx, in)
	if err != nil {
		return fmt.Errorf("asking provider %s: %w", p.Name, err)
	}
	q.checkParameters(ctx, p, release, variableSources(set))
	return nil
}

// dropUnchangedMachineErrors drops the provider's errors against machines that the cluster has already.
func (q *clusterReview) dropUnchangedMachineErrors(p *v1alpha1.Provider, errs field.ErrorList) field.ErrorList {
	if q.old == nil {
		return errs
	}
	return topology.DropUnchangedMachineErrors(q.object, q.old, providerParameters(p), errs)
}

// checkProviderVariable forbids a parameter whose variable the provider sets from another field. Of its own parameters
// the provider may make such variables.
func checkProviderVariable(parameter string, setBy map[string]string, own map[string]map[string]any) *field.Error {
	by, ok := setBy[parameter]
	if _, mine := own[parameter]; !ok || mine {
		return nil
	}
	return field.Forbidden(spec.Child("parameters", parameter), "it follows from "+by+"; leave out one of them")
}

// variableSources returns the variables that the provider sets, each with the field it follows from.
func variableSources(t provider.Topology) map[string]string {
	out := map[string]string{}
	for name := range t.Variables {
		out[name] = "another field of the spec"
	}
	for name := range t.ControlPlane.Variables {
		out[name] = "machineType or machine"
	}
	for _, m := range t.Pools {
		for name := range m.Variables {
			out[name] = "machineType or machine"
		}
	}
	return out
}
