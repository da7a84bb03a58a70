package testenv

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"maps"
	"math/big"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// Issuer is an OpenID Connect issuer as small as an API server takes it.
type Issuer struct {
	URL     string
	CA      string // PEM
	Address string
	Close   func()
	key     *rsa.PrivateKey
}

// NewIssuer starts an issuer for one test.
func NewIssuer(t testing.TB) *Issuer {
	t.Helper()
	i, err := StartIssuer()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(i.Close)
	return i
}

// StartIssuer starts an issuer for all tests of a package, until it is closed.
func StartIssuer() (*Issuer, error) {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return nil, err
	}
	i := &Issuer{key: key}
	mux := http.NewServeMux()
	mux.HandleFunc("/.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(map[string]any{"issuer": i.URL, "jwks_uri": i.URL + "/keys", "id_token_signing_alg_values_supported": []string{"RS256"}})
	})
	mux.HandleFunc("/keys", func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(map[string]any{"keys": []any{map[string]any{
			"kty": "RSA", "alg": "RS256", "use": "sig", "kid": "1",
			"n": encodeURL(key.N.Bytes()), "e": encodeURL(big.NewInt(int64(key.E)).Bytes()),
		}}})
	})
	s := httptest.NewTLSServer(mux)
	i.URL, i.Address, i.Close = s.URL, s.Listener.Addr().String(), s.Close
	i.CA = string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}))
	return i, nil
}

// Token makes a token that is good for an hour, with further claims.
func (i *Issuer) Token(t testing.TB, audience string, claims map[string]any) string {
	t.Helper()
	now := time.Now()
	all := map[string]any{"iss": i.URL, "aud": audience, "sub": "1", "iat": now.Unix(), "exp": now.Add(time.Hour).Unix()}
	maps.Copy(all, claims)
	var parts [2]string
	for n, v := range []any{map[string]any{"alg": "RS256", "kid": "1", "typ": "JWT"}, all} {
		b, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		parts[n] = encodeURL(b)
	}
	text := parts[0] + "." + parts[1]
	sum := sha256.Sum256([]byte(text))
	sig, err := rsa.SignPKCS1v15(rand.Reader, i.key, crypto.SHA256, sum[:])
	if err != nil {
		t.Fatal(err)
	}
	return text + "." + encodeURL(sig)
}

func encodeURL(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

// WhoAmI says who the holder of a token is for a cluster or a plane.
func WhoAmI(t testing.TB, cfg *rest.Config, token string) (string, error) {
	anonymous := rest.AnonymousClientConfig(cfg)
	anonymous.BearerToken = token
	k, err := kubernetes.NewForConfig(anonymous)
	if err != nil {
		t.Fatal(err)
	}
	r, err := k.AuthenticationV1().SelfSubjectReviews().Create(t.Context(), &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil {
		return "", err
	}
	return r.Status.UserInfo.Username, nil
}
