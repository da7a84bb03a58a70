package conformance

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"strings"
	"testing"
)

// A document lacks nothing of itself, also if schemas stand where they are used; what is taken out of it is named.
func TestFindMissing(t *testing.T) {
	t.Parallel()
	root, err := decodeDocument(published)
	if err != nil {
		t.Fatal(err)
	}
	for name, x := range map[string]struct {
		old, now string
		want     string // empty: nothing is missing
	}{
		"nothing":                {"", "", ""},
		"a schema's other name":  {`#/components/schemas/Problem"`, `#/components/schemas/Refusal"`, ""},
		"one more field":         {`"nextStep": {`, `"more": {"type": "string"}, "nextStep": {`, ""},
		"one more query":         {`"parameters": [`, `"parameters": [{"in": "query", "name": "more", "schema": {"type": "string"}},`, ""},
		"one that is needed":     {`"parameters": [`, `"parameters": [{"in": "query", "name": "more", "required": true},`, "needs query more"},
		"no path":                {`"/v1/me": {`, `"/v1/self": {`, "it has no GET /v1/me"},
		"no method":              {`"delete": {`, `"options": {`, "it has no DELETE"},
		"no query":               {`"name": "pageSize"`, `"name": "size"`, "takes no query pageSize"},
		"another type":           {`"type": "boolean"`, `"type": "string"`, "is of type string, not boolean"},
		"another operationId":    {`"get-self"`, `"get-me"`, "is called get-me"},
		"another type of a body": {`"application/merge-patch+json"`, `"application/json-patch+json"`, "is not of type application/merge-patch+json"},
		"no answer":              {`"412": {`, `"499": {`, "does not say that it answers 412"},
		"no field":               {`"nextPageToken": {`, `"next": {`, "has no field nextPageToken"},
	} {
		text := string(published)
		if !strings.Contains(text, x.old) {
			t.Fatalf("%s: the document has no %q", name, x.old)
		}
		if x.old != "" {
			text = strings.ReplaceAll(text, x.old, x.now)
		}
		text = strings.Replace(text, `"ObjectMeta": {`, `"Refusal": {"$ref": "#/components/schemas/Problem"}, "ObjectMeta": {`, 1)
		served, err := decodeDocument([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		missing := strings.Join(findMissing(root, served), "\n")
		if x.want == "" && missing != "" || !strings.Contains(missing, x.want) {
			t.Errorf("%s: want %q, got %q", name, x.want, missing)
		}
	}
}

// Whatever a server serves as its document, it is compared, and nothing else is the same.
func FuzzFindMissing(f *testing.F) {
	root, err := decodeDocument(published)
	if err != nil {
		f.Fatal(err)
	}
	for _, seed := range []string{
		`{}`, `[]`, `{"paths":{"/v1/me":{"get":{"operationId":[],"parameters":[{"in":{}}],"responses":{"200":[]}}}}}`,
		`{"paths":{"/v1/me":{"get":{"operationId":{},"parameters":{},"responses":{"200":{"$ref":"#/x"}}}}},"x":{"$ref":"#/x"}}`,
		`{"paths":{"/v1/me":{"get":{"responses":{"200":{"content":{"application/json":{"schema":{"type":[["object"],{}]}}}}}}}}}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		served, err := decodeDocument(b)
		if err == nil && len(findMissing(root, served)) == 0 {
			var same map[string]any
			if json.Unmarshal(b, &same) != nil || len(object(same["paths"])) < len(object(root["paths"])) {
				t.Errorf("nothing is missing in %s", b)
			}
		}
	})
}

// Whatever comes in a watch is read to its end, with an error at last.
func FuzzWatch(f *testing.F) {
	d, err := readDocument()
	if err != nil {
		f.Fatal(err)
	}
	for _, seed := range []string{
		"event: synced\ndata: {}\n\n", "event: cluster\ndata: {\"type\":\"ADDED\",\ndata: \"cluster\":{\"spec\":{\"stack\":{\"name\":\"a\"}}}}\n\n",
		":\n\n", "event:x\n\n", "data\n\n", "event: problem\ndata: {}\n\n", "event: cluster\r\ndata: {}\r\n\r\n", "\x00", "event: synced",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		w := &stream{session: &session{document: d}, body: io.NopCloser(nil), lines: bufio.NewScanner(bytes.NewReader(b)), cancel: func() {}}
		for range len(b) + 1 {
			e, err := w.next()
			if err != nil {
				return
			}
			if e.name != "synced" && (e.name != "cluster" || e.Type == "") {
				t.Errorf("%+v", e)
			}
		}
		t.Error("it has no end")
	})
}
