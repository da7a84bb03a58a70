package service

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"

	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/polder-kaas/polder/test/testenv"
)

// rawREST sends bytes to the REST API and returns the answers to them, as long as the connection lives and says anything.
func rawREST(t testing.TB, p *testenv.Plane, request string, answers int) (out []restAnswer, err error) {
	t.Helper()
	u, err := url.Parse(p.Status(t).REST)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(p.RESTConfig(t).CAData)
	c, err := (&tls.Dialer{Config: &tls.Config{RootCAs: pool, NextProtos: []string{"http/1.1"}}}).DialContext(t.Context(), "tcp", u.Host)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(wait)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(c, request); err != nil {
		return nil, err
	}
	r := bufio.NewReader(c)
	for range answers {
		res, err := http.ReadResponse(r, nil)
		if err != nil {
			return out, err
		}
		b, err := io.ReadAll(res.Body)
		if err != nil {
			return out, err
		}
		out = append(out, restAnswer{res.StatusCode, res.Header, string(b)})
	}
	return out, nil
}

// TestRESTRawTricks sends what clients do not send but enemies do: nothing of it shows or changes anything of another
// tenant, or makes somebody somebody else.
func TestRESTRawTricks(t *testing.T) {
	p := shared.Get(t)
	awaitStacks(t, p.Client(t))
	restTenant(t, p, "rest-r")
	restTenant(t, p, "rest-q")
	own, other := restAs(t, p, "rest-r-editor"), restAs(t, p, "rest-q-editor")
	const canary = "canary-of-q"
	other.want(t, 201, "", "PUT", "/tenants/rest-q/clusters/one", strings.Replace(clusterFile("one"), "a: b", "a: "+canary, 1), "Content-Type", yamlType)
	own.want(t, 201, "", "PUT", "/tenants/rest-r/clusters/one", clusterFile("one"), "Content-Type", yamlType)
	get := func(path string, headers ...string) string {
		return "GET " + path + " HTTP/1.1\r\nHost: polder\r\nAuthorization: Bearer " + own.token + "\r\n" + strings.Join(headers, "\r\n") + "\r\n\r\n"
	}
	header := func(lines ...string) string { return get("/v1/me", append(lines, "X: y")...) }
	chunked := "0\r\n\r\nGET /v1/tenants/rest-q/clusters HTTP/1.1\r\nHost: polder\r\nAuthorization: Bearer " + own.token + "\r\n\r\n"
	for name, x := range map[string]struct {
		request string
		codes   string // that are expected, of the first answer
		words   string
	}{
		"up in a path":                {get("/v1/tenants/rest-r/../rest-q/clusters", "X: y"), "404", ""},
		"up in a path, escaped":       {get("/v1/tenants/rest-r/%2e%2e/rest-q/clusters", "X: y"), "404", ""},
		"up, escaped twice":           {get("/v1/tenants/rest-r/%252e%252e/rest-q/clusters", "X: y"), "404", ""},
		"a slash, escaped":            {get("/v1/tenants/rest-r%2f..%2frest-q/clusters", "X: y"), "404", ""},
		"a name with a slash":         {get("/v1/tenants/rest-q%2fclusters", "X: y"), "404", ""},
		"two slashes":                 {get("/v1//tenants/rest-q/clusters", "X: y"), "404", ""},
		"a point":                     {get("/v1/./tenants/rest-q/clusters", "X: y"), "404", ""},
		"a semicolon":                 {get("/v1/tenants/rest-r;x=rest-q/clusters", "X: y"), "404", ""},
		"a backslash":                 {get("/v1/tenants/rest-r\\..\\rest-q/clusters", "X: y"), "404", ""},
		"a NUL":                       {get("/v1/tenants/rest-q%00/clusters", "X: y"), "404", ""},
		"a letter, escaped":           {get("/v1/tenants/rest-%71/clusters", "X: y"), "404", ""},
		"in capitals":                 {get("/V1/ME", "X: y"), "404", ""},
		"a slash at the end":          {get("/v1/me/", "X: y"), "404", ""},
		"the plane's own paths":       {get("/apis/polder.dev/v1alpha1/namespaces/rest-r/workloadclusters", "X: y"), "404", ""},
		"its metrics":                 {get("/metrics", "X: y"), "404", ""},
		"its profiles":                {get("/debug/pprof/", "X: y"), "404", ""},
		"a whole URL":                 {get("https://evil.example/v1/tenants/rest-q/clusters", "X: y"), "404", ""},
		"a namespace as a query":      {get("/v1/tenants/rest-r/clusters?namespace=rest-q", "X: y"), "422", "unknown query parameter"},
		"a tenant as a query":         {get("/v1/tenants/rest-r/clusters?tenant=rest-q", "X: y"), "422", "unknown query parameter"},
		"a forged page token":         {get("/v1/tenants/rest-r/clusters?pageToken=eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6MSwic3RhcnQiOiIuLi8uLi9yZXN0LXEvIn0", "X: y"), "400", ""},
		"impersonation":               {header("Impersonate-User: oidc:rest-q-editor"), "400", "act as somebody else"},
		"impersonation of a group":    {header("Impersonate-Group: system:masters"), "400", "act as somebody else"},
		"impersonation in small":      {header("impersonate-uid: 1"), "400", "act as somebody else"},
		"impersonation of more":       {header("Impersonate-Extra-x: 1"), "400", "act as somebody else"},
		"a proxy's names":             {header("X-Remote-User: polder-admin", "X-Remote-Group: system:masters"), "200", `"oidc:rest-r-editor"`},
		"a proxy's names, otherwise":  {header("X-Forwarded-User: admin", "Forwarded: for=127.0.0.1;by=127.0.0.1", "X-Forwarded-For: 127.0.0.1"), "200", `"oidc:rest-r-editor"`},
		"another path in a header":    {header("X-Original-URL: /v1/tenants/rest-q/clusters", "X-Rewrite-URL: /v1/tenants/rest-q/clusters"), "200", `"oidc:rest-r-editor"`},
		"another method in a header":  {get("/v1/tenants/rest-r/clusters/one", "X-HTTP-Method-Override: DELETE", "X-Method-Override: DELETE"), "200", `"name":"one"`},
		"another method in the query": {get("/v1/tenants/rest-r/clusters/one?_method=DELETE", "X: y"), "422", ""},
		"two tokens":                  {header("Authorization: Bearer " + other.token), "401", ""},
		"two tokens in one":           {strings.Replace(header(), "\r\nX:", ", Bearer "+other.token+"\r\nX:", 1), "401", ""},
		"another scheme":              {strings.Replace(header(), "Bearer ", "Basic ", 1), "401", ""},
		"a cookie for a token":        {"GET /v1/me HTTP/1.1\r\nHost: polder\r\nCookie: Authorization=Bearer " + own.token + "\r\n\r\n", "401", ""},
		"a token in the query":        {"GET /v1/me?access_token=" + own.token + " HTTP/1.1\r\nHost: polder\r\n\r\n", "401", ""},
		"a method that is none":       {strings.Replace(header(), "GET", "POLDER", 1), "405", ""},
		"TRACE":                       {strings.Replace(header(), "GET", "TRACE", 1), "405", ""},
		"CONNECT":                     {"CONNECT 127.0.0.1:22 HTTP/1.1\r\nHost: 127.0.0.1:22\r\n\r\n", "400 404 405", ""},
		"an upgrade":                  {header("Connection: Upgrade", "Upgrade: SPDY/3.1"), "200", `"oidc:rest-r-editor"`},
		"a large header":              {header("Y: " + strings.Repeat("y", 100<<10)), "431", ""},
		"many headers":                {header(strings.Repeat("Y: y\r\n", 20000) + "Z: z"), "431", ""},
		"a page of another site":      {"POST /v1/tenants/rest-r/clusters HTTP/1.1\r\nHost: polder\r\nAuthorization: Bearer " + own.token + "\r\nSec-Fetch-Site: cross-site\r\nOrigin: https://evil.example\r\nContent-Length: 0\r\n\r\n", "403", "another site"},
		"both lengths":                {"POST /v1/tenants/rest-r/clusters HTTP/1.1\r\nHost: polder\r\nAuthorization: Bearer " + own.token + fmt.Sprintf("\r\nContent-Length: %d\r\nTransfer-Encoding: chunked\r\n\r\n", len(chunked)) + chunked, "400", ""},
		"two lengths":                 {"POST /v1/tenants/rest-r/clusters HTTP/1.1\r\nHost: polder\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello", "400", ""},
		"an odd encoding":             {"POST /v1/tenants/rest-r/clusters HTTP/1.1\r\nHost: polder\r\nTransfer-Encoding: xchunked\r\n\r\n" + chunked, "501 400", ""},
		"an encoding with a space":    {"POST /v1/tenants/rest-r/clusters HTTP/1.1\r\nHost: polder\r\nTransfer-Encoding : chunked\r\n\r\n" + chunked, "400", ""},
		"a folded header":             {"GET /v1/me HTTP/1.1\r\nHost: polder\r\nAuthorization:\r\n Bearer " + own.token + "\r\n\r\n", "400 401 200", ""},
		"two hosts":                   {"GET /v1/me HTTP/1.1\r\nHost: polder\r\nHost: other\r\n\r\n", "400", ""},
		"no host":                     {"GET /v1/me HTTP/1.1\r\n\r\n", "400", ""},
		"HTTP/0.9":                    {"GET /v1/me\r\n\r\n", "400", ""},
		"HTTP/2 by hand":              {"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "400 404 405", ""},
		"something else":              {"\x16\x03\x01 hello\r\n\r\n", "400", ""},
	} {
		t.Run(name, func(t *testing.T) {
			all, err := rawREST(t, p, x.request, 1)
			if len(all) == 0 {
				t.Fatalf("no answer: %v", err)
			}
			if !strings.Contains(x.codes, fmt.Sprint(all[0].code)) || !strings.Contains(all[0].body, x.words) {
				t.Errorf("want %s and %q, got %s", x.codes, x.words, all[0])
			}
			if strings.Contains(all[0].body, canary) {
				t.Errorf("it shows what another has: %s", all[0])
			}
		})
	}
	// A second request that hides in the first one's body is no request: the next answer is that to what follows.
	all, err := rawREST(t, p, "POST /v1/tenants/rest-r/clusters HTTP/1.1\r\nHost: polder\r\nAuthorization: Bearer "+own.token+
		fmt.Sprintf("\r\nContent-Length: %d\r\n\r\n", len(chunked))+chunked+"GET /v1/version HTTP/1.1\r\nHost: polder\r\n\r\n", 2)
	if len(all) != 2 || !strings.Contains(all[1].body, `"kubernetes"`) {
		t.Errorf("%v %v", all, err)
	}
	for c, tenant := range map[*restClient]string{&own: "rest-r", &other: "rest-q"} {
		c.want(t, 200, `"name":"one"`, "GET", "/tenants/"+tenant+"/clusters/one", "")
	}
}

// TestRESTLimits is about those who ask too much, too slowly, or more than one can hold.
func TestRESTLimits(t *testing.T) {
	p := shared.Get(t)
	restTenant(t, p, "rest-l")
	vi := restAs(t, p, "rest-l-viewer")
	vi.want(t, 200, "", "GET", "/me", "")
	// Somebody without a token uses up what his address has, and nothing of those whom the plane knows.
	stranger, limited := restWith(t, p, ""), 0
	for range 400 {
		if a := stranger.do(t, "GET", "/me", ""); a.code == 429 {
			limited++
			if a.header.Get("Retry-After") == "" {
				t.Fatal("it is not said when to try again")
			}
		}
	}
	if limited == 0 {
		t.Error("400 requests without a token were none too many")
	}
	vi.want(t, 200, "", "GET", "/me", "")
	// One token has its own limit.
	flood, limited := restAs(t, p, "rest-l-editor"), 0
	flood.token = issuerOfShared.token(t, time.Hour, "rest-l-editor", "flood")
	testenv.Eventually(t, wait, func() error { // the address must have recovered
		if a := flood.do(t, "GET", "/me", ""); a.code != 200 {
			return fmt.Errorf("%s", a)
		}
		return nil
	})
	for range 600 {
		if flood.do(t, "GET", "/version", "").code == 429 {
			limited++
		}
	}
	if limited == 0 {
		t.Error("600 requests of one token were none too many")
	}
	vi.want(t, 200, "", "GET", "/me", "")
	vi.want(t, 413, "", "PUT", "/tenants/rest-l/clusters/a", strings.Repeat("#", 2<<20), "Content-Type", yamlType)

	// Who sends a body too slowly is not waited for.
	begin := time.Now()
	if all, err := rawREST(t, p, "PUT /v1/tenants/rest-l/clusters/a HTTP/1.1\r\nHost: polder\r\nAuthorization: Bearer "+vi.token+
		"\r\nContent-Type: application/yaml\r\nContent-Length: 1000\r\n\r\nspec:", 1); err == nil && all[0].code < 400 || time.Since(begin) > 30*time.Second {
		t.Errorf("a slow body: %d answers, %v after %s", len(all), err, time.Since(begin))
	}
	// Nothing is read of somebody whom the plane does not know.
	begin = time.Now()
	if all, err := rawREST(t, p, "PUT /v1/tenants/rest-l/clusters/a HTTP/1.1\r\nHost: polder\r\nAuthorization: Bearer wrong\r\nContent-Length: 900000\r\n\r\n", 1); err != nil || all[0].code != 401 || time.Since(begin) > 5*time.Second {
		t.Errorf("a body of nobody: %v %v after %s", all, err, time.Since(begin))
	}
	begin = time.Now()
	if all, err := rawREST(t, p, "GET /v1/me HTTP/1.1\r\nHost: pol", 1); err == nil && all[0].code < 400 || time.Since(begin) > 30*time.Second {
		t.Errorf("a slow header: %v %v after %s", all, err, time.Since(begin))
	}
}

var restFuzz = flag.Int("rest.fuzz", 400, "how many requests TestRESTFuzz makes")

// TestRESTFuzz sends requests of every published operation with parts that are right, wrong, or nonsense. None of them
// is answered with an error of the server's own, and each refusal is a problem.
func TestRESTFuzz(t *testing.T) {
	p := shared.Get(t)
	awaitStacks(t, p.Client(t))
	restTenant(t, p, "rest-z")
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	pick := func(all ...string) string { return all[random.IntN(len(all))] }
	words := []string{
		"rest-z", "one", "scs", "ci", "", "-", "A", "a.b", "..", "%2e", "%00", "%", "a b", "💥", strings.Repeat("a", 64), strings.Repeat("a", 5000), "1", "-1",
		"99999999999999999999", "true", "null", "[]", "{}", "{{.}}", "$(id)", "';--", "<script>", "\u202e", "*",
	}
	bodies := []string{
		clusterFile("one"), `{"metadata":{"name":"one"},"spec":{"stack":{"name":"scs"},"paused":true}}`, `{"spec":{"workers":[{"name":"a","replicas":1e999}]}}`, "", "null", "[]",
		"{}", `{"role":"viewer"}`, `{"role":"admin","expirationSeconds":-1}`, `{"items":[]}`, `{"items":[{"kind":"User","name":"x","role":"viewer"}]}`, `{"items":null}`,
		"a: &a [*a]", "a: &a {<<: *a}", strings.Repeat("[", 20000), strings.Repeat("{\"a\":", 5000), "\x00", "\xff\xfe", `{"spec":{"network":{"podCIDRs":["::/0"]}}}`,
		`{"metadata":{"name":{"a":1}}}`, `{"metadata":[],"spec":5}`, `{"apiVersion":5}`, "%YAML 9.9\n---\na: 1", "!!binary x", "!!python/object:os.system x", "? a\n: b", "- a\n- b",
		`{"spec":{"stack":{"name":"scs"},"parameters":{"` + strings.Repeat("a", 70000) + `":1}}}`, "a: " + strings.Repeat("&x ", 1000),
		"a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c]\ne: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d]\nf: &f [*e,*e,*e,*e,*e,*e,*e,*e,*e]\ng: [*f,*f,*f,*f,*f,*f,*f,*f,*f]",
	}
	types := []string{jsonType, yamlType, "application/merge-patch+json", "text/plain", "", "application/json; charset=utf-16", ";;;", "multipart/form-data; boundary=x"}
	headers := []string{"If-Match", "If-None-Match", "Idempotency-Key", "Accept", "Accept-Encoding", "Range", "Expect", "Content-Encoding", "Last-Event-ID", "Accept-Language"}
	queries := []string{"pageSize", "pageToken", "dryRun", "uid", "kubernetes", "tenant", "limit", "x"}
	codes := map[int]int{}
	all, c, tokens := endpoints(t, p), restWith(t, p, ""), map[[3]string]string{}
	for i := range *restFuzz {
		// A person of each role, and a new token now and then, since one alone may not ask so often.
		who := [3]string{"rest-z-" + pick("viewer", "editor", "x"), pick("rest-z-admins", "none"), fmt.Sprint(i / 100)}
		if c.token = tokens[who]; c.token == "" {
			c.token = issuerOfShared.token(t, time.Hour, who[0], who[1:]...)
			tokens[who] = c.token
			c.want(t, 200, "", "GET", "/me", "") // so that the door knows it
		}
		e := all[random.IntN(len(all))]
		if e.id == "watch-clusters" {
			continue // it does not end
		}
		path := e.path
		for _, name := range []string{"tenant", "cluster", "robot", "stack"} {
			right := map[string]string{"tenant": "rest-z", "cluster": "one", "robot": "ci", "stack": "scs"}[name]
			path = strings.ReplaceAll(path, "{"+name+"}", pick(right, right, right, url.PathEscape(pick(words...))))
		}
		q := url.Values{}
		for range random.IntN(3) {
			q.Set(pick(queries...), pick(words...))
		}
		if len(q) > 0 {
			path += "?" + q.Encode()
		}
		body := pick(bodies...)
		if random.IntN(3) == 0 { // one with a few bytes changed
			b := bytes.Clone([]byte(body))
			for range min(len(b), 3) {
				b[random.IntN(len(b))] = byte(random.Uint32())
			}
			body = string(b)
		}
		var h []string
		for range random.IntN(3) {
			h = append(h, pick(headers...), strings.Map(func(r rune) rune {
				if r < ' ' || r > '~' {
					return '?'
				}
				return r
			}, pick(append([]string{`"1"`, "*", `W/"1"`}, words...)...)))
		}
		if kind := pick(types...); kind != "" {
			h = append(h, "Content-Type", kind)
		}
		a, err := c.try(t.Context(), e.method, path, body, h...)
		if err != nil {
			if strings.Contains(err.Error(), "invalid URL escape") {
				continue // nobody can send it
			}
			t.Errorf("%s %.200q %.200q %q: %v", e.method, path, body, h, err)
			continue
		}
		codes[a.code]++
		problem := json.Valid([]byte(a.body)) && a.header.Get("Content-Type") == "application/problem+json"
		if a.code >= 500 || a.code >= 400 && !problem {
			t.Errorf("%s %.200q %.200q %q: %s", e.method, path, body, h, a)
		}
	}
	t.Logf("%v", codes)
	if codes[200]+codes[201] == 0 {
		t.Error("no request was right, so that not much was tried")
	}
}
