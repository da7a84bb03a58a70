package rest

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/danielgtaylor/huma/v2"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/polder-kaas/polder/api/v1alpha1"
	"github.com/polder-kaas/polder/internal/apierror"
)

const (
	membersPath = tenantPathPattern + "/members"
	robotsPath  = tenantPathPattern + "/robots"
)

// Member is a person or a group of them.
type Member struct {
	Kind string `json:"kind" enum:"Group,User" doc:"Whether it is one person or many."`
	Name string `json:"name" minLength:"1" maxLength:"512" doc:"The name that the plane knows them under; GET /v1/me says yours." example:"oidc:acme-admins"`
	Role string `json:"role" enum:"admin,editor,viewer" doc:"What they may do."`
}

// Robot is a program.
type Robot struct {
	Name string `json:"name" doc:"Name of the robot." example:"ci"`
	Role string `json:"role" enum:"editor,viewer" doc:"What it may do."`
}

// RobotPath names a robot.
type RobotPath struct {
	TenantPath
	Robot string `path:"robot" minLength:"1" maxLength:"40" pattern:"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$" doc:"Name of the robot." example:"ci"`
}

// MemberList is who belongs to a tenant.
type MemberList struct {
	Items []Member `json:"items" nullable:"false" maxItems:"256"`
}

// members is who belongs to a tenant, as an answer.
type members struct {
	ETag string `header:"ETag" doc:"The version of the tenant, for If-Match."`
	Body MemberList
}

func registerMembers(a *API) error {
	huma.Register(a.huma, operation("list-members", http.MethodGet, membersPath, tagTenants, "List members of a tenant"),
		func(ctx context.Context, in *TenantPath) (*members, error) {
			t, err := a.getTenant(ctx, in.Tenant)
			if err != nil {
				return nil, err
			}
			return newMembers(t), nil
		})
	put := operation("put-members", http.MethodPut, membersPath, tagTenants, "Say who the members of a tenant are; for its admins",
		http.StatusPreconditionFailed, http.StatusPreconditionRequired, http.StatusUnprocessableEntity)
	put.Description = "The list becomes the body's. It needs If-Match, so that no change of somebody else is lost."
	huma.Register(a.huma, put, a.putMembers)
	huma.Register(a.huma, operation("list-robots", http.MethodGet, robotsPath, tagTenants, "List robots of a tenant"),
		func(ctx context.Context, in *TenantPath) (*list[Robot], error) {
			t, err := a.getTenant(ctx, in.Tenant)
			if err != nil {
				return nil, err
			}
			out := &list[Robot]{}
			out.Body.Items = []Robot{}
			for _, r := range t.Spec.Robots {
				out.Body.Items = append(out.Body.Items, Robot{Name: r.Name, Role: string(r.Role)})
			}
			return out, nil
		})
	huma.Register(a.huma, operation("put-robot", http.MethodPut, robotsPath+"/{robot}", tagTenants,
		"Take a robot in, or give it another role; for admins of the tenant", http.StatusConflict, http.StatusUnprocessableEntity),
		a.putRobot)
	del := operation("delete-robot", http.MethodDelete, robotsPath+"/{robot}", tagTenants,
		"Take a robot out: its tokens end; for admins of the tenant", http.StatusConflict)
	del.DefaultStatus = http.StatusNoContent
	huma.Register(a.huma, del, a.deleteRobot)
	token := operation("create-robot-token", http.MethodPost, robotsPath+"/{robot}/tokens", tagTenants,
		"Get a token of a robot; for admins of the tenant", http.StatusConflict, http.StatusUnprocessableEntity)
	token.DefaultStatus = http.StatusCreated
	huma.Register(a.huma, token, a.createRobotToken)
	return nil
}

func newMembers(t *v1alpha1.Tenant) *members {
	out := &members{ETag: eTag(t)}
	out.Body.Items = []Member{}
	for _, m := range t.Spec.Members {
		out.Body.Items = append(out.Body.Items, Member{Kind: string(m.Kind), Name: m.Name, Role: string(m.Role)})
	}
	return out
}

// getTenant reads a tenant with the rights of the caller.
func (a *API) getTenant(ctx context.Context, name string) (*v1alpha1.Tenant, error) {
	ctx, cancel := context.WithTimeout(ctx, planeTimeout)
	defer cancel()
	u, err := a.getTenantObject(ctx, name)
	if err != nil {
		return nil, explainTenant(name, err)
	}
	t := &v1alpha1.Tenant{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, t); err != nil {
		return nil, fmt.Errorf("reading tenant %s: %w", name, err)
	}
	return t, nil
}

// changeTenant changes the tenant as it is now, or as it was at a version, with the rights of the caller.
func (a *API) changeTenant(ctx context.Context, name, version string,
	change func(*v1alpha1.TenantSpec) error) (*v1alpha1.Tenant, error) {
	ctx, cancel := context.WithTimeout(ctx, planeTimeout)
	defer cancel()
	const tries = 10
	for range tries {
		t, err := a.getTenant(ctx, name)
		if err != nil {
			return nil, err
		}
		if version != "" && t.ResourceVersion != version {
			return nil, changedMeanwhile("tenant " + name)
		}
		if err := change(&t.Spec); err != nil {
			return nil, err
		}
		object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(t)
		if err != nil {
			return nil, err
		}
		u := &unstructured.Unstructured{Object: object}
		u.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("Tenant"))
		u, err = a.client.Resource(tenantResource).Update(ctx, u, metav1.UpdateOptions{
			FieldManager: fieldManager, FieldValidation: metav1.FieldValidationStrict,
		})
		if apierrors.IsConflict(err) {
			continue
		}
		if err != nil {
			return nil, explain(err)
		}
		changed := &v1alpha1.Tenant{}
		return changed, runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, changed)
	}
	return nil, changedMeanwhile("tenant " + name)
}

