// Package rest is the API for customers, /v1: the objects of the plane in the words of the web, for people and programs
// who know nothing of Kubernetes. It decides nothing. Each request goes on to the plane with the token it came with, so
// that the plane's own rights, admission and quotas are all there is.
package rest

import (
	"context"
	"errors"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/polder-kaas/polder/internal/front/inprocess"
	"github.com/polder-kaas/polder/internal/program/buildinfo"
)

// Prefix is what all paths begin with.
const Prefix = "/v1"

// MaxBody is how large the body of a request may be.
const MaxBody = 1 << 20

// bodyTimeout is how long a client may take to send it.
const bodyTimeout = 10 * time.Second

// fieldManager is who has written a field, as the plane records it.
const fieldManager = "polder-rest"

// Config is what the API needs of the plane.
type Config struct {
	// Plane is the plane's Kubernetes API, which knows who somebody is and what they may do.
	Plane http.RoundTripper
	// Namespace returns that of a tenant, or nothing if it does not know one. It is asked for speed only: what is in a
	// namespace is asked for with the rights of the caller.
	Namespace func(tenant string) string
	Version   buildinfo.Info
	Clock     clock.Clock // nil means the real one
}

// API is the API.
type API struct {
	cfg    Config
	huma   huma.API
	mux    *http.ServeMux
	client dynamic.Interface

	watches watchCount
}

// New makes the API, which is ready for requests.
func New(cfg Config) (*API, error) {
	if cfg.Clock == nil {
		cfg.Clock = clock.RealClock{}
	}
	a := &API{cfg: cfg, mux: http.NewServeMux()}
	var err error
	a.client, err = dynamic.NewForConfigAndClient(
		&rest.Config{Host: "https://plane", QPS: -1, UserAgent: fieldManager, WarningHandlerWithContext: warnings{}},
		&http.Client{Transport: passThrough{cfg.Plane}})
	if err != nil {
		return nil, err
	}
	a.huma = humago.New(a.mux, newDocument())
	a.huma.UseMiddleware(a.identify)
	for _, register := range []func(*API) error{
		registerSelf, registerTenants, registerMembers, registerClusters, registerClusterParts, registerWatch,
		registerKubeconfigs, registerStacks, registerProviders, registerPlane,
	} {
		if err := register(a); err != nil {
			return nil, err
		}
	}
	return a, a.serveDocuments()
}

// newDocument is the beginning of the OpenAPI document. Documentation pages of huma are left out: they load scripts
// from elsewhere.
func newDocument() huma.Config {
	c := huma.DefaultConfig("Polder", "1")
	c.Info.Description = "Kubernetes clusters as a service. A cluster is the same object everywhere: the file that " +
		"polder apply and kubectl apply take is what POST and PUT take, as YAML or JSON."
	c.OpenAPIPath, c.DocsPath, c.SchemasPath, c.CreateHooks = "", "", "", nil
	c.RejectUnknownQueryParameters = true
	c.Formats = map[string]huma.Format{"application/json": jsonFormat, "json": jsonFormat}
	c.Components.Schemas = huma.NewMapRegistry(schemaPrefix, nameSchema)
	c.Components.SecuritySchemes = map[string]*huma.SecurityScheme{
		"bearer": {Type: "http", Scheme: "bearer", Description: "A token of an issuer that the plane believes, or of a robot."},
	}
	c.Security = []map[string][]string{{"bearer": {}}}
	return c
}

// public is the security of an operation for everybody.
var public = []map[string][]string{}

// ServeHTTP serves one request.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	if p := checkRequest(r); p != nil {
		p.write(w)
		return
	}
	handler, pattern := a.mux.Handler(r)
	if pattern != "" {
		a.mux.ServeHTTP(w, r)
		return
	}
	// The mux answers in plain text; whether the path has other methods is in its header.
	rec := &headerRecorder{header: http.Header{}}
	handler.ServeHTTP(rec, r)
	if rec.code == http.StatusMethodNotAllowed {
		w.Header().Set("Allow", rec.header.Get("Allow"))
		newProblem(rec.code, "this path takes only "+rec.header.Get("Allow")).write(w)
		return
	}
	newProblem(http.StatusNotFound, "there is no such path; "+Prefix+"/openapi.json says which there are").write(w)
}

