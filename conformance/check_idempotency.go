package conformance

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

const idempotencyKey = "Idempotency-Key"

func idempotencyChecks() []check {
	return []check{
		{
			name: "idempotency/repeated", run: checkRepeated,
			shows: "a POST that is repeated with its Idempotency-Key is answered 201 with the cluster that it made, also after a change of it",
		},
		{
			name: "idempotency/at once", run: checkAtOnce,
			shows: "the same POST several times at once makes one cluster, and each is answered with it",
		},
		{
			name: "idempotency/other body", run: checkOtherBody,
			shows: "the same key with another body is refused with 422",
		},
		{
			name: "idempotency/other key", run: checkOtherKey,
			shows: "the same body with another key is refused with 409, since the cluster is there",
		},
		{
			name: "idempotency/key hidden", run: checkKeyHidden,
			shows: "no answer has the key in it: what is kept of it is a hash",
		},
	}
}

// keyed is a POST with a key of this run.
func (s *session) keyed(file map[string]any, key string) request {
	return post(file).with(idempotencyKey, s.prefix+key)
}

func checkRepeated(ctx context.Context, s *session) error {
	file := s.file(s.newName())
	a, err := s.want(ctx, s.keyed(file, "-repeated"), http.StatusCreated)
	if err != nil {
		return err
	}
	first, err := a.cluster()
	if err != nil {
		return err
	}
	for _, changed := range []bool{false, true} {
		if changed {
			if _, err := s.change(ctx, first.Name, "changed"); err != nil {
				return err
			}
		}
		a, err := s.want(ctx, s.keyed(file, "-repeated"), http.StatusCreated)
		if err != nil {
			return err
		}
		again, err := a.cluster()
		if err != nil {
			return err
		}
		if again.UID != first.UID || again.UID == "" {
			return fmt.Errorf("the POST was repeated with its key, and has made another cluster: uid %q, not %q", again.UID, first.UID)
		}
	}
	return nil
}

func checkAtOnce(ctx context.Context, s *session) error {
	const many = 5
	file := s.file(s.newName())
	var group sync.WaitGroup
	answers, errs := make([]*answer, many), make([]error, many)
	q := s.keyed(file, "-at-once")
	for i := range many {
		group.Go(func() {
			answers[i], errs[i] = s.send(ctx, func(ctx context.Context) (*http.Request, error) { return s.newRequest(ctx, q) })
		})
	}
	group.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	seen := map[types.UID]bool{}
	for _, a := range answers {
		s.judge(q.op, a)
		if a.status != http.StatusCreated {
			return fmt.Errorf("one of %d equal requests with the same key is to be answered 201; it was %s", many, a.words())
		}
		c, err := a.cluster()
		if err != nil {
			return err
		}
		seen[c.UID] = true
	}
	if len(seen) != 1 {
		return fmt.Errorf("%d equal requests with the same key have made %d clusters", many, len(seen))
	}
	return nil
}

func checkOtherBody(ctx context.Context, s *session) error {
	name := s.newName()
	if _, err := s.want(ctx, s.keyed(s.file(name), "-body"), http.StatusCreated); err != nil {
		return err
	}
	other := s.file(name, func(_, metadata map[string]any) { metadata["labels"] = map[string]any{"conformance": "other"} })
	_, err := s.want(ctx, s.keyed(other, "-body"), http.StatusUnprocessableEntity)
	return err
}

func checkOtherKey(ctx context.Context, s *session) error {
	file := s.file(s.newName())
	if _, err := s.want(ctx, s.keyed(file, "-first"), http.StatusCreated); err != nil {
		return err
	}
	a, err := s.want(ctx, s.keyed(file, "-second"), http.StatusConflict)
	if err != nil {
		return err
	}
	return a.wantReason("AlreadyExists")
}

func checkKeyHidden(ctx context.Context, s *session) error {
	name := s.newName()
	made, err := s.want(ctx, s.keyed(s.file(name), "-hidden-key"), http.StatusCreated)
	if err != nil {
		return err
	}
	read, err := s.want(ctx, get(name), http.StatusOK)
	if err != nil {
		return err
	}
	for _, a := range []*answer{made, read} {
		if strings.Contains(string(a.body), "-hidden-key") {
			return fmt.Errorf("the answer to %s has the Idempotency-Key in it", a.what)
		}
	}
	return nil
}
