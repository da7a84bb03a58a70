package tenant

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"unicode"

	admissionv1 "k8s.io/api/admission/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/polder-kaas/polder/api/v1alpha1"
	"github.com/polder-kaas/polder/internal/tenancy"
)

// maxAllowedValues is how many bytes the values of all allowed parameters may have together.
const maxAllowedValues = 64 << 10

// Validator checks Tenants before they are stored.
type Validator struct {
	Client  client.Client // reads from a cache; creates SubjectAccessReviews
	Decoder admission.Decoder
	// Planes are those of tenants with one of their own; nil: nobody here runs any.
	Planes tenancy.Planes
}

// Handle answers the API server. Who may make tenants may write all of one; others, who are its admins, members and
// robots alone.
func (v *Validator) Handle(ctx context.Context, req admission.Request) admission.Response {
	if req.Operation == admissionv1.Delete {
		return v.handleDeletion(ctx, req)
	}
	t, old := &v1alpha1.Tenant{}, &v1alpha1.Tenant{}
	if err := v.Decoder.Decode(req, t); err != nil {
		return admission.Errored(http.StatusBadRequest, err)
	}
	if req.Operation == admissionv1.Update {
		if err := v.Decoder.DecodeRaw(req.OldObject, old); err != nil {
			return admission.Errored(http.StatusBadRequest, err)
		}
		if !t.DeletionTimestamp.IsZero() {
			return admission.Allowed("")
		}
	}
	errs := checkMembers(t, old)
	if req.Operation == admissionv1.Create {
		more, err := v.checkNames(ctx, t)
		if err != nil {
			return admission.Errored(http.StatusInternalServerError, err)
		}
		errs = append(errs, more...)
	} else {
		errs = append(errs, checkKept(t, old)...)
	}
	errs = append(errs, checkAllowed(&t.Spec.Allow)...)
	if req.Operation == admissionv1.Update {
		trusted, err := v.mayCreateTenants(ctx, req)
		if err != nil {
			return admission.Errored(http.StatusInternalServerError, err)
		}
		if !trusted {
			errs = append(errs, checkOwnAdmin(t, old)...)
		}
	}
	if len(errs) > 0 {
		status := apierrors.NewInvalid(v1alpha1.GroupVersion.WithKind("Tenant").GroupKind(), t.Name, errs).Status()
		return admission.Response{AdmissionResponse: admissionv1.AdmissionResponse{Result: &status}}
	}
	return admission.Allowed("").WithWarnings(v.warn(ctx, t)...)
}

// mayCreateTenants reports whether somebody is the platform operator.
func (v *Validator) mayCreateTenants(ctx context.Context, req admission.Request) (bool, error) {
	r := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: req.UserInfo.Username, UID: req.UserInfo.UID, Groups: req.UserInfo.Groups,
		Extra: map[string]authorizationv1.ExtraValue{},
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Group: v1alpha1.GroupVersion.Group, Resource: "tenants", Verb: "create",
		},
	}}
	for k, values := range req.UserInfo.Extra {
		r.Spec.Extra[k] = authorizationv1.ExtraValue(values)
	}
	if err := v.Client.Create(ctx, r); err != nil {
		return false, fmt.Errorf("reviewing the rights of %s: %w", req.UserInfo.Username, err)
	}
	return r.Status.Allowed, nil
}

// checkMembers forbids names that Kubernetes and the plane give rights to themselves, and those that nobody can read. A
// name that was there before stays.
func checkMembers(t, old *v1alpha1.Tenant) (errs field.ErrorList) {
	for i, m := range t.Spec.Members {
		at := field.NewPath("spec", "members").Index(i).Child("name")
		if slices.ContainsFunc(old.Spec.Members,
			func(o v1alpha1.TenantMember) bool { return o.Kind == m.Kind && o.Name == m.Name }) {
			continue
		}
		switch {
		case strings.HasPrefix(m.Name, "system:"), strings.HasPrefix(m.Name, "polder:"):
			errs = append(errs, field.Invalid(at, m.Name,
				"names that begin with system: or polder: are no people; name a group or a user of an issuer, and for programs write robots"))
		case m.Name != strings.TrimSpace(m.Name), strings.ContainsFunc(m.Name, isUnseen):
			errs = append(errs, field.Invalid(at, m.Name,
				"it begins or ends with a blank, or has characters that cannot be seen; write it as polder whoami shows it"))
		}
	}
	return errs
}