// checkRequest refuses what nobody sends who means well, before anything is done with it.
func checkRequest(r *http.Request) *Problem {
	// Paths have one form. What is escaped in them could be read differently by somebody else on the way.
	if p := r.URL.Path; r.URL.EscapedPath() != p || strings.Contains(p, "//") || strings.ContainsAny(p, ";\\") ||
		slices.ContainsFunc(strings.Split(p, "/"), func(s string) bool { return s == "." || s == ".." }) {
		return newProblem(http.StatusNotFound, "there is no such path: names have only letters, digits and hyphens")
	}
	for name := range r.Header {
		if strings.HasPrefix(name, "Impersonate-") {
			return newProblem(http.StatusBadRequest, "to act as somebody else is not possible here; leave out "+name)
		}
	}
	return nil
}

// headerRecorder takes the head of an answer.
type headerRecorder struct {
	header http.Header
	code   int
}

func (h *headerRecorder) Header() http.Header         { return h.header }
func (h *headerRecorder) Write(b []byte) (int, error) { return len(b), nil }
func (h *headerRecorder) WriteHeader(code int)        { h.code = code }

// caller is who asks.
type caller struct {
	token    string
	address  string
	warnings []string // of the plane, to be handed on
}

type callerKey struct{}

func callerOf(ctx context.Context) *caller {
	c, _ := ctx.Value(callerKey{}).(*caller)
	return c
}

// identify takes the token of a request. Whether it is good is the plane's to say.
func (a *API) identify(c huma.Context, next func(huma.Context)) {
	if op := c.Operation(); op.Security != nil && len(op.Security) == 0 {
		next(c)
		return
	}
	token, ok := bearerToken(c)
	if !ok {
		_, w := humago.Unwrap(c)
		unauthorized("this needs a token: Authorization: Bearer TOKEN; polder login gets one").write(w)
		return
	}
	c = huma.WithValue(c, callerKey{}, &caller{token: token, address: c.RemoteAddr()})
	// Whoever the plane has not believed yet is asked for before anything of theirs is read.
	if b, _ := c.Context().Value(believedKey{}).(Believed); !b.Known {
		if err := a.review(c.Context()); err != nil {
			_, w := humago.Unwrap(c)
			err.write(w)
			return
		}
	}
	next(c)
}

// review asks the plane who somebody is.
func (a *API) review(ctx context.Context) *Problem {
	ctx, cancel := context.WithTimeout(ctx, planeTimeout)
	defer cancel()
	_, err := a.reviewSelf(ctx)
	var p *Problem
	errors.As(explain(err), &p)
	return p
}

var tokenPattern = regexp.MustCompile(`^[-A-Za-z0-9._~+/]+=*$`)

// bearerToken takes a token only if there is exactly one, in the form that RFC 6750 gives it.
func bearerToken(c huma.Context) (string, bool) {
	var all []string
	c.EachHeader(func(name, value string) {
		if name == "Authorization" {
			all = append(all, value)
		}
	})
	if len(all) != 1 {
		return "", false
	}
	scheme, token, found := strings.Cut(all[0], " ")
	return token, found && strings.EqualFold(scheme, "bearer") && tokenPattern.MatchString(token)
}

// passThrough sends requests on with the token of the caller, and never without.
type passThrough struct{ next http.RoundTripper }

func (p passThrough) RoundTrip(r *http.Request) (*http.Response, error) {
	c := callerOf(r.Context())
	if c == nil || c.token == "" {
		return nil, errors.New("a request to the plane needs the token of its caller")
	}
	r = r.Clone(inprocess.WithRemoteAddr(r.Context(), c.address))
	r.Header.Set("Authorization", "Bearer "+c.token)
	res, err := p.next.RoundTrip(r)
	if b, ok := r.Context().Value(believedKey{}).(Believed); ok && err == nil {
		b.Tell(res.StatusCode != http.StatusUnauthorized)
	}
	return res, err
}

type believedKey struct{}

// Believed is what is known of the token of a request.
type Believed struct {
	Known bool // the plane has believed it before
	// Tell is called with whether the plane believes it, as soon as that has said so. It may be called several times, and
	// at the same time.
	Tell func(bool)
}

// WithBelieved says what is known of the token of a request.
func WithBelieved(ctx context.Context, b Believed) context.Context {
	return context.WithValue(ctx, believedKey{}, b)
}

// warnings keeps those of the plane, for example of fields that are not needed any more, for who has asked.
type warnings struct{}

func (warnings) HandleWarningHeaderWithContext(ctx context.Context, code int, _, text string) {
	if c := callerOf(ctx); c != nil && code == 299 && text != "" {
		c.warnings = append(c.warnings, text)
	}
}

// planeTimeout is how long the plane may take for one request.
const planeTimeout = 30 * time.Second
