package cluster

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/polder-kaas/polder/internal/cli/clitest"
	"github.com/polder-kaas/polder/internal/cli/connect"
	"github.com/polder-kaas/polder/internal/cli/output"
	"github.com/polder-kaas/polder/internal/program/exit"
)

const (
	clusterPath  = "/apis/polder.dev/v1alpha1/namespaces/default/workloadclusters"
	providerPath = "/apis/polder.dev/v1alpha1/providers"
	stackPath    = "/apis/clusterstack.x-k8s.io/v1alpha1/namespaces/default/clusterstacks"
)

// fakePlane keeps objects by their paths, and knows just enough of an API server for these commands. What a real one
// does with apply and conflicts is not tested here.
type fakePlane struct {
	clitest.Polder
	mu       sync.Mutex
	objects  map[string]map[string]any
	requests []string                                  // method, path and query
	bodies   map[string]map[string]any                 // of the last request of a method
	refuse   map[string]metav1.Status                  // by method and path
	pages    map[string]bool                           // by method and path: a page answers in its place
	events   map[string][]map[string]any               // what a watch of a path says before it ends
	after    func(method, at string, o map[string]any) // with the lock held
}

func newRoot() *cobra.Command {
	root, g := connect.NewRoot(connect.PolderName)
	root.AddCommand(NewCommands(g)...)
	return root
}

func newFakePlane(t *testing.T, objects ...any) *fakePlane {
	t.Helper()
	f := &fakePlane{
		Polder: clitest.New(t, newRoot), objects: map[string]map[string]any{}, bodies: map[string]map[string]any{}, refuse: map[string]metav1.Status{},
		pages: map[string]bool{}, events: map[string][]map[string]any{},
	}
	for _, o := range objects {
		f.add(o)
	}
	s := httptest.NewServer(f)
	t.Cleanup(s.Close)
	f.WriteKubeconfig(s.URL, "")
	return f
}

// add puts in an object, of a Go type or as YAML.
func (f *fakePlane) add(o any) {
	f.Helper()
	b, isText := []byte(nil), false
	if s, ok := o.(string); ok {
		b, isText = []byte(s), true
	}
	if !isText {
		var err error
		if b, err = json.Marshal(o); err != nil {
			f.Fatal(err)
		}
	}
	u := f.parse(string(b))
	m := metaOf(u)
	at := "/apis/" + u["apiVersion"].(string)
	if u["apiVersion"] == "v1" {
		at = "/api/v1"
	}
	if u["kind"] != "Provider" {
		if m["namespace"] == nil {
			m["namespace"] = "default"
		}
		at += "/namespaces/" + m["namespace"].(string)
	}
	f.objects[at+"/"+strings.ToLower(u["kind"].(string))+"s/"+m["name"].(string)] = u
}

func (f *fakePlane) parse(text string) (u map[string]any) {
	f.Helper()
	if err := yaml.Unmarshal([]byte(text), &u); err != nil {
		f.Fatal(err)
	}
	return u
}

func metaOf(u map[string]any) map[string]any {
	if u["metadata"] == nil {
		u["metadata"] = map[string]any{}
	}
	return u["metadata"].(map[string]any)
}

// ServeHTTP is the API.
func (f *fakePlane) ServeHTTP(a http.ResponseWriter, q *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.requests = append(f.requests, strings.TrimSuffix(q.Method+" "+q.URL.Path+"?"+q.URL.RawQuery, "?"))
	raw, _ := io.ReadAll(q.Body)
	var body map[string]any
	_ = yaml.Unmarshal(raw, &body)
	f.bodies[q.Method] = body
	if f.pages[q.Method+" "+q.URL.Path] {
		http.NotFound(a, q)
		return
	}
	if s, refused := f.refuse[q.Method+" "+q.URL.Path]; refused {
		answer(a, int(s.Code), s)
		return
	}
	code, o := f.act(q, body)
	if f.after != nil {
		f.after(q.Method, q.URL.Path, o)
	}
	answer(a, code, o)
}

func answer(a http.ResponseWriter, code int, o any) {
	a.Header().Set("Content-Type", "application/json")
	a.WriteHeader(code)
	_ = json.NewEncoder(a).Encode(o)
}

func (f *fakePlane) act(q *http.Request, body map[string]any) (int, map[string]any) {
	at := q.URL.Path
	if next := q.URL.Query().Get("continue"); next != "" {
		at += "?continue=" + next
	}
	_, named := f.objects[at]
	isList := slices.Contains([]string{"workloadclusters", "kubeconfigrequests", "providers", "clusterstacks", "machines"}, path.Base(at))
	switch {
	case q.Method == http.MethodGet && isList && q.URL.Query().Get("watch") != "":
		return f.nextEvent(at)
	case q.Method == http.MethodGet && isList:
		return f.list(at, strings.TrimPrefix(q.URL.Query().Get("fieldSelector"), "metadata.name="))
	case q.Method == http.MethodPost:
		return f.create(at, body)
	case q.Method == http.MethodPatch && !named && strings.Contains(q.Header.Get("Content-Type"), "apply"):
		at = path.Dir(at)
		return f.create(at, body)
	case !named:
		o := failure(http.StatusNotFound, metav1.StatusReasonNotFound, path.Base(at), "not found")
		o["details"].(map[string]any)["kind"] = path.Base(path.Dir(at))
		return http.StatusNotFound, o
	case q.Method == http.MethodPatch && body == nil: // a list of changes; nobody here needs what it says
		metaOf(f.objects[at])["resourceVersion"] = "adopted"
		return http.StatusOK, f.objects[at]
	case q.Method == http.MethodPatch:
		return f.patch(at, body)
	case q.Method == http.MethodDelete:
		o := f.objects[at]
		delete(f.objects, at)
		return http.StatusOK, o
	}
	return http.StatusOK, f.objects[at]
}

// nextEvent is one, and then the watch ends.
func (f *fakePlane) nextEvent(at string) (int, map[string]any) {
	if len(f.events[at]) == 0 {
		return http.StatusGone, failure(http.StatusGone, metav1.StatusReasonExpired, "", "too old")
	}
	e := f.events[at][0]
	f.events[at] = f.events[at][1:]
	return http.StatusOK, e
}

func (f *fakePlane) list(at, name string) (int, map[string]any) {
	resource := path.Base(at)
	items := []any{}
	for _, p := range sortedKeys(f.objects) {
		in := path.Dir(p) == at || !strings.Contains(at, "/namespaces/") && path.Base(path.Dir(p)) == resource
		if in && (name == "" || path.Base(p) == name) {
			items = append(items, f.objects[p])
		}
	}
	return http.StatusOK, map[string]any{"apiVersion": "v1", "kind": "List", "metadata": map[string]any{"resourceVersion": "100"}, "items": items}
}

func sortedKeys[V any](m map[string]V) []string {
	var keys []string
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

func (f *fakePlane) create(at string, body map[string]any) (int, map[string]any) {
	m := metaOf(body)
	if m["name"] == nil {
		m["name"] = m["generateName"].(string) + "abc"
	}
	at += "/" + m["name"].(string)
	if f.objects[at] != nil {
		return http.StatusConflict, failure(http.StatusConflict, metav1.StatusReasonAlreadyExists, m["name"].(string), "already exists")
	}
	m["uid"], m["generation"], m["resourceVersion"] = "made", 1, "1"
	f.objects[at] = body
	return http.StatusCreated, body
}

// patch merges, and raises generation and version if anything is new.
func (f *fakePlane) patch(at string, body map[string]any) (int, map[string]any) {
	o := f.objects[at]
	if want := metaOf(body)["resourceVersion"]; want != nil && want != metaOf(o)["resourceVersion"] {
		return http.StatusConflict, failure(http.StatusConflict, metav1.StatusReasonConflict, path.Base(at), "changed")
	}
	before := fmt.Sprint(o["spec"])
	merge(o, map[string]any{"spec": body["spec"]})
	if fmt.Sprint(o["spec"]) != before {
		metaOf(o)["resourceVersion"], metaOf(o)["generation"] = "changed", 2
	}
	return http.StatusOK, o
}

func merge(into, from map[string]any) {
	for k, v := range from {
		below, isMap := v.(map[string]any)
		at, wasMap := into[k].(map[string]any)
		switch {
		case isMap && wasMap:
			merge(at, below)
		case v == nil:
			delete(into, k)
		default:
			into[k] = v
		}
	}
}

func failure(code int32, reason metav1.StatusReason, name, message string, causes ...metav1.StatusCause) map[string]any {
	b, _ := json.Marshal(refusal(code, reason, name, message, causes...))
	var o map[string]any
	_ = json.Unmarshal(b, &o)
	return o
}

func refusal(code int32, reason metav1.StatusReason, name, message string, causes ...metav1.StatusCause) metav1.Status {
	s := metav1.Status{Status: metav1.StatusFailure, Code: code, Reason: reason, Message: message, Details: &metav1.StatusDetails{Name: name, Causes: causes}}
	s.APIVersion, s.Kind = "v1", "Status"
	return s
}

// runWithInput runs a command that has an input.
func (f *fakePlane) runWithInput(input string, args ...string) (stdout, stderr string, code int) {
	f.Helper()
	var out, errs bytes.Buffer
	c := f.Command()
	c.SetArgs(append([]string{"--data-dir", f.Dir}, args...))
	c.SetIn(strings.NewReader(input))
	c.SetOut(&out)
	c.SetErr(&errs)
	err := c.ExecuteContext(f.Context())
	return out.String(), strings.ReplaceAll(errs.String()+output.Message(err), " --data-dir "+f.Dir, ""), exit.Code(err)
}

// expectOutput compares everything a command says, without the flag for the directory in hints.
func (f *fakePlane) expectOutput(code int, stdout, stderr string, args ...string) {
	f.Helper()
	out, errs, got := f.runWithInput("", args...)
	out = strings.ReplaceAll(out, " --data-dir "+f.Dir, "")
	if got != code || out != stdout || errs != stderr {
		f.Errorf("polder %s ends with %d, want %d\nstdout (-want +got):\n%s\nstderr (-want +got):\n%s", strings.Join(args, " "), got, code, cmp.Diff(stdout, out),
			cmp.Diff(stderr, errs))
	}
}
