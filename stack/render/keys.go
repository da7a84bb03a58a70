package render

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"errors"
	"fmt"
)

// Keys are private keys that charts were given, as PKCS #8, by the identity of the call that asked for them: a hash of
// chart, template file, function, arguments and of how many such calls came before.
type Keys map[string][]byte

// maxKeys is how many private keys the charts of one rendering may ask for. As many of the largest kind have room in
// the Secret that a record is kept in.
const maxKeys = 256

// maxKeySize is more than the largest key takes in the output of the child.
const maxKeySize = 4 << 10

type keyKind int

const (
	rsa2048 keyKind = iota
	rsa4096
	ecdsaP256
	ed25519Key
)

// privateKey gives the recorded key of a call. One that is not recorded is made, and returned with the output. A record
// of the old form has no keys: there, they are derived from the stream.
func (c *randomSource) privateKey(call randomCall, kind keyKind) (crypto.Signer, error) {
	if c.record.Keys == nil {
		return deriveKey(call.stream, kind)
	}
	if call.err != nil {
		return nil, call.err
	}
	// Recorded keys count too: otherwise a release would fail or not by what the cluster had before.
	if *c.keysLeft--; *c.keysLeft < 0 {
		return nil, fmt.Errorf("the charts of a release may ask for %d private keys together, and this is one more", maxKeys)
	}
	if der, ok := c.record.Keys[call.identity]; ok {
		return parseRecordedKey(der)
	}
	key, err := generateKey(kind)
	if err != nil {
		return nil, fmt.Errorf("making a private key: %w", err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("encoding a private key: %w", err)
	}
	c.newKeys[call.identity] = der
	return key, nil
}

func generateKey(kind keyKind) (crypto.Signer, error) {
	switch kind {
	case rsa2048:
		return rsa.GenerateKey(rand.Reader, 2048)
	case rsa4096:
		return rsa.GenerateKey(rand.Reader, 4096)
	case ecdsaP256:
		return ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	case ed25519Key:
		_, key, err := ed25519.GenerateKey(rand.Reader)
		return key, err
	}
	return nil, fmt.Errorf("the kind %d is not known", kind)
}

func parseRecordedKey(der []byte) (crypto.Signer, error) {
	key, err := x509.ParsePKCS8PrivateKey(der)
	if err != nil {
		return nil, fmt.Errorf("reading a private key of the record: %w", err)
	}
	signer, ok := key.(crypto.Signer)
	if !ok {
		return nil, errors.New("reading a private key of the record: it cannot sign")
	}
	return signer, nil
}
