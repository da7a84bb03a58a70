package conformance

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/polder-kaas/polder/api/v1alpha1"
)

func offerChecks() []check {
	return []check{
		{
			name: "offers/providers", run: checkProviders,
			shows: "GET /providers lists where clusters can be made, with the one that clusters of this run name",
		},
		{
			name: "offers/stacks", run: checkStacks,
			shows: "GET /stacks and /stacks/{s}/schema say what clusters can be made of and can choose",
		},
		{
			name: "offers/operators", run: checkOperatorsOnly,
			shows: "GET /plane and /releases are for operators of the plane, and refused to others with 403",
		},
	}
}

func checkProviders(ctx context.Context, s *session) error {
	all, err := listOf[v1alpha1.Provider](ctx, s, request{op: "list-providers"})
	if err != nil {
		return err
	}
	wanted := object(s.template["spec"])["provider"]
	for _, p := range all {
		if wanted == nil || p.Name == wanted {
			return nil
		}
	}
	return fmt.Errorf("GET /providers lists %d, and none that is called %v", len(all), wanted)
}

func checkStacks(ctx context.Context, s *session) error {
	name := fmt.Sprint(object(object(s.template["spec"])["stack"])["name"])
	type schema struct{ Stack, Release string }
	if _, err := listOf[any](ctx, s, request{op: "list-stacks"}); err != nil {
		return err
	}
	q := request{op: "get-stack-schema", stack: name}
	all, err := listOf[schema](ctx, s, q)
	if err != nil {
		return err
	}
	for _, x := range all {
		if x.Stack != name || x.Release == "" {
			return fmt.Errorf("GET /stacks/%s/schema has one of stack %q, release %q", name, x.Stack, x.Release)
		}
	}
	if len(all) == 0 {
		return errors.New("the stack that clusters of this run are made of has no schema")
	}
	_, err = s.want(ctx, request{op: "get-stack-schema", stack: s.prefix}, http.StatusNotFound)
	return err
}

func checkOperatorsOnly(ctx context.Context, s *session) error {
	for _, op := range []string{"get-plane", "list-releases"} {
		if _, err := s.want(ctx, request{op: op}, http.StatusForbidden); err != nil {
			return err
		}
	}
	return nil
}
