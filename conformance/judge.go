package conformance

import (
	"errors"
	"fmt"
	"maps"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

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
