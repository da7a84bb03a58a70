package login

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"golang.org/x/oauth2"

	"github.com/polder-kaas/polder/internal/cli/output"
	"github.com/polder-kaas/polder/internal/program/exit"
)

// flowTimeout is how long a person may take.
const flowTimeout = 5 * time.Minute

// callbackPath is where the browser is sent back to. Issuers take every port of this address (RFC 8252).
const callbackPath = "/callback"

// inBrowser logs in with the browser of this computer: it is sent back to a port of ours with a code that only we can
// change for a token (PKCE). open shows people an address.
func (i *issuer) inBrowser(ctx context.Context, s *session, open func(address string)) error {
	if i.endpoint.AuthURL == "" {
		return exit.Errorf(exit.Usage, "issuer %s has no page to log in; try --device", i.config.URL)
	}
	ctx, cancel := context.WithTimeout(i.context(ctx), flowTimeout)
	defer cancel()
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	state, nonce, verifier := rand.Text(), rand.Text(), oauth2.GenerateVerifier()
	answers := make(chan url.Values, 1)
	server := &http.Server{
		Handler: callbackHandler(state, answers), ReadHeaderTimeout: 10 * time.Second, MaxHeaderBytes: 64 << 10,
	}
	go func() { _ = server.Serve(l) }() // it ends with the flow
	defer func() {
		end, done := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer done()
		_ = server.Shutdown(end) // the page was shown, or nobody waits for it
	}()
	cfg := i.oauth()
	cfg.RedirectURL = "http://" + l.Addr().String() + callbackPath
	// Without consent, some issuers give no refresh token.
	open(cfg.AuthCodeURL(state, oauth2.S256ChallengeOption(verifier), oauth2.SetAuthURLParam("nonce", nonce),
		oauth2.SetAuthURLParam("prompt", "consent")))
	select {
	case <-ctx.Done():
		return fmt.Errorf("nobody has logged in within %s; try again, or with --device", flowTimeout)
	case answer := <-answers:
		if e := answer.Get("error"); e != "" {
			return fmt.Errorf("issuer %s refuses: %s", i.config.URL, output.Sanitize(e+" "+answer.Get("error_description")))
		}
		t, err := cfg.Exchange(ctx, answer.Get("code"), oauth2.VerifierOption(verifier))
		if err != nil {
			return i.explain(err)
		}
		return s.take(t, nonce)
	}
}

// callbackHandler takes the first answer that has our state: another page of the browser knows the port, but not that.
func callbackHandler(state string, answers chan<- url.Values) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		w.Header().Set("Content-Security-Policy", "default-src 'none'")
		w.Header().Set("Cache-Control", "no-store")
		w.Header().Set("Referrer-Policy", "no-referrer")
		if r.URL.Path != callbackPath || subtle.ConstantTimeCompare([]byte(q.Get("state")), []byte(state)) != 1 {
			http.Error(w, "This is no answer to a login of polder.", http.StatusBadRequest)
			return
		}
		select {
		case answers <- q:
			_, _ = io.WriteString(w, "polder has got it; look at its terminal. You can close this page.\n")
		default:
			http.Error(w, "polder has got an answer already.", http.StatusConflict)
		}
	})
}

// onDevice logs in with a browser elsewhere, in which people type a code. show tells them.
func (i *issuer) onDevice(ctx context.Context, s *session, show func(address, code string)) error {
	if i.endpoint.DeviceAuthURL == "" {
		return exit.Errorf(exit.Usage, "issuer %s cannot log in on another device; leave out --device", i.config.URL)
	}
	ctx, cancel := context.WithTimeout(i.context(ctx), flowTimeout)
	defer cancel()
	cfg, verifier := i.oauth(), oauth2.GenerateVerifier()
	d, err := cfg.DeviceAuth(ctx, oauth2.S256ChallengeOption(verifier), oauth2.SetAuthURLParam("prompt", "consent"))
	if err != nil {
		return i.explain(err)
	}
	if !isHTTPS(d.VerificationURI) {
		return fmt.Errorf("issuer %s sends people to an address that is not https: %q", i.config.URL, output.Sanitize(d.VerificationURI))
	}
	show(output.Sanitize(d.VerificationURI), output.Sanitize(d.UserCode))
	t, err := cfg.DeviceAccessToken(ctx, d, oauth2.VerifierOption(verifier))
	if err != nil {
		if ctx.Err() != nil {
			return fmt.Errorf("nobody has logged in within %s; try again", flowTimeout)
		}
		return i.explain(err)
	}
	return s.take(t, "") // the request of a device has no nonce
}

// refresh gets another ID token without a person.
func (i *issuer) refresh(ctx context.Context, s *session) error {
	t, err := i.oauth().TokenSource(i.context(ctx), &oauth2.Token{RefreshToken: s.RefreshToken}).Token()
	if err != nil {
		return i.explain(err)
	}
	return s.take(t, "")
}

// revoke gives a refresh token back, so that nobody can use a copy of it.
func (i *issuer) revoke(ctx context.Context, s *session) error {
	if i.revocation == "" || s.RefreshToken == "" {
		return nil
	}
	form := url.Values{"token": {s.RefreshToken}, "token_type_hint": {"refresh_token"}, "client_id": {i.config.ClientID}}
	req, err := newFormRequest(ctx, i.revocation, form)
	if err != nil {
		return err
	}
	res, err := i.client.Do(req)
	if err != nil {
		return unwrapURLError(err)
	}
	defer res.Body.Close() //nolint:errcheck // it says nothing
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("it answers %s", res.Status)
	}
	return nil
}

func newFormRequest(ctx context.Context, at string, form url.Values) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, at, strings.NewReader(form.Encode()))
	if err == nil {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	return req, err
}
