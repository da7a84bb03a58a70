package service

import (
	"fmt"
	"testing"
	"time"

	"github.com/polder-kaas/polder/test/testenv"
)

// signer is an issuer whose tokens say who somebody is, without a login. It is for tests of what follows one; the login
// itself is tested with a real issuer.
type signer struct{ *testenv.Issuer }

func newSigner() (*signer, error) {
	i, err := testenv.StartIssuer()
	return &signer{i}, err
}

// configuration is the AuthenticationConfiguration that believes it.
func (s *signer) configuration() string {
	return fmt.Sprintf("apiVersion: apiserver.config.k8s.io/v1\nkind: AuthenticationConfiguration\njwt:\n"+
		"- issuer: {url: %q, audiences: [polder], certificateAuthority: %q}\n"+
		"  claimMappings: {username: {claim: sub, prefix: 'oidc:'}, groups: {claim: groups, prefix: 'oidc:'}}\n", s.URL, s.CA)
}

// token is one of somebody, good for a time.
func (s *signer) token(t testing.TB, life time.Duration, name string, groups ...string) string {
	t.Helper()
	return s.Token(t, "polder", map[string]any{"sub": name, "groups": groups, "exp": time.Now().Add(life).Unix()})
}
