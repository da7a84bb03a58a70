package main

import (
	"os"
	"strings"
	"testing"
)

// Every kind of thing that could be taken away from the published document is found; what is added is not.
func TestCompare(t *testing.T) {
	b, err := os.ReadFile("../../docs/reference/openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	published := string(b)
	replace := func(old, now string) string {
		if !strings.Contains(published, old) {
			t.Errorf("the published document has no %q", old)
		}
		return strings.Replace(published, old, now, 1)
	}
	for name, x := range map[string]struct{ document, want string }{
		"nothing":                {published, ""},
		"a new path":             {replace(`"/v1/me": {`, `"/v1/new": {"get": {"operationId": "x"}}, "/v1/me": {`), ""},
		"a new field":            {replace(`"endpoint": {`, `"new": {"type": "string"}, "endpoint": {`), ""},
		"a new header":           {replace(`"parameters": [`, `"parameters": [{"in": "header", "name": "X-New", "schema": {"type": "string"}},`), ""},
		"a larger limit":         {replace(`"maximum": 500`, `"maximum": 5000`), ""},
		"a path is gone":         {replace(`"/v1/me": {`, `"/v1/self": {`), "get /v1/me is gone"},
		"a method is gone":       {replace(`"delete": {`, `"options": {`), "is gone"},
		"another operationId":    {replace(`"get-self"`, `"get-me"`), "another operationId"},
		"a query is gone":        {replace(`"name": "pageSize"`, `"name": "size"`), "does not take query pageSize"},
		"a header is needed":     {replace(`"name": "If-Match",`, `"name": "If-Match", "required": true,`), "needs header If-Match now"},
		"a new one is needed":    {replace(`"parameters": [`, `"parameters": [{"in": "header", "name": "X-New", "required": true},`), "needs header X-New"},
		"a narrower limit":       {replace(`"maximum": 500`, `"maximum": 50`), "narrower maximum"},
		"another type":           {replace(`"type": "boolean"`, `"type": "string"`), "another type"},
		"a field is gone":        {replace(`"clientID": {`, `"client": {`), "clientID is gone"},
		"a value is gone":        {replace(`"Deleting"`, `"Leaving"`), "may not be Deleting"},
		"a field may be missing": {replace("\"required\": [\n          \"username\",", "\"required\": ["), "username may be missing"},
		"a body of a type":       {replace(`"application/yaml"`, `"text/yaml"`), "is not of type application/yaml"},
		"an answer":              {replace(`"201": {`, `"200": {`), "does not answer 201"},
	} {
		taken, err := compare(b, []byte(x.document))
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		got := strings.Join(taken, "\n")
		if x.want == "" && got != "" || !strings.Contains(got, x.want) {
			t.Errorf("%s: want %q, got %q", name, x.want, got)
		}
	}
}
