package conformance

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
)

func problemChecks() []check {
	return []check{
		{
			name: "problems/field", run: checkFieldProblems,
			shows: "what is wrong with a field is refused with 422 and its location, such as spec.stack.name",
		},
		{
			name: "problems/unknown field", run: checkUnknownField,
			shows: "a field that is not known is refused by POST and PUT, and named",
		},
		{
			name: "problems/unknown query", run: checkUnknownQuery,
			shows: "a query that is not known is refused with 422, and named",
		},
		{
			name: "problems/path", run: checkPaths,
			shows: "a path that is not there is a problem 404; a method that a path does not take is a problem 405 with Allow",
		},
	}
}

func bodyChecks() []check {
	return []check{
		{
			name: "bodies/media type", run: checkMediaTypes,
			shows: "a body of another type than YAML or JSON is refused with 415",
		},
		{
			name: "bodies/one object", run: checkBodies,
			shows: "a body that is empty, no object, two objects, or has something twice is refused with 400",
		},
		{
			name: "bodies/size", run: checkBodySize,
			shows: "a body of more than 1 MiB is refused with 413",
		},
	}
}

// wrongStack names a stack that there is not.
func wrongStack(spec, _ map[string]any) {
	spec["stack"] = map[string]any{"name": "no-such-stack"}
}

func checkFieldProblems(ctx context.Context, s *session) error {
	for field, edit := range map[string]editFile{
		"spec.stack.name": wrongStack,
		"spec.workers[0].replicas": func(spec, _ map[string]any) {
			spec["workers"] = []any{map[string]any{"name": "w", "replicas": -1}}
		},
		"spec.controlPlane.replicas": func(spec, _ map[string]any) { spec["controlPlane"] = map[string]any{"replicas": 2} },
	} {
		name := s.newName()
		for _, q := range []request{post(s.file(name, edit)), put(name, s.file(name, edit))} {
			a, err := s.want(ctx, q, http.StatusUnprocessableEntity)
			if err != nil {
				return fmt.Errorf("with a wrong %s: %w", field, err)
			}
			if err := a.wantLocation(field); err != nil {
				return err
			}
		}
		if _, err := s.want(ctx, get(name), http.StatusNotFound); err != nil {
			return err
		}
	}
	return nil
}

func checkUnknownField(ctx context.Context, s *session) error {
	for _, name := range []string{"noSuchField", "noSuchObject"} {
		cluster := s.newName()
		file := s.file(cluster, func(spec, _ map[string]any) {
			if name == "noSuchObject" {
				spec["network"] = map[string]any{name: map[string]any{}}
				return
			}
			spec[name] = true
		})
		for _, q := range []request{post(file), put(cluster, file)} {
			a, err := s.want(ctx, q, http.StatusBadRequest, http.StatusUnprocessableEntity)
			if err != nil {
				return err
			}
			if err := a.wantWords(name); err != nil {
				return err
			}
		}
	}
	return nil
}

func checkUnknownQuery(ctx context.Context, s *session) error {
	for _, op := range []string{"list-clusters", "get-tenant", "list-stacks", "get-self"} {
		a, err := s.want(ctx, request{op: op}.ask("noSuchQuery", "1"), http.StatusUnprocessableEntity, http.StatusBadRequest)
		if err != nil {
			return err
		}
		if err := a.wantWords("noSuchQuery"); err != nil {
			return err
		}
	}
	return nil
}

// ask makes a request of a path that is not published. Its answer, which is to be a problem, is judged here.
func (s *session) ask(ctx context.Context, method, path string, code int) (*answer, error) {
	a, err := s.send(ctx, func(ctx context.Context) (*http.Request, error) {
		return s.rawRequest(ctx, method, path, request{})
	})
	if err != nil {
		return nil, err
	}
	if a.status != code {
		return nil, fmt.Errorf("%s %s is to be answered %d; it was %s", method, path, code, a.words())
	}
	if err := s.judgeAnswer(operation{}, a); err != nil {
		return nil, fmt.Errorf("the answer %d to %s %s: %w", code, method, path, err)
	}
	return a, nil
}

func checkPaths(ctx context.Context, s *session) error {
	for _, path := range []string{"/no-such-path", "/me/", "/tenants/" + s.cfg.Tenant + "/clusters/a/no-such-part"} {
		if _, err := s.ask(ctx, http.MethodGet, path, http.StatusNotFound); err != nil {
			return err
		}
	}
	a, err := s.ask(ctx, http.MethodDelete, "/me", http.StatusMethodNotAllowed)
	if err != nil {
		return err
	}
	if a.header.Get("Allow") == "" {
		return errors.New("an answer 405 is to say in Allow which methods the path takes")
	}
	return nil
}

func checkMediaTypes(ctx context.Context, s *session) error {
	c, err := s.make(ctx)
	if err != nil {
		return err
	}
	file := asJSON(s.file(s.newName()))
	for _, q := range []request{
		{op: "create-cluster", body: file}, {op: "put-cluster", cluster: c.Name, body: file},
		{op: "patch-cluster", cluster: c.Name, body: []byte(`{}`)},
	} {
		for _, kind := range []string{"text/xml", "application/x-www-form-urlencoded"} {
			q.kind = kind
			if _, err := s.want(ctx, q, http.StatusUnsupportedMediaType); err != nil {
				return fmt.Errorf("a body of type %s: %w", kind, err)
			}
		}
	}
	return nil
}

func checkBodies(ctx context.Context, s *session) error {
	file := asJSON(s.file(s.newName()))
	for what, q := range map[string]request{
		"a body of comments":         {body: []byte("# nothing\n"), kind: typeYAML},
		"a list":                     {body: []byte("[]"), kind: typeJSON},
		"a text":                     {body: []byte("a text"), kind: typeYAML},
		"JSON that breaks off":       {body: []byte(`{"spec":`), kind: typeJSON},
		"YAML that breaks off":       {body: []byte("spec: ["), kind: typeYAML},
		"a field twice in JSON":      {body: []byte(`{"spec":{},"spec":{}}`), kind: typeJSON},
		"a field twice in YAML":      {body: []byte("spec: {}\nspec: {}\n"), kind: typeYAML},
		"two objects in one YAML":    {body: bytes.Join([][]byte{file, file}, []byte("\n---\n")), kind: typeYAML},
		"two objects in one JSON":    {body: bytes.Join([][]byte{file, file}, []byte("\n")), kind: typeJSON},
		"JSON with something behind": {body: append(bytes.Clone(file), "x"...), kind: typeJSON},
	} {
		q.op = "create-cluster"
		if _, err := s.want(ctx, q, http.StatusBadRequest); err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
	}
	return nil
}

func checkBodySize(ctx context.Context, s *session) error {
	const most = 1 << 20
	comment := bytes.Repeat([]byte("#"), most+1)
	_, err := s.want(ctx, request{op: "create-cluster", body: comment, kind: typeYAML}, http.StatusRequestEntityTooLarge)
	return err
}
