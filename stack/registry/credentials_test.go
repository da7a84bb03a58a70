package registry_test

import (
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/registry"

	stacks "github.com/polder-kaas/polder/stack/registry"
)

func basicAuth(user, password string) middleware {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if u, p, _ := r.BasicAuth(); u != user || p != password {
				w.Header().Set("Www-Authenticate", `Basic realm="x"`)
				http.Error(w, fmt.Sprintf(`{"errors":[{"code":"UNAUTHORIZED","message":"%s is not the password"}]}`, p), http.StatusUnauthorized)
				return
			}
			next.ServeHTTP(w, r)
		})
	}
}

// tokens makes a registry want a token, and give one for the right password.
func tokens(user, password string) middleware {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/token" {
				if u, p, _ := r.BasicAuth(); u != user || p != password {
					http.Error(w, "{}", http.StatusUnauthorized)
					return
				}
				_ = json.NewEncoder(w).Encode(map[string]string{"token": "t0ken-t0ken"})
				return
			}
			if r.Header.Get("Authorization") != "Bearer t0ken-t0ken" {
				w.Header().Set("Www-Authenticate", `Bearer realm="http://`+r.Host+`/token",service="x"`)
				w.WriteHeader(http.StatusUnauthorized)
				return
			}
			next.ServeHTTP(w, r)
		})
	}
}

// dockerConfig writes a config.json for a host, which also names a helper.
func dockerConfig(t *testing.T, ref, user, password string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config.json")
	if err := os.WriteFile(path, []byte(dockerAuths(host(ref), user, password)), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func host(ref string) string {
	h, _, _ := strings.Cut(strings.TrimPrefix(ref, "oci://"), "/")
	return h
}

func dockerAuths(host, user, password string) string {
	return fmt.Sprintf(`{"auths":{%q:{"auth":%q}},"credsStore":"evil","credHelpers":{%q:"evil"}}`, host,
		base64.StdEncoding.EncodeToString([]byte(user+":"+password)), host)
}

func TestCredentials(t *testing.T) {
	for _, kind := range []struct {
		name string
		wrap middleware
	}{{"basic", basicAuth("user", "hunter22")}, {"token", tokens("user", "hunter22")}} {
		ref := start(t, kind.wrap)
		for name, c := range map[string]struct {
			o    stacks.Options
			want string
		}{
			"right":           {stacks.Options{Username: "user", Password: "hunter22"}, ""},
			"of docker":       {stacks.Options{DockerConfig: dockerConfig(t, ref, "user", "hunter22")}, ""},
			"wrong":           {stacks.Options{Username: "user", Password: "wrong-password"}, "refuses these credentials (401); check the user and the password"},
			"wrong of docker": {stacks.Options{DockerConfig: dockerConfig(t, ref, "user", "wrong-password")}, "refuses these credentials (401)"},
			"of a Secret":     {stacks.Options{DockerAuths: stacks.Secret(dockerAuths(host(ref), "user", "hunter22"))}, ""},
			"wrong in Secret": {stacks.Options{DockerAuths: stacks.Secret(dockerAuths(host(ref), "user", "wrong-password"))}, "refuses these credentials (401)"},
			"none":            {stacks.Options{}, "asks for credentials (401); give a user and a password"},
			"of another host": {stacks.Options{DockerConfig: dockerConfig(t, "oci://other/x", "user", "hunter22")}, "asks for credentials (401)"},
		} {
			s, r := open(t, ref, c.o)
			_, publishErr := s.Publish(t.Context(), release(t, "v3", nil))
			_, pullErr := s.Pull(t.Context(), r.WithTag(v3))
			_, listErr := s.List(t.Context(), nil)
			for _, err := range []error{publishErr, pullErr, listErr} {
				if c.want == "" {
					if err != nil {
						t.Errorf("%s, %s: %v", kind.name, name, err)
					}
					continue
				}
				if !errors.Is(err, stacks.ErrCredentials) || !strings.HasSuffix(err.Error(), c.want) && !strings.Contains(err.Error(), c.want) ||
					strings.Contains(err.Error(), "password\"") || strings.Contains(err.Error(), "wrong") {
					t.Errorf("%s, %s: %v", kind.name, name, err)
				}
			}
		}
	}
}

func TestToken(t *testing.T) {
	s, _ := open(t, start(t, tokens("user", "hunter22")), stacks.Options{Token: "t0ken-t0ken"})
	publish(t, s, release(t, "v3", nil))
}

// What the registry repeats of a secret is not shown.
func TestEchoedSecrets(t *testing.T) {
	for _, status := range []int{http.StatusForbidden, http.StatusBadRequest, http.StatusTeapot} {
		ref := start(t, basicAuth("user", "hunter22"), func(http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				http.Error(w, fmt.Sprintf(`{"errors":[{"code":"DENIED","message":"quota; you are hunter22\n\u001b[31m%s","detail":"hunter22"}]}`,
					r.Header.Get("Authorization")), status)
			})
		})
		s, _ := open(t, ref, stacks.Options{Username: "user", Password: "hunter22"})
		_, err := s.List(t.Context(), nil)
		if err == nil || !strings.Contains(err.Error(), "denied: quota; you are ***") || strings.Contains(err.Error(), "hunter22") ||
			strings.Contains(err.Error(), "dXNlcj") || strings.ContainsAny(err.Error(), "\n\x1b") {
			t.Errorf("%d: %q", status, err)
		}
	}
	ref := start(t, at("/tags/list$", func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
		w.Header().Set("Link", "<http://hunter22.test/hunter22>")
		_, _ = w.Write([]byte("{}"))
	}))
	s, _ := open(t, ref, stacks.Options{Username: "user", Password: "hunter22"})
	if _, err := s.List(t.Context(), nil); err == nil || strings.Contains(err.Error(), "hunter22") || !strings.Contains(err.Error(), "***") {
		t.Errorf("%v", err)
	}
}

