package conformance

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// problem is what the suite reads of one.
type problem struct {
	Title  string
	Status int
	Reason string
	Detail string
	Errors []struct{ Location, Message string }
}

func (a *answer) problem() problem {
	var p problem
	_ = json.Unmarshal(a.body, &p) // one that cannot be read is found by judgeProblem
	return p
}

// judgeProblem says what of a refusal is not as RFC 9457 and the document have it.
func (s *session) judgeProblem(kind string, a *answer) error {
	if kind != "application/problem+json" {
		return fmt.Errorf("it is of type %q, not application/problem+json", kind)
	}
	if err := s.document.validate(problemSchema, a.body); err != nil {
		return err
	}
	switch p := a.problem(); {
	case p.Status != a.status:
		return fmt.Errorf("the problem says that its status is %d", p.Status)
	case p.Detail == "":
		return errors.New("the problem has no detail, which says to people what is wrong")
	case strings.ContainsAny(p.Detail, "\n\r"):
		return errors.New("the problem's detail has more than one line")
	case a.status == http.StatusUnauthorized && a.header.Get("WWW-Authenticate") == "":
		return errors.New("it has no WWW-Authenticate, which RFC 9110 asks for")
	}
	return nil
}

// wantLocation is an error unless a problem names a field.
func (a *answer) wantLocation(field string) error {
	p := a.problem()
	locations := []string{}
	for _, e := range p.Errors {
		if e.Location == field && e.Message != "" {
			return nil
		}
		locations = append(locations, e.Location)
	}
	slices.Sort(locations)
	return fmt.Errorf("the answer to %s is to have errors with the location %s; it has %q, and says: %s", a.what, field,
		locations, a.words())
}

// wantWords is an error unless a problem has some words in its detail or its errors.
func (a *answer) wantWords(words string) error {
	p := a.problem()
	text := p.Detail
	for _, e := range p.Errors {
		text += " " + e.Location + " " + e.Message
	}
	if strings.Contains(text, words) {
		return nil
	}
	return fmt.Errorf("the answer to %s is to name %s; it says: %s", a.what, words, a.words())
}

// wantReason is an error unless a problem has a reason.
func (a *answer) wantReason(reason string) error {
	if p := a.problem(); p.Reason != reason {
		return fmt.Errorf("the answer to %s is to have the reason %s; it has %q", a.what, reason, p.Reason)
	}
	return nil
}
