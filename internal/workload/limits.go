package workload

import (
	"fmt"
	"io"
	"net/http"
)

// Limits of the response to one request. The API server of a cluster may be anybody's, and what it sends is held
// in memory: as bytes, and then as values, each of which takes more than the three bytes it can be sent in.
const (
	maxResponseBytes      = 32 << 20 // bytes
	maxOtherResponseBytes = 2 << 20  // bytes of an error, and of what is not a JSON object
	maxValues             = 500_000  // in objects and lists of JSON
)

// limitedTransport is a transport that reads no more of a response than that, follows no redirect, which would
// send our credentials elsewhere, and decompresses nothing.
type limitedTransport struct{ next http.RoundTripper }

func limitTransport(next http.RoundTripper) http.RoundTripper { return limitedTransport{next} }

func (l limitedTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := l.next.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	if reason := refusalReason(resp); reason != "" {
		_ = resp.Body.Close() // nothing of it is read
		return nil, fmt.Errorf("the cluster API path %q answered with %s", req.URL.Path, reason)
	}
	limit := maxResponseBytes
	if resp.StatusCode >= 400 {
		limit = maxOtherResponseBytes
	}
	resp.Body = &limitedBody{ReadCloser: resp.Body, path: req.URL.Path, limit: limit}
	return resp, nil
}

// refusalReason says why a response is not read at all; it quotes nothing of it.
func refusalReason(resp *http.Response) string {
	encoding := resp.Header.Get("Content-Encoding")
	switch {
	case resp.StatusCode >= 300 && resp.StatusCode < 400:
		return fmt.Sprintf("a redirect (%d), and none is followed", resp.StatusCode)
	case encoding != "" && encoding != "identity":
		return "an encoding that was not asked for"
	}
	return ""
}

// limitedBody is the body of a response; reading it fails where it becomes too much.
type limitedBody struct {
	io.ReadCloser
	path        string
	read, limit int // bytes
	values      valueCounter
	err         error // once there is one, nothing more is read
}

func (a *limitedBody) Read(p []byte) (int, error) {
	if a.err != nil {
		return 0, a.err
	}
	n, err := a.ReadCloser.Read(p)
	if a.read == 0 && n > 0 && p[0] != '{' {
		a.limit = maxOtherResponseBytes
	}
	a.read += n
	a.values.count(p[:n])
	switch {
	case a.read > a.limit:
		a.err = fmt.Errorf("the cluster API path %q answered with more than %d MiB", a.path, a.limit>>20)
	case a.values.n > maxValues:
		a.err = fmt.Errorf("the cluster API path %q answered with more than %d values", a.path, maxValues)
	default:
		return n, err
	}
	return 0, a.err
}

// valueCounter counts the values in a JSON text, piece by piece, without decoding it.
type valueCounter struct {
	n               int
	quoted, escaped bool
}

func (v *valueCounter) count(text []byte) {
	for _, b := range text {
		switch {
		case v.escaped:
			v.escaped = false
		case v.quoted:
			v.quoted, v.escaped = b != '"', b == '\\'
		case b == '"':
			v.quoted = true
		case b == '{' || b == '[' || b == ',':
			v.n++
		}
	}
}
