package conformance

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/polder-kaas/polder/api/v1alpha1"
)

func statusChecks() []check {
	return []check{
		{
			name: "status/said", run: checkStatusSaid,
			shows: "the status is the operation: soon after POST, status.phase, message and actor say how far the cluster is",
		},
		{
			name: "status/not written", run: checkStatusNotWritten,
			shows: "a status that a customer sends with PUT or POST is passed over",
		},
		{
			name: "status/ready", run: checkReady, ready: true,
			shows: "a cluster that is not paused becomes Ready, and on the way its status says why it waits and who must do what",
		},
	}
}

// checkStatus says what of a status does not fit together.
func checkStatus(st v1alpha1.WorkloadClusterStatus) error {
	switch {
	case st.Phase == "":
		return errors.New("the cluster has no status.phase")
	case st.Message == "":
		return fmt.Errorf("the cluster is %s, and has no status.message that says why", st.Phase)
	case st.Actor == "":
		return fmt.Errorf("the cluster is %s, and no status.actor says who must act", st.Phase)
	case st.Actor != v1alpha1.Nobody && st.NextStep == "":
		return fmt.Errorf("the %s must act, and no status.nextStep says what to do", st.Actor)
	case st.Phase == v1alpha1.PhaseReady && st.Endpoint == "":
		return errors.New("the cluster is Ready, and has no status.endpoint")
	}
	return nil
}

func checkStatusSaid(ctx context.Context, s *session) error {
	c, err := s.make(ctx)
	if err != nil {
		return err
	}
	return s.eventually(ctx, func(ctx context.Context) error {
		now, _, err := s.read(ctx, c.Name)
		if err != nil {
			return err
		}
		return checkStatus(now.Status)
	})
}

func checkStatusNotWritten(ctx context.Context, s *session) error {
	name := s.newName()
	file := s.file(name)
	const claimed = "the customer claims this"
	file["status"] = map[string]any{"phase": "Ready", "message": claimed, "endpoint": "https://127.0.0.1:1"}
	if _, err := s.want(ctx, post(file), http.StatusCreated); err != nil {
		return err
	}
	if _, err := s.want(ctx, put(name, file), http.StatusOK); err != nil {
		return err
	}
	now, _, err := s.read(ctx, name)
	if err != nil {
		return err
	}
	if now.Status.Message == claimed || now.Status.Endpoint == "https://127.0.0.1:1" {
		return errors.New("the status of the cluster is what the customer has sent")
	}
	return nil
}

// running is a cluster that is not paused.
func running(spec, _ map[string]any) { spec["paused"] = false }

// awaitReady waits until a cluster is ready. It is an error at once if the status, once there is one, does not fit
// together at any time.
func (s *session) awaitReady(ctx context.Context, name string) error {
	var wrong error
	seen := false
	err := eventually(ctx, s.cfg.WaitReady, func(ctx context.Context) error {
		c, _, err := s.read(ctx, name)
		if err != nil {
			return err
		}
		if c.Status.Phase == "" && !seen {
			return errors.New("the cluster has no status.phase")
		}
		seen = true
		if wrong = checkStatus(c.Status); wrong != nil {
			return nil
		}
		if c.Status.Phase != v1alpha1.PhaseReady || c.Status.ObservedGeneration != c.Generation {
			return fmt.Errorf("the cluster is %s, not Ready: %s", c.Status.Phase, c.Status.Message)
		}
		return nil
	})
	if wrong != nil {
		return wrong
	}
	return err
}

func checkReady(ctx context.Context, s *session) error {
	c, err := s.make(ctx, running)
	if err != nil {
		return err
	}
	return s.awaitReady(ctx, c.Name)
}