func isUnseen(r rune) bool { return !unicode.IsPrint(r) }

// checkNames forbids names that no label can have, and namespaces of the plane and of other tenants.
func (v *Validator) checkNames(ctx context.Context, t *v1alpha1.Tenant) (field.ErrorList, error) {
	if t.Name != "" && len(validation.IsDNS1035Label(t.Name)) > 0 {
		return field.ErrorList{field.Invalid(field.NewPath("metadata", "name"), t.Name,
			"the name of a tenant has lower case letters, digits and dashes, and begins with a letter")}, nil
	}
	at, name := field.NewPath("spec", "namespace"), t.NamespaceName()
	if t.Spec.Namespace == "" {
		at = field.NewPath("metadata", "name")
	}
	if t.IsDedicated() && v.Planes == nil {
		return field.ErrorList{field.Invalid(field.NewPath("spec", "plane"), t.Spec.Plane,
			"nobody here runs planes of tenants; write Shared")}, nil
	}
	if tenancy.IsReserved(name) {
		return field.ErrorList{field.Invalid(at, name, "the plane itself has namespaces of such names; write another")}, nil
	}
	var l v1alpha1.TenantList
	if err := v.Client.List(ctx, &l, client.MatchingFields{namespaceIndex: name}); err != nil {
		return nil, err
	}
	for i := range l.Items {
		if o := &l.Items[i]; o.Name != t.Name {
			return field.ErrorList{
				field.Invalid(at, name, fmt.Sprintf("it is the namespace of tenant %s; write another", o.Name)),
			}, nil
		}
	}
	return nil, nil
}

// checkKept forbids changes of where a tenant is.
func checkKept(t, old *v1alpha1.Tenant) (errs field.ErrorList) {
	spec := field.NewPath("spec")
	if t.Spec.Namespace != old.Spec.Namespace {
		errs = append(errs, field.Forbidden(spec.Child("namespace"),
			fmt.Sprintf("a tenant keeps its namespace, %s; make another tenant", old.NamespaceName())))
	}
	if t.IsDedicated() != old.IsDedicated() {
		errs = append(errs, field.Forbidden(spec.Child("plane"),
			"a tenant keeps the plane that it was made with; make another tenant, and its clusters there"))
	}
	return errs
}

// checkAllowed forbids values that are no JSON, and more than anybody reads.
func checkAllowed(a *v1alpha1.TenantAllowances) (errs field.ErrorList) {
	size := 0
	for i, p := range a.Parameters {
		for j, value := range p.Values {
			size += len(value.Raw)
			if !json.Valid(value.Raw) {
				errs = append(errs, field.Invalid(field.NewPath("spec", "allow", "parameters").Index(i).Child("values").Index(j),
					field.OmitValueType{}, "it is no JSON"))
			}
		}
	}
	if size > maxAllowedValues {
		errs = append(errs, field.Invalid(field.NewPath("spec", "allow", "parameters"), field.OmitValueType{},
			fmt.Sprintf("all together they are more than %d KiB; write fewer", maxAllowedValues>>10)))
	}
	return errs
}

// lastApplied is where kubectl apply keeps what it has written.
const lastApplied = "kubectl.kubernetes.io/last-applied-configuration"