func (a *API) putMembers(ctx context.Context, in *struct {
	TenantPath
	IfMatch string `header:"If-Match" maxLength:"1024" doc:"The ETag of the list that was read; needed."`
	Body    MemberList
}) (*members, error) {
	version, err := Preconditions{IfMatch: in.IfMatch}.version()
	if err != nil {
		return nil, err
	}
	if version == "" {
		return nil, newProblem(http.StatusPreconditionRequired, "this needs If-Match with the ETag of the list that you have read")
	}
	t, err := a.changeTenant(ctx, in.Tenant, version, func(s *v1alpha1.TenantSpec) error {
		s.Members = nil
		for _, m := range in.Body.Items {
			s.Members = append(s.Members, v1alpha1.TenantMember{
				Kind: v1alpha1.MemberKind(m.Kind), Name: m.Name, Role: v1alpha1.TenantRole(m.Role),
			})
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return newMembers(t), nil
}

func findRobot(s *v1alpha1.TenantSpec, name string) int {
	return slices.IndexFunc(s.Robots, func(r v1alpha1.TenantRobot) bool { return r.Name == name })
}

func noRobot(name string) *Problem {
	return problemf(http.StatusNotFound, "there is no robot %s in this tenant", name)
}

func (a *API) putRobot(ctx context.Context, in *struct {
	RobotPath
	Body struct {
		Role string `json:"role" enum:"editor,viewer" doc:"What it may do."`
	}
}) (*struct{ Body Robot }, error) {
	want := v1alpha1.TenantRobot{Name: in.Robot, Role: v1alpha1.TenantRole(in.Body.Role)}
	_, err := a.changeTenant(ctx, in.Tenant, "", func(s *v1alpha1.TenantSpec) error {
		if i := findRobot(s, in.Robot); i >= 0 {
			s.Robots[i] = want
			return nil
		}
		s.Robots = append(s.Robots, want)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &struct{ Body Robot }{Robot{Name: in.Robot, Role: in.Body.Role}}, nil
}

func (a *API) deleteRobot(ctx context.Context, in *RobotPath) (*struct{}, error) {
	_, err := a.changeTenant(ctx, in.Tenant, "", func(s *v1alpha1.TenantSpec) error {
		i := findRobot(s, in.Robot)
		if i < 0 {
			return noRobot(in.Robot)
		}
		s.Robots = slices.Delete(s.Robots, i, i+1)
		return nil
	})
	return nil, err
}

// RobotToken is access for a program.
type RobotToken struct {
	Token          string    `json:"token" doc:"The token. It is kept nowhere: who loses it gets another."`
	ExpirationTime time.Time `json:"expirationTime" doc:"When it ends."`
}

func (a *API) createRobotToken(ctx context.Context, in *struct {
	RobotPath
	Body struct {
		ExpirationSeconds int64 `json:"expirationSeconds,omitempty" minimum:"600" maximum:"7776000" default:"86400" doc:"How long it is valid: from ten minutes to 90 days."`
	}
}) (*struct{ Body RobotToken }, error) {
	ctx, cancel := context.WithTimeout(ctx, planeTimeout)
	defer cancel()
	t, err := a.getTenant(ctx, in.Tenant)
	if err != nil {
		return nil, err
	}
	if findRobot(&t.Spec, in.Robot) < 0 {
		return nil, noRobot(in.Robot)
	}
	account := v1alpha1.RobotAccountPrefix + in.Robot
	request := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": authenticationv1.SchemeGroupVersion.String(), "kind": "TokenRequest",
		"metadata": map[string]any{"name": account, "namespace": t.NamespaceName()},
		"spec":     map[string]any{"expirationSeconds": in.Body.ExpirationSeconds},
	}}
	accounts := a.client.Resource(corev1.SchemeGroupVersion.WithResource("serviceaccounts")).Namespace(t.NamespaceName())
	var u *unstructured.Unstructured
	// The account is made, and given its rights, a moment after the robot was taken in.
	err = wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, 10*time.Second, true,
		func(ctx context.Context) (done bool, err error) {
			if t.Status.ObservedGeneration != t.Generation {
				t, err = a.getTenant(ctx, in.Tenant)
				return false, err
			}
			u, err = accounts.Create(ctx, request, metav1.CreateOptions{}, "token")
			if apierror.IsObjectNotFound(err, "serviceaccounts", account) {
				return false, nil
			}
			return true, err
		})
	if wait.Interrupted(err) {
		return nil, problemf(http.StatusConflict, "robot %s has no account yet; try again", in.Robot)
	}
	if err != nil {
		return nil, explain(err)
	}
	out := &struct{ Body RobotToken }{}
	out.Body.Token, _, _ = unstructured.NestedString(u.Object, "status", "token")
	at, _, _ := unstructured.NestedString(u.Object, "status", "expirationTimestamp")
	if out.Body.ExpirationTime, err = time.Parse(time.RFC3339, at); err != nil || out.Body.Token == "" {
		return nil, newProblem(http.StatusBadGateway, "the plane gave no token; try again")
	}
	return out, nil
}
