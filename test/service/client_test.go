package service

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/polder-kaas/polder/api/v1alpha1"
	"github.com/polder-kaas/polder/client"
	"github.com/polder-kaas/polder/test/testenv"
)

// TestGoClient makes, reads, changes and deletes a cluster with the generated client, by its type and by its file.
func TestGoClient(t *testing.T) {
	t.Parallel()
	p := shared.Get(t)
	awaitStacks(t, p.Client(t))
	restTenant(t, p, "go-client")
	as := restAs(t, p, "go-client-editor")
	c, err := client.New(as.url, func(context.Context) (string, error) { return as.token, nil }, client.WithHTTPClient(as.http))
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	made, err := c.CreateClusterWithResponse(ctx, "go-client", &client.CreateClusterParams{IdempotencyKey: "a"}, *newCluster("", "typed", "SCS-2V-4", 1))
	if err != nil || made.JSON201 == nil || made.JSON201.UID == "" || made.JSON201.Spec.Workers[0].Name != "a" {
		t.Fatalf("%v %s", err, made.Body)
	}
	file, err := c.CreateClusterWithBodyWithResponse(ctx, "go-client", &client.CreateClusterParams{}, yamlType, strings.NewReader(clusterFile("file")))
	if err != nil || file.JSON201 == nil {
		t.Fatalf("%v %s", err, file.Body)
	}
	l, err := c.ListClustersWithResponse(ctx, "go-client", &client.ListClustersParams{PageSize: 10})
	if err != nil || l.JSON200 == nil || len(l.JSON200.Items) != 2 {
		t.Fatalf("%v %s", err, l.Body)
	}
	testenv.Eventually(t, wait, func() error { // what was read is written back with a change
		got, err := c.GetClusterWithResponse(ctx, "go-client", "typed", &client.GetClusterParams{})
		if err != nil || got.JSON200 == nil {
			return fmt.Errorf("%w %s", err, got.Body)
		}
		o := *got.JSON200
		o.Labels = map[string]string{"a": "b"}
		put, err := c.PutClusterWithResponse(ctx, "go-client", "typed", &client.PutClusterParams{IfMatch: got.HTTPResponse.Header.Get("ETag")}, o)
		if err != nil || put.JSON200 == nil || put.JSON200.Labels["a"] != "b" || put.JSON200.Generation != o.Generation {
			return fmt.Errorf("%w %s", err, put.Body)
		}
		return nil
	})
	bad := newCluster("", "bad", "SCS-2V-4", 1)
	bad.Spec.Stack = v1alpha1.StackReference{Name: "none"}
	refused, err := c.CreateClusterWithResponse(ctx, "go-client", &client.CreateClusterParams{}, *bad)
	if err != nil {
		t.Fatal(err)
	}
	var problem *client.Problem
	if err := client.ReadProblem(refused.HTTPResponse, refused.Body); !errors.As(err, &problem) || problem.Status != http.StatusUnprocessableEntity || len(problem.Errors) == 0 ||
		problem.Errors[0].Location != "spec.stack.name" {
		t.Errorf("%v: %s", err, refused.Body)
	}
	for _, name := range []string{"typed", "file"} {
		if d, err := c.DeleteClusterWithResponse(ctx, "go-client", name, &client.DeleteClusterParams{}); err != nil || d.StatusCode() != http.StatusAccepted {
			t.Errorf("%v %s", err, d.Body)
		}
	}
}
