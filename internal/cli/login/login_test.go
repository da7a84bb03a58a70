package login

import (
	"context"
	"encoding/base64"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/oauth2"
)

// Another page of the same browser can find the port, but not the state.
func TestCallbackTakesOnlyOurAnswer(t *testing.T) {
	answers := make(chan url.Values, 1)
	h := callbackHandler("s", answers)
	for _, c := range []struct {
		target string
		code   int
	}{
		{"/callback?code=evil", http.StatusBadRequest}, {"/callback?code=evil&state=", http.StatusBadRequest},
		{"/other?code=evil&state=s", http.StatusBadRequest}, {"/callback?code=good&state=s", http.StatusOK}, {"/callback?code=late&state=s", http.StatusConflict},
	} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, c.target, http.NoBody))
		if w.Code != c.code || strings.Contains(w.Body.String(), "evil") || w.Header().Get("Content-Security-Policy") == "" {
			t.Errorf("%s: %d %s", c.target, w.Code, w.Body)
		}
	}
	if got := <-answers; got.Get("code") != "good" {
		t.Errorf("taken: %v", got)
	}
}

func tokenOf(claims string) *oauth2.Token {
	raw := "h." + base64.RawURLEncoding.EncodeToString([]byte(claims)) + ".s"
	return (&oauth2.Token{RefreshToken: "r2"}).WithExtra(map[string]any{"id_token": raw})
}

func TestTake(t *testing.T) {
	for name, c := range map[string]struct {
		token *oauth2.Token
		want  string // in the error; empty: taken
	}{
		"ours":              {tokenOf(`{"iss":"https://i","nonce":"n","exp":1000}`), ""},
		"of another login":  {tokenOf(`{"iss":"https://i","nonce":"x","exp":1000}`), "for another login"},
		"of another issuer": {tokenOf(`{"iss":"https://j","nonce":"n","exp":1000}`), `of issuer "https://j"`},
		"no token":          {&oauth2.Token{}, "gave no ID token"},
		"no JSON":           {tokenOf(`{`), "cannot be read"},
	} {
		t.Run(name, func(t *testing.T) {
			s := session{Issuer: issuerConfig{URL: "https://i"}, RefreshToken: "r1"}
			err := s.take(c.token, "n")
			if c.want == "" {
				if err != nil || !s.Expiry.Equal(time.Unix(1000, 0)) || s.RefreshToken != "r2" || s.IDToken == "" {
					t.Errorf("%+v, %v", s, err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), c.want) || s.IDToken != "" || s.RefreshToken != "r1" {
				t.Errorf("%+v, %v", s, err)
			}
		})
	}
	s := session{Issuer: issuerConfig{URL: "https://i"}, RefreshToken: "r1"}
	kept := tokenOf(`{"iss":"https://i","exp":1000}`)
	kept.RefreshToken = ""
	if err := s.take(kept, ""); err != nil || s.RefreshToken != "r1" {
		t.Errorf("an issuer that gives no new refresh token: %+v, %v", s, err)
	}
}

func TestSessions(t *testing.T) {
	s := sessions{filepath.Join(t.TempDir(), "login")}
	if _, err := s.load("a"); !errors.Is(err, errNoSession) {
		t.Errorf("nothing yet: %v", err)
	}
	want := session{Server: "https://p", IDToken: "t", Expiry: time.Unix(1000, 0).UTC()}
	if err := s.save("a", want); err != nil {
		t.Fatal(err)
	}
	if got, err := s.load("a"); err != nil || got.Server != want.Server || !got.Expiry.Equal(want.Expiry) {
		t.Errorf("%+v, %v", got, err)
	}
	for _, name := range []string{"", "../a", "a/b", ".", "a.", "-a", strings.Repeat("a", 101)} {
		if err := s.save(name, want); err == nil {
			t.Errorf("%q is taken for a name", name)
		}
	}
	unlock, err := s.lock(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.lock(ended, "a"); err == nil {
		t.Error("locked twice")
	}
	unlock()
	if unlock, err := s.lock(t.Context(), "a"); err != nil {
		t.Error(err)
	} else {
		unlock()
	}
	if got := s.names(); len(got) != 1 || got[0] != "a" {
		t.Errorf("names %q", got)
	}
	if err := os.WriteFile(filepath.Join(s.dir, "a.json"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := s.load("a"); err == nil || !strings.Contains(err.Error(), "is damaged") {
		t.Errorf("a damaged file: %v", err)
	}
	if err := s.remove("a"); err != nil || len(s.names()) > 0 {
		t.Errorf("removed: %v", err)
	}
}

// TestPrepare takes the URLs of both APIs of a plane, each as what a token of the login is for.
func TestPrepare(t *testing.T) {
	store := sessions{filepath.Join(t.TempDir(), "login")}
	for url, want := range map[string]struct{ server, name string }{
		"https://p.example.org:7443/": {"https://p.example.org:7443", "polder-p.example.org-7443"},
		"https://p.example.org/v1":    {"https://p.example.org/v1", "polder-p.example.org"},
		"https://p.example.org/v1/":   {"https://p.example.org/v1", "polder-p.example.org"},
		"https://p.example.org/v2":    {}, "http://p.example.org/v1": {}, "https://p.example.org/v1?a": {}, "p.example.org": {},
	} {
		o := &loginOptions{server: url, issuer: issuerConfig{URL: "https://i"}}
		s, err := o.prepare(store)
		if (err == nil) != (want.server != "") || err == nil && (s.Server != want.server || o.name != want.name) {
			t.Errorf("%s: %+v %q, %v", url, s, o.name, err)
		}
	}
}
