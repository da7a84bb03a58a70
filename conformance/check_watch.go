package conformance

import (
	"context"
	"errors"
	"fmt"
	"net/http"
)

func watchChecks() []check {
	return []check{
		{
			name: "watch/synced", run: checkSynced,
			shows: "a watch begins with each cluster as ADDED, and then an event synced",
		},
		{
			name: "watch/changes", run: checkChanges,
			shows: "after that it tells of clusters that are made, changed and deleted, as they are then",
		},
		{
			name: "watch/refused", run: checkWatchRefused, needs: []Role{Other},
			shows: "whoever may not watch gets a problem, not a stream",
		},
	}
}

func checkSynced(ctx context.Context, s *session) error {
	wanted := map[string]bool{}
	for range 2 {
		c, err := s.make(ctx)
		if err != nil {
			return err
		}
		wanted[c.Name] = true
	}
	w, err := s.watch(ctx)
	if err != nil {
		return err
	}
	defer w.close()
	for {
		e, err := w.next()
		switch {
		case err != nil:
			return fmt.Errorf("waiting for the event synced: %w", err)
		case e.name == "synced" && len(wanted) > 0:
			return fmt.Errorf("there was no event ADDED of %d clusters that are there before the event synced", len(wanted))
		case e.name == "synced":
			return nil
		case e.Type != "ADDED" && wanted[e.Cluster.Name]:
			return fmt.Errorf("the first event of cluster %s is %s, not ADDED", e.Cluster.Name, e.Type)
		}
		delete(wanted, e.Cluster.Name)
	}
}

func checkChanges(ctx context.Context, s *session) error {
	w, err := s.watch(ctx)
	if err != nil {
		return err
	}
	defer w.close()
	// What is there before is of no interest: a stream without an event synced is found by another check.
	c, err := s.make(ctx)
	if err != nil {
		return err
	}
	e, err := w.await("ADDED", c.Name)
	if err != nil {
		return err
	}
	if e.Cluster.UID != c.UID {
		return fmt.Errorf("the watch has cluster %s with uid %q, not %q", c.Name, e.Cluster.UID, c.UID)
	}
	if _, err := s.change(ctx, c.Name, "watched"); err != nil {
		return err
	}
	for e.Cluster.Labels["conformance"] != "watched" {
		if e, err = w.await("MODIFIED", c.Name); err != nil {
			return err
		}
	}
	if _, err := s.want(ctx, request{op: "delete-cluster", cluster: c.Name}, http.StatusAccepted); err != nil {
		return err
	}
	if _, err = w.await("DELETED", c.Name); err == nil {
		return nil
	}
	if !errors.Is(err, errWatchEnded) {
		return err
	}
	// A server may take long to delete, but what is gone was to be told.
	a, readErr := s.do(ctx, get(c.Name))
	if readErr != nil {
		return readErr
	}
	if a.status == http.StatusNotFound {
		return err
	}
	return nil
}

func checkWatchRefused(ctx context.Context, s *session) error {
	if _, err := s.want(ctx, request{op: "watch-clusters", as: Other}, http.StatusNotFound); err != nil {
		return err
	}
	_, err := s.want(ctx, request{op: "watch-clusters", tenant: s.prefix + "-none"}, http.StatusNotFound)
	return err
}
