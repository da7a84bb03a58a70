package lifecycle

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

// checkPrefix begins the names of polderd's own checks of /readyz.
const checkPrefix = "polder-"

// maxReadyz bounds what is read of an answer that has a few dozen lines.
const maxReadyz = 64 << 10

// readyzTimeout bounds each question.
const readyzTimeout = 5 * time.Second

// FailingComponents asks the running API which components do not serve at this moment, and why; a reason may be empty.
// An error means that the API gave no answer.
func (p *Plane) FailingComponents(ctx context.Context) (failing map[string]string, err error) {
	res, err := p.send(ctx, http.MethodGet, "/readyz?verbose", readyzTimeout)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close() //nolint:errcheck // read to its end below
	names, err := parseReadyz(io.LimitReader(res.Body, maxReadyz))
	if err != nil {
		return nil, err
	}
	if len(names) == 0 && res.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("it answers %s, without saying why", res.Status)
	}
	failing = map[string]string{}
	for _, name := range names {
		failing[strings.TrimPrefix(name, checkPrefix)] = p.failureReason(ctx, name)
	}
	return failing, nil
}

// failureReason asks for one check: only alone does it give its reason.
func (p *Plane) failureReason(ctx context.Context, check string) string {
	res, err := p.send(ctx, http.MethodGet, "/readyz/"+check, readyzTimeout)
	if err != nil {
		return ""
	}
	defer res.Body.Close() //nolint:errcheck // read below as far as it matters
	s := bufio.NewScanner(io.LimitReader(res.Body, maxReadyz))
	if !s.Scan() {
		return ""
	}
	reason, ok := strings.CutPrefix(s.Text(), "internal server error: ")
	if !ok {
		return "" // it is well again
	}
	return reason
}

// parseReadyz reads lines like "[-]polder-etcd failed: reason withheld" and returns the names of the checks.
func parseReadyz(r io.Reader) ([]string, error) {
	var names []string
	s := bufio.NewScanner(r)
	for s.Scan() {
		if line, ok := strings.CutPrefix(s.Text(), "[-]"); ok {
			name, _, _ := strings.Cut(line, " ")
			names = append(names, name)
		}
	}
	return names, s.Err()
}
