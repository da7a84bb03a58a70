package restplane

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/polder-kaas/polder/api/v1alpha1"
	"github.com/polder-kaas/polder/client"
	"github.com/polder-kaas/polder/internal/quota/counted"
)

// self is who the caller is.
func (c *call) self(ctx context.Context) (who client.Self, err error) {
	res, err := c.api.GetSelf(ctx)
	return who, c.read(ctx, res, err, &who)
}

func (c *call) reviewSelf(ctx context.Context) (any, error) {
	who, err := c.self(ctx)
	if err != nil {
		return nil, err
	}
	return &authenticationv1.SelfSubjectReview{
		TypeMeta: metav1.TypeMeta{APIVersion: authenticationv1.SchemeGroupVersion.String(), Kind: "SelfSubjectReview"},
		Status: authenticationv1.SelfSubjectReviewStatus{
			UserInfo: authenticationv1.UserInfo{Username: who.Username, Groups: who.Groups},
		},
	}, nil
}

// listTenants returns those that the caller belongs to; of Kubernetes only operators get a list.
func (c *call) listTenants(ctx context.Context) (any, error) {
	all, err := c.pages(ctx, func(token string) (*http.Response, error) {
		return c.api.ListTenants(ctx, &client.ListTenantsParams{PageSize: pageSize, PageToken: token})
	})
	return list(v1alpha1.GroupVersion.String(), "TenantList", "", all), err
}

func (c *call) getTenant(ctx context.Context) (any, error) {
	if !namePattern.MatchString(c.name) {
		return nil, c.forbidden(ctx)
	}
	var o object
	t := &v1alpha1.Tenant{}
	res, err := c.api.GetTenant(ctx, c.name)
	if err := c.read(ctx, res, err, &o); err != nil {
		return nil, err
	}
	b, err := json.Marshal(o)
	if err == nil {
		err = json.Unmarshal(b, t)
	}
	if err != nil {
		return nil, err
	}
	c.rememberTenant(t)
	return o, nil
}

// updateTenant changes members and robots, which is what the REST API lets admins of a tenant change: first the list of
// members as a whole, if nobody has changed the tenant meanwhile, and then robot by robot.
func (c *call) updateTenant(ctx context.Context) (any, error) {
	var wanted, is v1alpha1.Tenant
	if err := json.Unmarshal(c.body, &wanted); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	res, err := c.api.GetTenant(ctx, c.name)
	if err := c.read(ctx, res, err, &is); err != nil {
		return nil, err
	}
	rest := wanted.Spec
	rest.Members, rest.Robots = is.Spec.Members, is.Spec.Robots
	if !apiequality.Semantic.DeepEqual(rest, is.Spec) {
		return nil, c.noCounterpart("the REST API changes members and robots of a tenant, and nothing else of it")
	}
	if wanted.ResourceVersion != is.ResourceVersion {
		return nil, apierrors.NewConflict(c.groupResource(), c.name, errChanged)
	}
	if !slices.Equal(wanted.Spec.Members, is.Spec.Members) {
		if err := c.putMembers(ctx, wanted.Spec.Members, is.ResourceVersion); err != nil {
			return nil, err
		}
	}
	if err := c.putRobots(ctx, is.Spec.Robots, wanted.Spec.Robots); err != nil {
		return nil, err
	}
	return c.getTenant(ctx)
}

func (c *call) putMembers(ctx context.Context, all []v1alpha1.TenantMember, resourceVersion string) error {
	body := client.MemberList{Items: []client.Member{}}
	for _, m := range all {
		body.Items = append(body.Items, client.Member{
			Kind: client.MemberKind(m.Kind), Name: m.Name, Role: client.MemberRole(m.Role),
		})
	}
	res, err := c.api.PutMembers(ctx, c.name, &client.PutMembersParams{IfMatch: eTag(resourceVersion)}, body)
	return c.read(ctx, res, err, nil)
}

func (c *call) putRobots(ctx context.Context, is, wanted []v1alpha1.TenantRobot) error {
	for _, r := range wanted {
		if slices.Contains(is, r) {
			continue
		}
		res, err := c.api.PutRobot(ctx, c.name, r.Name, client.RobotRequest{Role: client.RobotRequestRole(r.Role)})
		if err := c.read(ctx, res, err, nil); err != nil {
			return err
		}
	}
	for _, r := range is {
		if slices.ContainsFunc(wanted, func(w v1alpha1.TenantRobot) bool { return w.Name == r.Name }) {
			continue
		}
		res, err := c.api.DeleteRobot(ctx, c.name, r.Name)
		if err := c.read(ctx, res, err, nil); err != nil {
			return err
		}
	}
	return nil
}

// getQuota returns what a tenant may have and what it uses as the ResourceQuota that counts it.
func (c *call) getQuota(ctx context.Context) (any, error) {
	if c.name != v1alpha1.TenantQuotaName {
		return nil, c.forbidden(ctx)
	}
	var l client.QuotaItemList
	res, err := c.api.GetQuota(ctx, c.tenant())
	if err := c.read(ctx, res, err, &l); err != nil {
		return nil, err
	}
	q := &corev1.ResourceQuota{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ResourceQuota"},
		ObjectMeta: metav1.ObjectMeta{Name: c.name, Namespace: c.namespace},
		Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{}},
		Status:     corev1.ResourceQuotaStatus{Hard: corev1.ResourceList{}, Used: corev1.ResourceList{}},
	}
	for _, name := range counted.All() {
		i := slices.IndexFunc(l.Items, func(x client.QuotaItem) bool { return x.Name == counted.Field(name) })
		if i < 0 {
			continue
		}
		for text, to := range map[string][]corev1.ResourceList{
			l.Items[i].Limit: {q.Spec.Hard, q.Status.Hard}, l.Items[i].Used: {q.Status.Used},
		} {
			amount, err := resource.ParseQuantity(text)
			if err != nil {
				return nil, err
			}
			for _, m := range to {
				m[name] = amount
			}
		}
	}
	return q, nil
}
