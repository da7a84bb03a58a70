package conformance

import (
	"context"
	"errors"
	"fmt"
	"net/http"
)

func identityChecks() []check {
	return []check{
		{
			name: "identity/self", run: checkSelf,
			shows: "GET /me says who the caller is",
		},
		{
			name: "identity/token needed", run: checkTokenNeeded,
			shows: "everything but the version and the documents is refused with 401 without a token, and with a wrong one",
		},
	}
}

func checkSelf(ctx context.Context, s *session) error {
	a, err := s.want(ctx, request{op: "get-self"}, http.StatusOK)
	if err != nil {
		return err
	}
	var self struct{ Username string }
	if err := a.read(&self); err != nil {
		return err
	}
	if self.Username == "" {
		return errors.New("GET /me names no user")
	}
	return nil
}

func checkTokenNeeded(ctx context.Context, s *session) error {
	for _, o := range s.document.operations {
		if o.public {
			continue
		}
		q := s.harmless(o.id, s.cfg.Tenant, s.prefix+"-none")
		q.as = Nobody
		if _, err := s.want(ctx, q, http.StatusUnauthorized); err != nil {
			return err
		}
		q.token = "not-a-token"
		if _, err := s.want(ctx, q, http.StatusUnauthorized); err != nil {
			return fmt.Errorf("with a token that nobody gave out: %w", err)
		}
	}
	return nil
}

// harmless is a good request of an operation that changes as little as possible if it is taken.
func (s *session) harmless(op, tenant, cluster string) request {
	q := request{op: op, tenant: tenant, cluster: cluster, robot: s.prefix, stack: s.prefix, kind: typeJSON}
	switch op {
	case "create-cluster", "put-cluster":
		q = dryRun(q)
		q.body = asJSON(s.file(cluster))
	case "patch-cluster":
		q = dryRun(q)
		q.body, q.kind = []byte(`{"metadata":{"labels":{"conformance":"patched"}}}`), typeMergePatch
	case "delete-cluster":
		q = dryRun(q)
	case "put-members":
		q = q.with("If-Match", staleTag)
		q.body = s.members
	case "put-robot":
		q.robot = s.newRobot()
		q.body = []byte(`{"role":"viewer"}`)
	case "create-robot-token", "create-kubeconfig":
		q.body = []byte(`{}`)
	}
	return q
}

// staleTag is an ETag that nothing has.
const staleTag = `"api-conf-stale"`
