package conformance

import (
	"context"
	"fmt"
	"net/http"

	"github.com/polder-kaas/polder/api/v1alpha1"
)

func patchChecks() []check {
	return []check{
		{
			name: "patch/merge", run: checkMergePatch,
			shows: "PATCH is a JSON merge patch: what it names changes, null takes out, all else stays",
		},
		{
			name: "patch/limits", run: checkPatchLimits,
			shows: "PATCH changes only what PUT could: status and other metadata are refused, and no field that is not known is taken",
		},
		{
			name: "patch/missing", run: checkPatchMissing,
			shows: "PATCH of a cluster that is not there is answered 404 and makes none",
		},
	}
}

func checkMergePatch(ctx context.Context, s *session) error {
	c, err := s.make(ctx)
	if err != nil {
		return err
	}
	want := func(body string, isRight func(*v1alpha1.WorkloadCluster) bool) error {
		if _, err := s.want(ctx, patch(c.Name, body), http.StatusOK); err != nil {
			return err
		}
		now, _, err := s.read(ctx, c.Name)
		if err == nil && (!isRight(now) || now.UID != c.UID || now.Spec.Stack.Name != c.Spec.Stack.Name) {
			err = fmt.Errorf("after the patch %s the cluster has labels %v, annotations %v and deletionProtection %v", body,
				now.Labels, now.Annotations, now.Spec.DeletionProtection)
		}
		return err
	}
	err = want(`{"metadata":{"labels":{"more":"x"}},"spec":{"deletionProtection":false}}`,
		func(now *v1alpha1.WorkloadCluster) bool {
			return now.Labels["more"] == "x" && now.Labels["conformance"] == "made" && now.Spec.DeletionProtection != nil &&
				now.Annotations["conformance/note"] == "x"
		})
	if err != nil {
		return err
	}
	return want(`{"metadata":{"labels":{"conformance":null}},"spec":{"deletionProtection":null}}`,
		func(now *v1alpha1.WorkloadCluster) bool {
			_, there := now.Labels["conformance"]
			return now.Labels["more"] == "x" && !there && now.Spec.DeletionProtection == nil
		})
}

func checkPatchLimits(ctx context.Context, s *session) error {
	c, err := s.make(ctx)
	if err != nil {
		return err
	}
	for _, body := range []string{
		`{"status":{"phase":"Ready"}}`, `{"metadata":{"finalizers":["conformance/x"]}}`, `{"metadata":{"name":"other"}}`,
		`{"spec":{"no-such-field":1}}`,
	} {
		q := patch(c.Name, body)
		if _, err := s.want(ctx, q, http.StatusBadRequest, http.StatusUnprocessableEntity); err != nil {
			return fmt.Errorf("%s: %w", body, err)
		}
	}
	return s.wantSame(ctx, c)
}

func checkPatchMissing(ctx context.Context, s *session) error {
	name := s.newName()
	q := patch(name, `{"metadata":{"labels":{"conformance":"x"}}}`)
	if _, err := s.want(ctx, q, http.StatusNotFound); err != nil {
		return err
	}
	_, err := s.want(ctx, get(name), http.StatusNotFound)
	return err
}