func TestBadDockerConfig(t *testing.T) {
	bad := filepath.Join(t.TempDir(), "config.json")
	if err := os.WriteFile(bad, []byte(`{"auths":{"host.test":{"auth":"hunter22"}}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		bad:                                  "those for host.test are not of the form of a config.json",
		filepath.Join(t.TempDir(), "absent"): "no such file",
	} {
		if _, _, err := stacks.Open(t.Context(), "oci://host.test/x", stacks.Options{DockerConfig: path}); err == nil || !strings.Contains(err.Error(), want) ||
			strings.Contains(err.Error(), "hunter22") {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// A content for the wrong host, or of another form, is an error at once, without what is in it.
func TestBadDockerAuths(t *testing.T) {
	for content, want := range map[string]string{
		`hunter22`: "not of the form of a config.json",
		`{"auths":{"host.test":{"auth":"hunter22!"}}}`:               "not of the form of a config.json",
		`{"auths":{"host.test":{"auth":"aHVudGVyMjI="}}}`:            "those for host.test are not of the form of a config.json: auth is user:password, in base64",
		`{"auths":{"host.test":{}}}`:                                 "there are no credentials for host.test",
		dockerAuths("host.test:5000", "u", "hunter22"):               "there are no credentials for host.test",
		dockerAuths("other.test", "u", "hunter22"):                   "there are no credentials for host.test",
		dockerAuths("https://other.test/host.test", "u", "hunter22"): "there are no credentials for host.test",
	} {
		_, _, err := stacks.Open(t.Context(), "oci://host.test/x", stacks.Options{DockerAuths: stacks.Secret(content)})
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hunter22") {
			t.Errorf("%v, want %s", err, want)
		}
	}
	for address, host := range map[string]string{
		"host.test": "host.test", "https://host.test/v1/": "host.test", "HOST.test/": "host.test",
		"https://index.docker.io/v1/": "docker.io", "index.docker.io": "registry-1.docker.io",
	} {
		if _, _, err := stacks.Open(t.Context(), "oci://"+host+"/x", stacks.Options{DockerAuths: stacks.Secret(dockerAuths(address, "u", "hunter22"))}); err != nil {
			t.Errorf("%s for %s: %v", address, host, err)
		}
	}
}

// A registry on this machine may speak https, if there is a certificate authority for it; otherwise the error
// says what is wrong.
func TestHTTPS(t *testing.T) {
	server := httptest.NewUnstartedServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	defer server.Close()
	roots := x509.NewCertPool()
	roots.AddCert(server.Certificate())
	ref := "oci://" + server.Listener.Addr().String() + "/kaas/stacks"
	s, r := open(t, ref, stacks.Options{Roots: roots})
	publish(t, s, release(t, "v3", nil))
	if _, err := s.Pull(t.Context(), r.WithTag(v3)); err != nil {
		t.Error(err)
	}
	plain := start(t)
	s, r = open(t, plain, stacks.Options{Roots: roots})
	if _, err := s.Pull(t.Context(), r.WithTag(v3)); err == nil || !strings.Contains(err.Error(), "speaks plain http, not https") {
		t.Error(err)
	}
	s, r = open(t, ref, stacks.Options{Roots: x509.NewCertPool()})
	if _, err := s.Pull(t.Context(), r.WithTag(v3)); err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Error(err)
	}
}
