package foreign

import (
	"encoding/json"
	"net/http"
	"strings"
)

const stackName, kubernetesMinor = "scs", "1.36"

func (s *Server) getVersion(*call) (*reply, *problem) {
	return &reply{status: http.StatusOK, body: map[string]string{"version": "1", "go": "none", "platform": "memory"}}, nil
}

func (s *Server) getDocument(*call) (*reply, *problem) {
	var d map[string]any
	if err := json.Unmarshal(s.document, &d); err != nil {
		return nil, problemf(http.StatusInternalServerError, "%v", err)
	}
	paths, _ := d["paths"].(map[string]any)
	if s.is(NoOperation) {
		delete(paths, "/v1/tenants/{tenant}/quota")
	}
	text, _ := json.Marshal(d)
	if s.is(NoProperty) {
		text = []byte(strings.ReplaceAll(string(text), `"nextStep":`, `"next":`))
	}
	return &reply{
		status: http.StatusOK, body: json.RawMessage(text), header: map[string]string{"Content-Type": "application/vnd.oai.openapi+json"},
	}, nil
}

func (s *Server) getOldDocument(c *call) (*reply, *problem) {
	a, p := s.getDocument(c)
	if p == nil {
		text, _ := a.body.(json.RawMessage)
		a.body = json.RawMessage(strings.Replace(string(text), `"openapi":"3.1.0"`, `"openapi":"3.0.3"`, 1))
	}
	return a, p
}

func (s *Server) getSelf(c *call) (*reply, *problem) {
	return &reply{status: http.StatusOK, body: map[string]any{"username": c.user.name, "groups": []string{}}}, nil
}

func (s *Server) refuseOperators(*call) (*reply, *problem) {
	return nil, problemf(http.StatusForbidden, "this is for those who run the service")
}

func named(kind, name string) map[string]any {
	return map[string]any{"kind": kind, "metadata": map[string]any{"name": name}}
}

func (s *Server) listProviders(*call) (*reply, *problem) {
	return items([]any{named("Provider", "memory")}), nil
}

func (s *Server) listStacks(c *call) (*reply, *problem) {
	if c.query.Get("tenant") != "" {
		return items([]any{}), nil
	}
	stack := named("ClusterStack", "memory-scs")
	stack["spec"] = map[string]any{"name": stackName, "provider": "memory", "kubernetesVersion": kubernetesMinor}
	return items([]any{stack}), nil
}

func (s *Server) getStackSchema(c *call) (*reply, *problem) {
	if c.vars["stack"] != stackName {
		return nil, notFound("there is no stack %s", c.vars["stack"])
	}
	return items([]any{map[string]any{
		"provider": "memory", "stack": stackName, "release": "memory-scs-1-36-v1", "kubernetes": "v1.36.0", "parameters": []any{},
	}}), nil
}
