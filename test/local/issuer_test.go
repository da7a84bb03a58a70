package local

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"math/big"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

// issuer is an OpenID Connect issuer as small as an API server takes it.
type issuer struct {
	url     string
	ca      string // PEM
	address string
	key     *rsa.PrivateKey
}

func newIssuer(t *testing.T) *issuer {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	i := &issuer{key: key}
	mux := http.NewServeMux()
	mux.HandleFunc("/.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(map[string]any{"issuer": i.url, "jwks_uri": i.url + "/keys", "id_token_signing_alg_values_supported": []string{"RS256"}})
	})
	mux.HandleFunc("/keys", func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(map[string]any{"keys": []any{map[string]any{
			"kty": "RSA", "alg": "RS256", "use": "sig", "kid": "1",
			"n": encode(key.N.Bytes()), "e": encode(big.NewInt(int64(key.E)).Bytes()),
		}}})
	})
	s := httptest.NewTLSServer(mux)
	t.Cleanup(s.Close)
	i.url, i.address = s.URL, s.Listener.Addr().String()
	i.ca = string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}))
	return i
}

func (i *issuer) token(t *testing.T, audience, email string) string {
	t.Helper()
	now := time.Now()
	var parts [2]string
	for n, v := range []any{
		map[string]any{"alg": "RS256", "kid": "1", "typ": "JWT"},
		map[string]any{"iss": i.url, "aud": audience, "sub": "1", "email": email, "iat": now.Unix(), "exp": now.Add(time.Hour).Unix()},
	} {
		b, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		parts[n] = encode(b)
	}
	text := parts[0] + "." + parts[1]
	sum := sha256.Sum256([]byte(text))
	sig, err := rsa.SignPKCS1v15(rand.Reader, i.key, crypto.SHA256, sum[:])
	if err != nil {
		t.Fatal(err)
	}
	return text + "." + encode(sig)
}

func encode(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }
