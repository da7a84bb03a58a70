// Package restplane lets the commands on clusters work where a plane shows its REST API alone. Commands speak to the
// plane's Kubernetes API; a transport here answers what they ask with requests of package client, as the same objects,
// lists, changes and errors, so that no command knows with which of the two it speaks.
//
// A namespace is the name of a tenant. What the REST API cannot do is refused with a sentence, never with a 404 that
// would say that something is not there.
package restplane

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/polder-kaas/polder/client"
)

// IsURL says that a URL is that of a REST API: https://HOST:PORT/v1.
func IsURL(server string) bool {
	u, err := url.Parse(server)
	return err == nil && u.Scheme == "https" && u.Host != "" && u.User == nil && u.RawQuery == "" && u.Fragment == "" &&
		strings.HasSuffix(strings.TrimRight(u.Path, "/"), "/v1")
}

// Use makes clients of a configuration speak to the REST API at its host, if that is the URL of one. Token and
// certificate authority are those of the configuration.
func Use(config *rest.Config) {
	if !IsURL(config.Host) {
		return
	}
	config.Host = strings.TrimRight(config.Host, "/")
	config.ContentType, config.AcceptContentTypes = typeJSON, typeJSON // else some clients send Protobuf
	at, s := config.Host, newState()
	config.Wrap(func(base http.RoundTripper) http.RoundTripper { return &transport{url: at, base: base, state: s} })
}

// transport answers requests for a Kubernetes API.
type transport struct {
	url   string // with /v1
	base  http.RoundTripper
	state *state
}

// RoundTrip is one request. Its token is the one that the client has put in; it is sent to the REST API and nowhere
// else, since redirections are not followed.
func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := readBody(r)
	if err != nil {
		return nil, err
	}
	token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !ok {
		return nil, errors.New("the REST API takes a token, and there is none: log in with polder login, or name a file with one with --token-file")
	}
	api, err := client.New(t.url, func(context.Context) (string, error) { return token, nil },
		client.WithHTTPClient(&http.Client{
			Transport:     t.base,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		}),
		client.WithRequestEditorFn(func(_ context.Context, out *http.Request) error {
			out.Header.Set("User-Agent", r.Header.Get("User-Agent"))
			return nil
		}))
	if err != nil {
		return nil, err
	}
	c := &call{request: parseRequest(r, strings.TrimSuffix(r.URL.Path, "/"), t.url), state: t.state, api: api, body: body}
	object, err := c.answer(r.Context())
	var status apierrors.APIStatus
	switch {
	case errors.As(err, &status):
		s := status.Status()
		s.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
		return c.respond(r, int(s.Code), s)
	case err != nil:
		return nil, withoutURL(err)
	}
	return c.respond(r, http.StatusOK, object)
}

func readBody(r *http.Request) ([]byte, error) {
	if r.Body == nil {
		return nil, nil
	}
	defer r.Body.Close() //nolint:errcheck // read only
	return io.ReadAll(r.Body)
}

// withoutURL leaves out what the client that is asked says once more.
func withoutURL(err error) error {
	var inner *url.Error
	if errors.As(err, &inner) {
		return inner.Err
	}
	return err
}

// respond writes an answer as a Kubernetes API does.
func (c *call) respond(r *http.Request, code int, object any) (*http.Response, error) {
	res := &http.Response{
		StatusCode: code, Status: fmt.Sprintf("%d %s", code, http.StatusText(code)), Request: r,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, ContentLength: -1,
		Header: http.Header{"Content-Type": {"application/json"}},
	}
	for _, name := range []string{"Warning", "Retry-After"} {
		if v := c.header.Values(name); len(v) > 0 {
			res.Header[name] = v
		}
	}
	if s, ok := object.(*stream); ok {
		res.Body = s
		return res, nil
	}
	b, err := json.Marshal(object)
	if err != nil {
		return nil, err
	}
	res.Body, res.ContentLength = io.NopCloser(bytes.NewReader(b)), int64(len(b))
	return res, nil
}

// call is one request and what is needed to answer it.
type call struct {
	request
	*state
	api    *client.ClientWithResponses
	body   []byte
	header http.Header // of the last answer of the REST API
}

// answer returns an object, or a stream of changes.
func (c *call) answer(ctx context.Context) (any, error) {
	handle := handlers[c.verb+" "+c.resource]
	switch {
	case handle == nil:
		return nil, c.noCounterpart("")
	case c.needsTenant() && c.namespace == "":
		return nil, c.noCounterpart("the REST API is asked for one tenant at a time; name one with -n")
	case c.needsTenant() && !namePattern.MatchString(c.namespace):
		return nil, c.forbidden(ctx) // there can be no such tenant
	}
	return handle(c, ctx)
}

// handlers answer what commands ask for, by verb and resource.
var handlers = map[string]func(*call, context.Context) (any, error){
	"get workloadclusters":      (*call).getCluster,
	"list workloadclusters":     (*call).listClusters,
	"watch workloadclusters":    (*call).watchClusters,
	"create workloadclusters":   (*call).createCluster,
	"patch workloadclusters":    (*call).patchCluster,
	"delete workloadclusters":   (*call).deleteCluster,
	"create kubeconfigrequests": (*call).createKubeconfigRequest,
	"list kubeconfigrequests":   (*call).listKubeconfigRequests,
	"watch kubeconfigrequests":  (*call).watchKubeconfigRequests,
	"delete kubeconfigrequests": (*call).deleteKubeconfigRequest,
	"get providers":             (*call).getProvider,
	"list providers":            (*call).listProviders,
	"list clusterstacks":        (*call).listStacks,
	"get clusterstackreleases":  (*call).getRelease,
	"get tenants":               (*call).getTenant,
	"list tenants":              (*call).listTenants,
	"update tenants":            (*call).updateTenant,
	"get resourcequotas":        (*call).getQuota,
	"create selfsubjectreviews": (*call).reviewSelf,

	"create serviceaccounts/token": (*call).createToken,
	"list machines":                (*call).listMachines,
	// What customers have no rights to is refused as the plane does.
	"get secrets": (*call).refuse,
}
