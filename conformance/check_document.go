package conformance

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
)

func documentChecks() []check {
	return []check{
		{
			name: "document/complete", run: checkDocument,
			shows: "openapi.json has every operation, parameter, answer and field of the published document, and asks for no more",
		},
		{
			name: "document/3.0", run: checkOldDocument,
			shows: "openapi-3.0.json is the same API as OpenAPI 3.0",
		},
		{
			name: "document/version", run: checkVersion,
			shows: "GET /version answers without a token",
		},
	}
}

// answerChecks come last: they are about the answers to all other checks.
func answerChecks() []check {
	return []check{{
		name: "document/answers", run: func(_ context.Context, s *session) error { return s.finding() },
		shows: "every answer has a status, a type and a body as the published document says, and every refusal is a problem (RFC 9457)",
	}}
}

// readServed reads a document that the server serves to everybody.
func (s *session) readServed(ctx context.Context, path string) (map[string]any, error) {
	a, err := s.send(ctx, func(ctx context.Context) (*http.Request, error) {
		return s.rawRequest(ctx, http.MethodGet, path, request{as: Nobody})
	})
	if err != nil {
		return nil, err
	}
	if a.status != http.StatusOK {
		return nil, fmt.Errorf("GET %s is to be answered 200 without a token; it was %s", path, a.words())
	}
	d, err := decodeDocument(a.body)
	if err != nil {
		return nil, fmt.Errorf("%s cannot be read: %w", path, err)
	}
	return d, nil
}

func checkDocument(ctx context.Context, s *session) error {
	d, err := s.readServed(ctx, "/openapi.json")
	if err != nil {
		return err
	}
	if v := fmt.Sprint(d["openapi"]); !strings.HasPrefix(v, "3.1") {
		return fmt.Errorf("/openapi.json is to be of OpenAPI 3.1; it says %q", v)
	}
	const most = 5
	if missing := findMissing(s.document.root, d); len(missing) > 0 {
		return fmt.Errorf("the document is not what is published in %d places: %s", len(missing),
			strings.Join(missing[:min(most, len(missing))], "; "))
	}
	return nil
}

func checkOldDocument(ctx context.Context, s *session) error {
	d, err := s.readServed(ctx, "/openapi-3.0.json")
	if err != nil {
		return err
	}
	if v := fmt.Sprint(d["openapi"]); !strings.HasPrefix(v, "3.0") {
		return fmt.Errorf("/openapi-3.0.json is to be of OpenAPI 3.0; it says %q", v)
	}
	for _, o := range s.document.operations {
		if object(object(d["paths"])[o.path])[strings.ToLower(o.method)] == nil {
			return fmt.Errorf("/openapi-3.0.json has no %s %s", o.method, o.path)
		}
	}
	return nil
}

func checkVersion(ctx context.Context, s *session) error {
	a, err := s.want(ctx, request{op: "get-version", as: Nobody}, http.StatusOK)
	if err != nil {
		return err
	}
	var v struct{ Version string }
	if err := a.read(&v); err != nil {
		return err
	}
	if v.Version == "" {
		return errors.New("GET /version says no version")
	}
	return nil
}
