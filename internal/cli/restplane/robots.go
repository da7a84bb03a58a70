package restplane

import (
	"context"
	"encoding/json"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/polder-kaas/polder/api/v1alpha1"
	"github.com/polder-kaas/polder/client"
)

// createToken gets a token of a robot, which is the service account that a tenant has for it.
func (c *call) createToken(ctx context.Context) (any, error) {
	robot, ok := strings.CutPrefix(c.name, v1alpha1.RobotAccountPrefix)
	if !ok {
		return nil, c.noCounterpart("")
	}
	var wanted authenticationv1.TokenRequest
	if err := json.Unmarshal(c.body, &wanted); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	body := client.RobotTokenRequest{}
	if s := wanted.Spec.ExpirationSeconds; s != nil {
		body.ExpirationSeconds = *s
	}
	var token client.RobotToken
	res, err := c.api.CreateRobotToken(ctx, c.tenant(), robot, body)
	if err := c.read(ctx, res, err, &token); err != nil {
		return nil, err
	}
	wanted.TypeMeta = metav1.TypeMeta{APIVersion: authenticationv1.SchemeGroupVersion.String(), Kind: "TokenRequest"}
	wanted.Status = authenticationv1.TokenRequestStatus{
		Token: token.Token, ExpirationTimestamp: metav1.NewTime(token.ExpirationTime),
	}
	return &wanted, nil
}
