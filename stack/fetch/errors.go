package fetch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"syscall"
	"unicode"

	"github.com/polder-kaas/polder/stack/text"
)

// Errors that callers tell apart.
var (
	// ErrRefused is every error of the policy, the number of redirects too: asking again is no use.
	ErrRefused = errors.New("refused")
	// ErrTooLarge is a body above the caller's limit.
	ErrTooLarge = errors.New("too large")
)

// StatusError is an answer other than 200.
type StatusError struct {
	Host string
	Code int
}

func (e *StatusError) Error() string {
	return strings.TrimSpace(fmt.Sprintf("%s answers %d %s", e.Host, e.Code, http.StatusText(e.Code)))
}

// explainedError is an error as people read it, with its cause for errors.Is.
type explainedError struct {
	text  string
	cause error
}

func (s *explainedError) Error() string { return s.text }

// Unwrap is the cause, whose text may have secrets in it.
func (s *explainedError) Unwrap() error { return s.cause }

func tooLargeError(host string, most int64) error {
	return &explainedError{fmt.Sprintf("%s sends more than the %d bytes that are taken", host, most), ErrTooLarge}
}

// Explain makes one sentence of an error of the client: with the host, without users, passwords and
// queries of addresses. The host is for errors that do not name one, as those of reading a body.
// errors.Is finds ErrRefused, ErrStalled and the context's errors in it.
func Explain(host string, err error) error {
	var ue *url.Error
	if errors.As(err, &ue) {
		if u, e := url.Parse(ue.URL); e == nil && u.Host != "" {
			host = u.Host
		}
		err = ue.Err
	}
	var (
		ref   *policyError
		dns   *net.DNSError
		netOp *net.OpError
		slow  net.Error
	)
	switch {
	// The order matters: a refusal and a time-out come wrapped in errors of the network.
	case err == nil:
		return nil
	case errors.As(err, &ref):
		return ref
	case errors.Is(err, ErrStalled):
		return &explainedError{host + " sends almost nothing any more, and was given up", ErrStalled}
	case errors.Is(err, context.Canceled):
		return &explainedError{host + ": the request was cancelled", context.Canceled}
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &slow) && slow.Timeout():
		return &explainedError{host + " took too long, and was given up", context.DeadlineExceeded}
	case errors.As(err, &dns) && dns.IsNotFound:
		return &explainedError{dns.Name + " is not known: there is no such host", dns}
	case errors.Is(err, http.ErrSchemeMismatch):
		return &explainedError{host + " speaks plain http, not https", http.ErrSchemeMismatch}
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF), errors.Is(err, syscall.ECONNRESET),
		errors.Is(err, syscall.EPIPE):
		return &explainedError{host + " ended the connection too early", io.ErrUnexpectedEOF}
	case errors.As(err, &netOp):
		return &explainedError{host + " cannot be reached: " + Sanitize(netOp.Err.Error()), netOp}
	}
	return &explainedError{host + ": " + Sanitize(err.Error()), err}
}

// urlPattern matches addresses; its groups leave out user, password, query and fragment.
var urlPattern = regexp.MustCompile(`([a-zA-Z][a-zA-Z0-9+.-]*://)(?:[^\s"'/]*@)?([^\s"'?#]*)[^\s"']*`)

// maxSanitized is how many bytes Sanitize leaves of a text.
const maxSanitized = 300

// Sanitize makes one line of a text from outside, of bounded length and without secrets in addresses.
func Sanitize(s string) string {
	s = strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) {
			return ' '
		}
		if !unicode.IsPrint(r) {
			return -1
		}
		return r
	}, s)
	return text.Truncate(strings.TrimSpace(urlPattern.ReplaceAllString(s, "$1$2")), maxSanitized)
}
