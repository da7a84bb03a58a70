package releases_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net/http"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	csv1 "github.com/polder-kaas/polder/api/clusterstack/v1alpha1"
	"github.com/polder-kaas/polder/internal/releases"
	"github.com/polder-kaas/polder/stack/fetch"
	stacks "github.com/polder-kaas/polder/stack/registry"
)

func docker(host, user, password string) string {
	return fmt.Sprintf(`{"auths":{%q:{"auth":%q}}}`, host, base64.StdEncoding.EncodeToString([]byte(user+":"+password)))
}

// basic makes the registry one for a single user.
func basic(user, password string) middleware {
	return func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		if u, p, _ := r.BasicAuth(); u != user || p != password {
			w.Header().Set("Www-Authenticate", `Basic realm="x"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		next.ServeHTTP(w, r)
	}
}

// bearer makes the registry one that takes a single token, and gives none away.
func bearer(token string) middleware {
	return func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		switch {
		case r.URL.Path == "/token":
			w.WriteHeader(http.StatusUnauthorized)
		case r.Header.Get("Authorization") != "Bearer "+token:
			w.Header().Set("Www-Authenticate", `Bearer realm="http://`+r.Host+`/token",service="x"`)
			w.WriteHeader(http.StatusUnauthorized)
		default:
			next.ServeHTTP(w, r)
		}
	}
}

func TestCredentials(t *testing.T) {
	plain, token := start(t, false, nil), start(t, false, nil)
	for _, reg := range []*site{plain, token} {
		publish(t, reg.ref, stacks.Options{}, release(t, "v3", nil))
	}
	plain.between(basic("user", "hunter22"))
	token.between(bearer("t0ken-t0ken"))
	for what, c := range map[string]struct {
		reg  *site
		data map[string]string
		ok   bool
	}{
		"right":              {plain, map[string]string{"username": "user", "password": "hunter22"}, true},
		"with a line's end":  {plain, map[string]string{"username": "user\n", "password": "hunter22\r\n"}, true},
		"wrong":              {plain, map[string]string{"username": "user", "password": "wrong-one"}, false},
		"of docker":          {plain, map[string]string{".dockerconfigjson": docker(plain.host, "user", "hunter22")}, true},
		"of docker, old":     {plain, map[string]string{".dockerconfigjson": docker("https://"+plain.host+"/v1/", "user", "hunter22")}, true},
		"of docker, wrong":   {plain, map[string]string{".dockerconfigjson": docker(plain.host, "user", "wrong-one")}, false},
		"a token":            {token, map[string]string{"token": "t0ken-t0ken"}, true},
		"a wrong token":      {token, map[string]string{"token": "wrong-one-wrong"}, false},
		"a token, of docker": {token, map[string]string{".dockerconfigjson": fmt.Sprintf(`{"auths":{%q:{"registrytoken":"t0ken-t0ken"}}}`, token.host)}, true},
	} {
		l := library(t, releases.Config{Trusted: []string{c.reg.host}}, secret(c.data))
		s := source(t, l, ociWithSecret(c.reg.ref))
		_, _, err := l.Pull(t.Context(), s, name(t, "v3"), "")
		_, listErr := s.List(t.Context(), nil)
		for _, err := range []error{err, listErr} {
			if c.ok && err != nil || !c.ok && !errors.Is(err, stacks.ErrCredentials) {
				t.Errorf("%s: %v", what, err)
			}
			shown := fmt.Sprintf("%v %+v %#v %v %#v", s, s, s, err, err)
			if strings.Contains(shown, "hunter22") || strings.Contains(shown, "t0ken") || strings.Contains(shown, "wrong-one") {
				t.Errorf("%s: it shows %s", what, shown)
			}
		}
	}
}

// The registry of the default has the operator's credentials, and the tenant's has not.
func TestDefaultCredentials(t *testing.T) {
	reg := start(t, false, nil)
	publish(t, reg.ref, stacks.Options{}, release(t, "v3", nil))
	reg.between(basic("user", "hunter22"))
	l := library(t, releases.Config{
		Trusted: []string{reg.host},
		Default: &releases.ConfiguredSource{Reference: reg.ref, Options: stacks.Options{Username: "user", Password: "hunter22"}},
	})
	if _, _, err := l.Pull(t.Context(), source(t, l, clusterStack(nil)), name(t, "v3"), ""); err != nil {
		t.Errorf("the default: %v", err)
	}
	if _, _, err := l.Pull(t.Context(), source(t, l, oci(reg.ref)), name(t, "v3"), ""); !errors.Is(err, stacks.ErrCredentials) {
		t.Errorf("the same, by name: %v", err)
	}
}

// strangerCA is the certificate of an authority that has signed nothing here.
func strangerCA(t *testing.T) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{SerialNumber: big.NewInt(1), IsCA: true, BasicConstraintsValid: true, NotAfter: time.Now().Add(time.Hour)}
	b, err := x509.CreateCertificate(rand.Reader, c, c, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return asPEM(b)
}

func asPEM(der []byte) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
}

func TestCustomCA(t *testing.T) {
	reg := start(t, true, nil)
	ca := asPEM(reg.server.Certificate().Raw)
	for what, c := range map[string]struct {
		data map[string]string
		cs   *csv1.ClusterStack
		want string
	}{
		"vouched for":          {map[string]string{"ca.crt": ca}, ociWithSecret(reg.ref), "not in oci://"},
		"and with credentials": {map[string]string{"ca.crt": ca, "username": "u", "password": "hunter22"}, ociWithSecret(reg.ref), "not in oci://"},
		"without":              {map[string]string{}, oci(reg.ref), ""},
		"by another":           {map[string]string{"ca.crt": strangerCA(t)}, ociWithSecret(reg.ref), "certificate"},
	} {
		l := library(t, releases.Config{Trusted: []string{reg.host}}, secret(c.data))
		_, _, err := l.Pull(t.Context(), source(t, l, c.cs), name(t, "v3"), "")
		if err == nil || !strings.Contains(err.Error(), c.want) || errors.Is(err, stacks.ErrNotFound) != strings.HasPrefix(c.want, "not in") {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// A tenant's source is not opened at a private address, unless the operator trusts it.
func TestPrivateAddresses(t *testing.T) {
	reg := start(t, false, nil)
	publish(t, reg.ref, stacks.Options{}, release(t, "v3", nil))
	reg.requests.Store(0)
	secure := start(t, true, nil)
	ca := asPEM(secure.server.Certificate().Raw)
	_, port, _ := strings.Cut(reg.host, ":")
	l := library(t, releases.Config{Trusted: []string{"127.0.0.1:1", "registry.example.org"}, Default: &releases.ConfiguredSource{Reference: reg.ref}},
		secret(map[string]string{"ca.crt": ca}))
	for _, cs := range []*csv1.ClusterStack{
		oci(reg.ref), oci("oci://localhost:" + port + "/kaas/stacks"), oci("oci://[::1]:" + port + "/kaas/stacks"), oci("oci://0.0.0.0:" + port + "/kaas/stacks"),
		oci("oci://169.254.169.254/latest/meta-data"), oci("oci://10.0.0.1/x"), ociWithSecret(secure.ref),
	} {
		s := source(t, l, cs)
		_, _, err := l.Pull(t.Context(), s, name(t, "v3"), "")
		_, listErr := s.List(t.Context(), nil)
		for _, err := range []error{err, listErr} {
			if !errors.Is(err, fetch.ErrRefused) || !strings.Contains(err.Error(), "--stack-trust") {
				t.Errorf("%s: %v", s, err)
			}
		}
	}
	if n := reg.requests.Load() + secure.requests.Load(); n != 0 {
		t.Errorf("%d requests came through", n)
	}
	if _, _, err := l.Pull(t.Context(), source(t, l, clusterStack(nil)), name(t, "v3"), ""); err != nil {
		t.Errorf("the operator's own: %v", err)
	}
	l = library(t, releases.Config{Trusted: []string{reg.host}})
	if _, _, err := l.Pull(t.Context(), source(t, l, oci(reg.ref)), name(t, "v3"), ""); err != nil {
		t.Errorf("trusted: %v", err)
	}
}

func TestInvalidSources(t *testing.T) {
	two := map[string]string{"ours": t.TempDir(), "another": t.TempDir()}
	const ref = "oci://registry.example.org/kaas/stacks"
	with := func(data map[string]string) []client.Object { return []client.Object{secret(data)} }
	for what, c := range map[string]struct {
		config  releases.Config
		secrets []client.Object
		cs      *csv1.ClusterStack
		kind    error
		want    string
	}{
		"nothing": {cs: clusterStack(nil), kind: releases.ErrNoSource, want: "spec.source is missing, and this plane has no default"},
		"neither": {cs: clusterStack(&csv1.Source{}), want: "must have one of oci and directory"},
		"both":    {cs: clusterStack(&csv1.Source{OCI: ref, Directory: "ours"}), want: "must have one of oci and directory"},
		"an unknown directory": {config: releases.Config{Directories: two}, cs: clusterStack(&csv1.Source{Directory: "theirs"}),
			want: `spec.source.directory: there is no directory "theirs" on this plane; there are another, ours`},
		"no directories": {cs: clusterStack(&csv1.Source{Directory: "../x"}), want: "this plane has no directories of releases"},
		"a directory with credentials": {config: releases.Config{Directories: two}, cs: clusterStack(&csv1.Source{
			Directory: "ours", SecretRef: &csv1.SecretReference{Name: "access"},
		}),
			want: "a directory takes no credentials"},
		"a path":         {cs: oci("/etc"), want: `spec.source.oci: "/etc" is no repository`},
		"another scheme": {cs: oci("https://registry.example.org/x"), want: "references that begin with"},
		"no host":        {cs: oci("oci:///x"), want: "is no host"},
		"a tag":          {cs: oci(ref + ":docker-ferrol-1-27-v3"), want: "is one release; name the place of all, " + ref},
		"a digest":       {cs: oci(ref + "@sha256:" + strings.Repeat("0", 64)), want: "is one release"},
		"user in it":     {cs: oci("oci://user:hunter22@registry.example.org/x"), want: "has no user and no password in it"},
		"no Secret":      {cs: ociWithSecret(ref), want: `there is no Secret "access" in namespace ns`},
		"an empty Secret": {secrets: with(nil), cs: ociWithSecret(ref),
			want: `Secret "access" has nothing that is of use; it needs username and password, token, .dockerconfigjson or ca.crt`},
		"a wrong key": {secrets: with(map[string]string{"passwd": "hunter22", "username": ""}), cs: ociWithSecret(ref), want: "has nothing that is of use"},
		"no password": {secrets: with(map[string]string{"username": "hunter22"}), cs: ociWithSecret(ref), want: "has a username and no password"},
		"no username": {secrets: with(map[string]string{"password": "hunter22"}), cs: ociWithSecret(ref), want: "has a password and no username"},
		"two forms": {secrets: with(map[string]string{"username": "u", "password": "hunter22", "token": "hunter22"}), cs: ociWithSecret(ref),
			want: "keep the one that is meant"},
		"a CA that is none": {secrets: with(map[string]string{"ca.crt": "hunter22"}), cs: ociWithSecret(ref), want: "has a ca.crt that is no certificate in PEM"},
		"of another host": {secrets: with(map[string]string{".dockerconfigjson": docker("other.example.org", "u", "hunter22")}), cs: ociWithSecret(ref),
			want: `Secret "access": reading credentials of docker: there are no credentials for registry.example.org`},
		"no JSON": {secrets: with(map[string]string{".dockerconfigjson": "hunter22"}), cs: ociWithSecret(ref), want: "not of the form of a config.json"},
		"no base64": {secrets: with(map[string]string{".dockerconfigjson": `{"auths":{"registry.example.org":{"auth":"hunter22!"}}}`}),
			cs: ociWithSecret(ref), want: "not of the form of a config.json"},
		"no user inside": {secrets: with(map[string]string{".dockerconfigjson": `{"auths":{"registry.example.org":{"auth":"aHVudGVyMjI="}}}`}),
			cs: ociWithSecret(ref), want: "auth is user:password"},
	} {
		if c.kind == nil {
			c.kind = releases.ErrInvalidSource
		}
		s, err := library(t, c.config, c.secrets...).Source(t.Context(), c.cs)
		if s != nil || !errors.Is(err, c.kind) || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "hunter22") {
			t.Errorf("%s: %v, want %s", what, err, c.want)
		}
	}
}

// A Secret that cannot be read now is not one that is wrong.
func TestSecretUnreadable(t *testing.T) {
	c := fake.NewClientBuilder().WithInterceptorFuncs(interceptor.Funcs{
		Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return context.DeadlineExceeded
		},
	}).Build()
	_, err := library(t, releases.Config{Secrets: c}).Source(t.Context(), ociWithSecret("oci://registry.example.org/x"))
	if !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, releases.ErrInvalidSource) {
		t.Error(err)
	}
}

func TestNew(t *testing.T) {
	secrets := fake.NewClientBuilder().Build()
	for what, c := range map[string]struct {
		config releases.Config
		want   string
	}{
		"no directory": {releases.Config{Secrets: secrets}, "name one"},
		"no Secrets":   {releases.Config{Dir: t.TempDir()}, "nobody to read Secrets from"},
		"a wrong default": {releases.Config{Dir: t.TempDir(), Secrets: secrets, Default: &releases.ConfiguredSource{Reference: "ftp://x"}},
			"the default source of releases: references that begin with"},
		"a default that is a release": {releases.Config{Dir: t.TempDir(), Secrets: secrets,
			Default: &releases.ConfiguredSource{Reference: "oci://h/x:docker-ferrol-1-27-v3"}}, "is one release"},
		"a directory that is none": {releases.Config{Dir: t.TempDir(), Secrets: secrets, Directories: map[string]string{"a": "oci://h/x"}},
			`directory "a" of releases: oci://h/x is no directory`},
		"a directory of a release": {releases.Config{Dir: t.TempDir(), Secrets: secrets, Directories: map[string]string{"a": "/x/docker-ferrol-1-27-v3"}},
			"is one release"},
	} {
		if _, err := releases.New(c.config); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", what, err, c.want)
		}
	}
}