// checkOwnAdmin lets an admin of the tenant change members and robots, and nothing else, whatever fields there will be.
// One admin stays: nobody of the tenant could undo it.
func checkOwnAdmin(t, old *v1alpha1.Tenant) (errs field.ErrorList) {
	spec := field.NewPath("spec")
	rest, was := t.Spec.DeepCopy(), old.Spec.DeepCopy()
	rest.Members, rest.Robots, was.Members, was.Robots = nil, nil, nil, nil
	for _, f := range changedFields(rest, was) {
		errs = append(errs, field.Forbidden(spec.Child(f),
			"only the platform operator changes it; admins of a tenant change its members and robots"))
	}
	a, b := t.ObjectMeta.DeepCopy(), old.ObjectMeta.DeepCopy()
	delete(a.Annotations, lastApplied)
	delete(b.Annotations, lastApplied)
	if !equality.Semantic.DeepEqual(a.Labels, b.Labels) || !equality.Semantic.DeepEqual(a.Annotations, b.Annotations) ||
		!equality.Semantic.DeepEqual(a.Finalizers, b.Finalizers) ||
		!equality.Semantic.DeepEqual(a.OwnerReferences, b.OwnerReferences) {
		errs = append(errs, field.Forbidden(field.NewPath("metadata"),
			"only the platform operator changes labels, annotations, finalizers and owners; leave them as they are"))
	}
	isAdmin := func(m v1alpha1.TenantMember) bool { return m.Role == v1alpha1.TenantAdmin }
	if slices.ContainsFunc(old.Spec.Members, isAdmin) && !slices.ContainsFunc(t.Spec.Members, isAdmin) {
		errs = append(errs, field.Forbidden(spec.Child("members"),
			"one admin must stay, or nobody of the tenant can change its members again; name another admin first"))
	}
	return errs
}

// changedFields returns the names of the fields of a spec that differ.
func changedFields(a, b *v1alpha1.TenantSpec) (out []string) {
	x, y := fieldsOf(a), fieldsOf(b)
	for name := range x {
		if string(x[name]) != string(y[name]) {
			out = append(out, name)
		}
	}
	for name := range y {
		if _, ok := x[name]; !ok {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

// fieldsOf returns the fields of a spec as JSON.
func fieldsOf(s *v1alpha1.TenantSpec) map[string]json.RawMessage {
	out := map[string]json.RawMessage{}
	b, err := json.Marshal(s)
	if err == nil {
		err = json.Unmarshal(b, &out)
	}
	if err != nil {
		out["spec"] = json.RawMessage(err.Error()) // it differs from everything
	}
	return out
}

// warn returns what is allowed and is not there: it may come, and it may be a slip of the pen.
func (v *Validator) warn(ctx context.Context, t *v1alpha1.Tenant) (out []string) {
	var l v1alpha1.ProviderList
	if len(t.Spec.Allow.Providers) == 0 || v.Client.List(ctx, &l) != nil {
		return nil
	}
	for i, name := range t.Spec.Allow.Providers {
		if !slices.ContainsFunc(l.Items, func(p v1alpha1.Provider) bool { return p.Name == name }) {
			out = append(out, fmt.Sprintf("spec.allow.providers[%d]: no provider %s is installed", i, name))
		}
	}
	return out
}

// handleDeletion says what stays of a tenant.
func (v *Validator) handleDeletion(ctx context.Context, req admission.Request) admission.Response {
	t := &v1alpha1.Tenant{}
	if err := v.Decoder.DecodeRaw(req.OldObject, t); err != nil {
		return admission.Allowed("") // one that cannot be read can be deleted
	}
	owner, err := tenancy.Of(ctx, v.Client, t.NamespaceName())
	if err != nil || owner == nil || owner.UID != t.UID {
		return admission.Allowed("")
	}
	from := v.Client
	if t.IsDedicated() && v.Planes != nil {
		if from, err = v.Planes.Client(types.UID(t.Status.NamespaceUID)); err != nil {
			return admission.Allowed("").WithWarnings(fmt.Sprintf(
				"namespace %s stays, with all that is in its plane, which cannot be asked: %v", t.NamespaceName(), err))
		}
	}
	var l v1alpha1.WorkloadClusterList
	if err := from.List(ctx, &l, client.InNamespace(t.NamespaceName())); err != nil {
		return admission.Allowed("")
	}
	return admission.Allowed("").WithWarnings(tenancy.DescribeRemains(t.NamespaceName(), l.Items))
}
