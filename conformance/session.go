package conformance

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// session is one run: who asks, what was made, and what was seen in answers.
type session struct {
	cfg      Config
	document *document
	client   *http.Client
	template map[string]any // of cluster files

	prefix  string // of the names of all that is made
	counter int
	names   []string        // of all clusters that may have been made
	made    []string        // those of the check that runs
	gone    map[string]bool // those that are known not to be there
	robots  []string
	members []byte // the list of members as it is

	violations map[string]bool // what was wrong with answers, each once
}

func newSession(c Config) (*session, error) {
	d, err := readDocument()
	if err != nil {
		return nil, fmt.Errorf("reading the published document: %w", err)
	}
	var id [4]byte
	if _, err := rand.Read(id[:]); err != nil {
		return nil, fmt.Errorf("choosing names: %w", err)
	}
	client := http.Client{}
	if c.Client != nil {
		client = *c.Client
	}
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &session{
		cfg: c, document: d, client: &client, prefix: "api-conf-" + hex.EncodeToString(id[:]),
		gone: map[string]bool{}, violations: map[string]bool{},
	}, nil
}

// prepare finds out whether there is an API at all, and what clusters are made of.
func (s *session) prepare(ctx context.Context) error {
	a, err := s.do(ctx, request{op: "get-self"})
	switch {
	case err != nil:
		return fmt.Errorf("asking %s: %w", s.cfg.URL, err)
	case a.status == http.StatusUnauthorized:
		return fmt.Errorf("%s does not believe the token of the editor: %s", s.cfg.URL, a.words())
	case a.status != http.StatusOK:
		return fmt.Errorf("%s answers /me with %s; is it the URL of the API?", s.cfg.URL, a.words())
	}
	if s.members, err = s.readMembers(ctx); err != nil {
		return err
	}
	if len(s.cfg.Cluster) == 0 {
		s.template, err = s.chooseTemplate(ctx)
	} else {
		s.template, err = parseTemplate(s.cfg.Cluster)
	}
	return err
}

// readMembers reads the list of members, for requests that would write it if they were not refused.
func (s *session) readMembers(ctx context.Context) ([]byte, error) {
	a, err := s.want(ctx, request{op: "list-members"}, http.StatusOK)
	if err != nil {
		return nil, err
	}
	return a.body, nil
}

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

// judge remembers what of an answer is not as the document says.
func (s *session) judge(op string, a *answer) {
	if err := s.judgeAnswer(s.document.operation(op), a); err != nil {
		s.violations[fmt.Sprintf("%s, answered %d: %v", op, a.status, err)] = true
	}
}

func (s *session) judgeAnswer(o operation, a *answer) error {
	kind, _, _ := mime.ParseMediaType(a.header.Get("Content-Type"))
	switch {
	case a.status >= http.StatusInternalServerError:
		return fmt.Errorf("a request must not make the server fail: %s", a.words())
	case a.status >= http.StatusBadRequest:
		return s.judgeProblem(kind, a)
	case a.status == http.StatusNotModified:
		return nil
	}
	response, ok := o.responses[strconv.Itoa(a.status)]
	if !ok {
		return errors.New("the document has no such answer")
	}
	content := object(object(response)["content"])
	switch {
	case len(content) == 0:
		return nil
	case content[kind] == nil:
		return fmt.Errorf("it is of type %q, not %s", kind, strings.Join(sortedKeys(content), " or "))
	case kind == "text/event-stream":
		return nil
	}
	return s.document.validate(answerName(o.id, strconv.Itoa(a.status), kind), a.body)
}

// finding is what was wrong with answers, the first few of it.
func (s *session) finding() error {
	const most = 5
	all := slices.Sorted(maps.Keys(s.violations))
	if len(all) == 0 {
		return nil
	}
	more := ""
	if len(all) > most {
		more = fmt.Sprintf("; and %d more", len(all)-most)
	}
	return errors.New(strings.Join(all[:min(most, len(all))], "; ") + more)
}

// sleep waits, or until the context ends.
func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}

// eventually repeats a check until it is no error, for as long as things may take.
func (s *session) eventually(ctx context.Context, try func(context.Context) error) error {
	return eventually(ctx, s.cfg.Timeout, try)
}

func eventually(ctx context.Context, timeout time.Duration, try func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	const atFirst, atLast = 20 * time.Millisecond, 2 * time.Second
	var last error
	for wait := atFirst; ; wait = min(2*wait, atLast) {
		err := try(ctx)
		if err == nil {
			return nil
		}
		if ctx.Err() == nil || last == nil {
			last = err
		}
		if sleep(ctx, wait) != nil {
			return fmt.Errorf("%w (after %s)", last, timeout)
		}
	}
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }
