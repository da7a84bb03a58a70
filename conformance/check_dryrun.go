package conformance

import (
	"context"
	"net/http"
)

func dryRunChecks() []check {
	return []check{
		{
			name: "dry run/made", run: checkDryRunMade,
			shows: "POST and PUT with dryRun answer as if they made a cluster, and make none",
		},
		{
			name: "dry run/changed", run: checkDryRunChanged,
			shows: "PUT, PATCH and DELETE with dryRun answer as if they changed a cluster, and change nothing",
		},
		{
			name: "dry run/refused", run: checkDryRunRefused,
			shows: "a dry run checks everything: what would be refused is refused",
		},
	}
}

func checkDryRunMade(ctx context.Context, s *session) error {
	name := s.newName()
	for _, q := range []request{post(s.file(name)), put(name, s.file(name))} {
		if _, err := s.want(ctx, dryRun(q), http.StatusCreated); err != nil {
			return err
		}
		if _, err := s.want(ctx, get(name), http.StatusNotFound); err != nil {
			return err
		}
	}
	return nil
}

func checkDryRunChanged(ctx context.Context, s *session) error {
	c, err := s.make(ctx)
	if err != nil {
		return err
	}
	file := s.file(c.Name, func(spec, metadata map[string]any) {
		spec["deletionProtection"], metadata["labels"] = false, map[string]any{"conformance": "changed"}
	})
	for _, q := range []request{
		put(c.Name, file), patch(c.Name, `{"metadata":{"labels":{"conformance":"changed"}},"spec":{"deletionProtection":false}}`),
	} {
		if _, err := s.want(ctx, dryRun(q), http.StatusOK); err != nil {
			return err
		}
		if err := s.wantSame(ctx, c); err != nil {
			return err
		}
	}
	q := dryRun(request{op: "delete-cluster", cluster: c.Name})
	if _, err := s.want(ctx, q, http.StatusAccepted); err != nil {
		return err
	}
	return s.wantSame(ctx, c)
}

func checkDryRunRefused(ctx context.Context, s *session) error {
	name := s.newName()
	file := s.file(name, wrongStack)
	_, err := s.want(ctx, dryRun(post(file)), http.StatusUnprocessableEntity)
	return err
}
