package conformance

import (
	"context"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// request is one to be made.
type request struct {
	op      string // operationId
	as      Role   // empty is the editor
	token   string // instead of the role's
	tenant  string // empty is that of the run
	cluster string
	robot   string
	stack   string
	query   url.Values
	header  map[string]string
	body    []byte
	kind    string // of the body
}

// answer is what a server has said.
type answer struct {
	what   string // that was asked
	status int
	header http.Header
	body   []byte
}

// words is the answer in short, for sentences.
func (a *answer) words() string {
	const most = 300
	text := oneLine(string(a.body))
	if len(text) > most {
		text = text[:most] + "..."
	}
	return strings.TrimSpace(fmt.Sprintf("%d %s", a.status, text))
}

// maxAnswer is how much of an answer is read.
const maxAnswer = 16 << 20

// path is where an operation is for a request, after the URL.
func (s *session) path(q request) string {
	tenant := q.tenant
	if tenant == "" {
		tenant = s.cfg.Tenant
	}
	p := strings.NewReplacer("{tenant}", tenant, "{cluster}", q.cluster, "{robot}", q.robot, "{stack}", q.stack).
		Replace(strings.TrimPrefix(s.document.operation(q.op).path, "/v1"))
	if len(q.query) > 0 {
		p += "?" + q.query.Encode()
	}
	return p
}

func (s *session) newRequest(ctx context.Context, q request) (*http.Request, error) {
	r, err := s.rawRequest(ctx, s.document.operation(q.op).method, s.path(q), q)
	if err == nil && q.body != nil {
		r.Header.Set("Content-Type", q.kind)
	}
	return r, err
}

// rawRequest is one of any path.
func (s *session) rawRequest(ctx context.Context, method, path string, q request) (*http.Request, error) {
	r, err := http.NewRequestWithContext(ctx, method, s.cfg.URL+path, strings.NewReader(string(q.body)))
	if err != nil {
		return nil, err
	}
	role := q.as
	if role == "" {
		role = Editor
	}
	token := q.token
	if token == "" && role != Nobody {
		token = s.cfg.Tokens[role]
	}
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	for name, value := range q.header {
		r.Header.Set(name, value)
	}
	return r, nil
}

// do asks, and judges the answer by the document. The error says that there was no answer.
func (s *session) do(ctx context.Context, q request) (*answer, error) {
	a, err := s.send(ctx, func(ctx context.Context) (*http.Request, error) { return s.newRequest(ctx, q) })
	if err == nil {
		s.judge(q.op, a)
	}
	return a, err
}

// send makes a request, and repeats it as long as the server says that there are too many.
func (s *session) send(ctx context.Context, build func(context.Context) (*http.Request, error)) (*answer, error) {
	const most = 10
	for i := 0; ; i++ {
		a, err := s.sendOnce(ctx, build)
		if err != nil || a.status != http.StatusTooManyRequests || i == most {
			return a, err
		}
		after, err := strconv.Atoi(a.header.Get("Retry-After"))
		if err != nil {
			return a, nil
		}
		if err := sleep(ctx, time.Duration(min(after, most))*time.Second); err != nil {
			return nil, err
		}
	}
}

func (s *session) sendOnce(ctx context.Context, build func(context.Context) (*http.Request, error)) (*answer, error) {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.RequestTimeout)
	defer cancel()
	r, err := build(ctx)
	if err != nil {
		return nil, err
	}
	res, err := s.client.Do(r)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close() //nolint:errcheck // read only
	a := &answer{what: r.Method + " " + r.URL.RequestURI(), status: res.StatusCode, header: res.Header}
	if isStream(res) {
		return a, nil // it does not end
	}
	if a.body, err = io.ReadAll(io.LimitReader(res.Body, maxAnswer)); err != nil {
		return nil, fmt.Errorf("reading the answer to %s: %w", a.what, err)
	}
	return a, nil
}

func isStream(res *http.Response) bool {
	t, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type"))
	return t == "text/event-stream"
}

// want asks, and is an error unless the answer has one of some codes.
func (s *session) want(ctx context.Context, q request, codes ...int) (*answer, error) {
	a, err := s.do(ctx, q)
	if err != nil {
		return nil, err
	}
	if !slices.Contains(codes, a.status) {
		return nil, fmt.Errorf("%s is to be answered %s; it was %s", describe(q, a), joinCodes(codes), a.words())
	}
	return a, nil
}

// describe says what was asked, and as whom.
func describe(q request, a *answer) string {
	if q.as != "" {
		return a.what + " as " + string(q.as)
	}
	return a.what
}

func joinCodes(codes []int) string {
	texts := make([]string, len(codes))
	for i, c := range codes {
		texts[i] = strconv.Itoa(c)
	}
	return strings.Join(texts, " or ")
}
