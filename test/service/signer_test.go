package service

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"math/big"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

// signer is the least that an issuer is: whoever has its key signs tokens. It is for tests of what follows a login; the
// login itself is tested with a real one.
type signer struct {
	*httptest.Server
	key *rsa.PrivateKey
}

func newSigner() (*signer, error) {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return nil, err
	}
	s := &signer{key: key}
	encode := base64.RawURLEncoding.EncodeToString
	s.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Path == "/keys" {
			_ = json.NewEncoder(w).Encode(map[string]any{"keys": []any{map[string]string{
				"kty": "RSA", "alg": "RS256", "use": "sig", "kid": "1", "n": encode(key.N.Bytes()), "e": encode(big.NewInt(int64(key.E)).Bytes()),
			}}})
			return
		}
		_ = json.NewEncoder(w).Encode(map[string]any{
			"issuer": s.URL, "jwks_uri": s.URL + "/keys", "id_token_signing_alg_values_supported": []string{"RS256"},
			"response_types_supported": []string{"id_token"}, "subject_types_supported": []string{"public"},
			"authorization_endpoint": s.URL + "/none", "token_endpoint": s.URL + "/none",
		})
	}))
	return s, nil
}

// configuration is the AuthenticationConfiguration that believes it.
func (s *signer) configuration() string {
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	return fmt.Sprintf("apiVersion: apiserver.config.k8s.io/v1\nkind: AuthenticationConfiguration\njwt:\n"+
		"- issuer: {url: %q, audiences: [polder], certificateAuthority: %q}\n"+
		"  claimMappings: {username: {claim: sub, prefix: 'oidc:'}, groups: {claim: groups, prefix: 'oidc:'}}\n", s.URL, ca)
}

// token is one of somebody, good for a time.
func (s *signer) token(t testing.TB, life time.Duration, name string, groups ...string) string {
	t.Helper()
	encode := func(v any) string {
		b, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return base64.RawURLEncoding.EncodeToString(b)
	}
	now := time.Now()
	text := encode(map[string]string{"alg": "RS256", "kid": "1", "typ": "JWT"}) + "." + encode(map[string]any{
		"iss": s.URL, "aud": "polder", "sub": name, "groups": groups, "iat": now.Add(-time.Minute).Unix(), "exp": now.Add(life).Unix(),
	})
	sum := sha256.Sum256([]byte(text))
	b, err := rsa.SignPKCS1v15(rand.Reader, s.key, crypto.SHA256, sum[:])
	if err != nil {
		t.Fatal(err)
	}
	return text + "." + base64.RawURLEncoding.EncodeToString(b)
}
