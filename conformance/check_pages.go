package conformance

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"

	"github.com/polder-kaas/polder/api/v1alpha1"
)

func pageChecks() []check {
	return []check{
		{
			name: "pages/walked", run: checkPages,
			shows: "a list has at most pageSize items; with nextPageToken as pageToken every item is there once, and the last page has no token",
		},
		{
			name: "pages/limits", run: checkPageLimits,
			shows: "pageSize is from 1 to 500, and a pageToken that the server gave to nobody is refused",
		},
	}
}

// page is one of clusters.
type page struct {
	Items         []v1alpha1.WorkloadCluster
	NextPageToken string
}

func (s *session) readPage(ctx context.Context, size int, token string) (page, error) {
	q := request{op: "list-clusters"}.ask("pageSize", strconv.Itoa(size))
	if token != "" {
		q = q.ask("pageToken", token)
	}
	var p page
	a, err := s.want(ctx, q, http.StatusOK)
	if err != nil {
		return p, err
	}
	if err := a.read(&p); err != nil {
		return p, err
	}
	if len(p.Items) > size {
		return p, fmt.Errorf("%s has %d items", a.what, len(p.Items))
	}
	return p, nil
}

// checkPages looks for its own clusters: others may come and go meanwhile.
func checkPages(ctx context.Context, s *session) error {
	own := map[string]int{}
	for range 3 {
		c, err := s.make(ctx)
		if err != nil {
			return err
		}
		own[c.Name] = 0
	}
	const most = 10000
	tokens, token := []string{}, ""
	for range most {
		p, err := s.readPage(ctx, 2, token)
		if err != nil {
			return err
		}
		for _, c := range p.Items {
			if _, ok := own[c.Name]; ok {
				own[c.Name]++
			}
		}
		if token = p.NextPageToken; token == "" {
			break
		}
		if slices.Contains(tokens, token) {
			return fmt.Errorf("the nextPageToken %q comes twice: the list has no end", token)
		}
		tokens = append(tokens, token)
	}
	for name, n := range own {
		if n != 1 {
			return fmt.Errorf("in the pages of the list, cluster %s is there %d times", name, n)
		}
	}
	if len(tokens) == 0 {
		return fmt.Errorf("a list of at least %d clusters has one page of two", len(own))
	}
	return nil
}

func checkPageLimits(ctx context.Context, s *session) error {
	for _, op := range []string{"list-clusters", "list-tenants", "list-stacks", "list-providers"} {
		for _, size := range []string{"0", "-1", "501", "many"} {
			q := request{op: op}.ask("pageSize", size)
			if _, err := s.want(ctx, q, http.StatusUnprocessableEntity, http.StatusBadRequest); err != nil {
				return err
			}
		}
	}
	q := request{op: "list-clusters"}.ask("pageToken", "forged")
	_, err := s.want(ctx, q, http.StatusBadRequest, http.StatusUnprocessableEntity, http.StatusGone)
	return err
}
