package conformance

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"net/http"
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
