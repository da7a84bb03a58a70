package world

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/version"
)

// request is a request for one resource.
type request struct {
	*http.Request
	kind
	id
	labels labels.Selector
	fields fields.Selector
}

// ServeHTTP serves the API of one cluster.
func (s *store) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	switch {
	case path[0] == "version":
		writeJSON(w, http.StatusOK, version.Info{Major: "1", Minor: "36", GitVersion: "v1.36.0+instant"})
	case path[0] == "" || path[0] == "healthz" || path[0] == "livez" || path[0] == "readyz":
		writeJSON(w, http.StatusOK, metav1.RootPaths{Paths: []string{"/api", "/apis", "/version"}})
	case path[0] != "api" && path[0] != "apis":
		writeStatus(w, http.StatusNotFound, metav1.StatusReasonNotFound, "there is nothing at this path")
	case len(path) <= 2 || path[0] == "apis" && len(path) == 3:
		serveDiscovery(w, path)
	default:
		q, err := parseRequest(r, path)
		if err != nil {
			writeStatus(w, http.StatusNotFound, metav1.StatusReasonNotFound, err.Error())
			return
		}
		s.serveResource(w, q)
	}
}

// parseRequest reads the path of a resource and its selectors.
func parseRequest(r *http.Request, path []string) (q request, err error) {
	q.Request = r
	group, rest := "", path[1:]
	if path[0] == "apis" {
		group, rest = path[1], path[2:]
	}
	v, rest := rest[0], rest[1:]
	if len(rest) > 2 && rest[0] == "namespaces" {
		q.namespace, rest = rest[1], rest[2:]
	}
	k, ok := findKind(group, v, rest[0])
	if !ok || len(rest) > 3 || len(rest) == 3 && rest[2] != "status" {
		return q, fmt.Errorf("instant clusters have no %s", r.URL.Path)
	}
	q.kind, q.id.resource = k, k.resource
	if len(rest) > 1 {
		q.name = rest[1]
	}
	if q.labels, err = labels.Parse(r.URL.Query().Get("labelSelector")); err != nil {
		return q, err
	}
	q.fields, err = fields.ParseSelector(r.URL.Query().Get("fieldSelector"))
	return q, err
}

func (s *store) serveResource(w http.ResponseWriter, q request) {
	watch, _ := strconv.ParseBool(q.URL.Query().Get("watch"))
	switch {
	case q.Method == http.MethodGet && watch:
		s.serveWatch(w, q)
	case q.Method == http.MethodGet && q.name == "":
		s.serveList(w, q)
	case q.Method == http.MethodGet:
		if b := s.get(q.id); b != nil {
			writeBody(w, http.StatusOK, b)
			return
		}
		writeError(w, q, errNotFound)
	default:
		b, code, err := s.write(q)
		if err != nil {
			writeError(w, q, err)
			return
		}
		writeBody(w, code, b)
	}
}

// writeError answers with the status of an error.
func writeError(w http.ResponseWriter, q request, err error) {
	text := fmt.Sprintf("%s %q: %v", q.id.resource, q.name, err)
	switch {
	case errors.Is(err, errNotFound):
		writeStatus(w, http.StatusNotFound, metav1.StatusReasonNotFound, text)
	case errors.Is(err, errAlreadyExists):
		writeStatus(w, http.StatusConflict, metav1.StatusReasonAlreadyExists, text)
	case errors.Is(err, errConflict):
		writeStatus(w, http.StatusConflict, metav1.StatusReasonConflict, text)
	case errors.Is(err, errUnsupportedMediaType):
		writeStatus(w, http.StatusUnsupportedMediaType, metav1.StatusReasonUnsupportedMediaType, text)
	default:
		writeStatus(w, http.StatusBadRequest, metav1.StatusReasonBadRequest, text)
	}
}

func writeStatus(w http.ResponseWriter, code int32, reason metav1.StatusReason, text string) {
	writeJSON(w, int(code), metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure, Code: code, Reason: reason, Message: text,
	})
}

func writeJSON(w http.ResponseWriter, code int, v any) {
	b, err := json.Marshal(v)
	if err != nil {
		w.WriteHeader(http.StatusInternalServerError)
		return
	}
	writeBody(w, code, b)
}

func writeBody(w http.ResponseWriter, code int, b []byte) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_, _ = w.Write(b)
}
