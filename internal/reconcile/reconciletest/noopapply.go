package reconciletest

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"reflect"
	"strings"
)

// isNoopApply says whether a request is a server-side apply that would change nothing. That is how a process
// finds out that there is nothing to do, so it does not count as a write.
func isNoopApply(base http.RoundTripper, r *http.Request) bool {
	if r.Method != http.MethodPatch || !strings.HasPrefix(r.Header.Get("Content-Type"), "application/apply-patch") ||
		r.Body == nil {
		return false
	}
	body, err := io.ReadAll(r.Body)
	_ = r.Body.Close() // it was read
	r.Body = io.NopCloser(bytes.NewReader(body))
	if err != nil {
		return false
	}
	get := r.Clone(r.Context())
	get.Method, get.Body, get.ContentLength = http.MethodGet, nil, 0
	get.URL.RawQuery = ""
	try := r.Clone(r.Context())
	try.Body = io.NopCloser(bytes.NewReader(body))
	q := try.URL.Query()
	q.Set("dryRun", "All")
	try.URL.RawQuery = q.Encode()
	have, would := fetchObject(base, get), fetchObject(base, try)
	return have != nil && reflect.DeepEqual(have, would)
}

// fetchObject returns the object in the response to a request, or nil.
func fetchObject(base http.RoundTripper, r *http.Request) map[string]any {
	res, err := base.RoundTrip(r)
	if err != nil {
		return nil
	}
	defer res.Body.Close() //nolint:errcheck // it was read, or nobody cares
	var o map[string]any
	if res.StatusCode != http.StatusOK || json.NewDecoder(res.Body).Decode(&o) != nil {
		return nil
	}
	return o
}
