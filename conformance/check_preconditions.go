package conformance

import (
	"context"
	"errors"
	"fmt"
	"net/http"
)

func preconditionChecks() []check {
	return []check{
		{
			name: "preconditions/etag", run: checkETag,
			shows: "the ETag of a cluster is the same in all answers as long as it does not change, and another after each change",
		},
		{
			name: "preconditions/not modified", run: checkNotModified,
			shows: "GET with If-None-Match is answered 304 without a body if nothing has changed, and 200 if something has",
		},
		{
			name: "preconditions/stale", run: checkStale,
			shows: "PUT, PATCH and DELETE with the ETag of an older version as If-Match are refused with 412 and change nothing",
		},
		{
			name: "preconditions/stale file", run: checkStaleFile,
			shows: "PUT of a file with an older resourceVersion is refused with 412",
		},
		{
			name: "preconditions/current", run: checkCurrent,
			shows: "with the current ETag as If-Match, a change is taken",
		},
		{
			name: "preconditions/absent", run: checkAbsent,
			shows: "PUT with If-None-Match: * makes only what is not there, and with If-Match only changes what is",
		},
	}
}

// change changes a label of a cluster, so that its version is another.
func (s *session) change(ctx context.Context, name, value string) (*answer, error) {
	return s.want(ctx, patch(name, fmt.Sprintf(`{"metadata":{"labels":{"conformance":%q}}}`, value)), http.StatusOK)
}

func checkETag(ctx context.Context, s *session) error {
	c, err := s.make(ctx)
	if err != nil {
		return err
	}
	err = s.eventually(ctx, func(ctx context.Context) error { // its status may change between both
		_, first, err := s.read(ctx, c.Name)
		if err != nil {
			return err
		}
		again, second, err := s.read(ctx, c.Name)
		switch {
		case err != nil:
			return err
		case first == "" || first != second:
			return fmt.Errorf("read twice, the cluster has the ETags %q and %q", first, second)
		case second != `"`+again.ResourceVersion+`"`:
			return fmt.Errorf("the ETag is to be the resourceVersion %q in quotes; it is %s", again.ResourceVersion, second)
		}
		return nil
	})
	if err != nil {
		return err
	}
	seen := map[string]bool{}
	for _, value := range []string{"one", "two", "three"} {
		a, err := s.change(ctx, c.Name, value)
		if err != nil {
			return err
		}
		tag := a.header.Get("ETag")
		if tag == "" || seen[tag] {
			return fmt.Errorf("the cluster was changed, and its ETag is %q as before", tag)
		}
		seen[tag] = true
	}
	return nil
}

func checkNotModified(ctx context.Context, s *session) error {
	c, err := s.make(ctx)
	if err != nil {
		return err
	}
	tag := ""
	err = s.eventually(ctx, func(ctx context.Context) error {
		if _, tag, err = s.read(ctx, c.Name); err != nil {
			return err
		}
		a, err := s.want(ctx, get(c.Name).with("If-None-Match", tag), http.StatusNotModified)
		if err == nil && len(a.body) > 0 {
			return errors.New("an answer 304 has a body")
		}
		return err
	})
	if err != nil {
		return err
	}
	if _, err := s.change(ctx, c.Name, "changed"); err != nil {
		return err
	}
	_, err = s.want(ctx, get(c.Name).with("If-None-Match", tag), http.StatusOK)
	return err
}

func checkStale(ctx context.Context, s *session) error {
	c, err := s.make(ctx)
	if err != nil {
		return err
	}
	_, old, err := s.read(ctx, c.Name)
	if err != nil {
		return err
	}
	a, err := s.change(ctx, c.Name, "changed")
	if err != nil {
		return err
	}
	if c, err = a.cluster(); err != nil {
		return err
	}
	file := s.file(c.Name)
	for _, tag := range []string{old, staleTag} {
		for _, q := range []request{
			put(c.Name, file), patch(c.Name, `{"metadata":{"labels":{"conformance":"lost"}}}`),
			{op: "delete-cluster", cluster: c.Name},
		} {
			if _, err := s.want(ctx, q.with("If-Match", tag), http.StatusPreconditionFailed); err != nil {
				return err
			}
		}
	}
	return s.wantSame(ctx, c)
}

func checkStaleFile(ctx context.Context, s *session) error {
	c, err := s.make(ctx)
	if err != nil {
		return err
	}
	old, err := s.want(ctx, get(c.Name), http.StatusOK)
	if err != nil {
		return err
	}
	if _, err := s.change(ctx, c.Name, "changed"); err != nil {
		return err
	}
	q := request{op: "put-cluster", cluster: c.Name, body: old.body, kind: typeJSON}
	_, err = s.want(ctx, q, http.StatusPreconditionFailed)
	return err
}

func checkCurrent(ctx context.Context, s *session) error {
	c, err := s.make(ctx)
	if err != nil {
		return err
	}
	try := func(code int, q request) error {
		return s.eventually(ctx, func(ctx context.Context) error { // its status may change between both
			_, tag, err := s.read(ctx, c.Name)
			if err == nil {
				_, err = s.want(ctx, q.with("If-Match", tag), code)
			}
			return err
		})
	}
	if err := try(http.StatusOK, put(c.Name, s.file(c.Name))); err != nil {
		return err
	}
	if err := try(http.StatusOK, patch(c.Name, `{"metadata":{"labels":{"conformance":"new"}}}`)); err != nil {
		return err
	}
	return try(http.StatusAccepted, request{op: "delete-cluster", cluster: c.Name})
}

func checkAbsent(ctx context.Context, s *session) error {
	name := s.newName()
	file := s.file(name)
	if _, err := s.want(ctx, put(name, file).with("If-Match", "*"), http.StatusPreconditionFailed); err != nil {
		return err
	}
	if _, err := s.want(ctx, get(name), http.StatusNotFound); err != nil {
		return err
	}
	if _, err := s.want(ctx, put(name, file).with("If-None-Match", "*"), http.StatusCreated); err != nil {
		return err
	}
	if _, err := s.want(ctx, put(name, file).with("If-None-Match", "*"), http.StatusPreconditionFailed); err != nil {
		return err
	}
	_, err := s.want(ctx, put(name, file).with("If-Match", "*"), http.StatusOK)
	return err
}
