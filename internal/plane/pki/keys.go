package pki

import (
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"os"

	"k8s.io/client-go/util/keyutil"

	"github.com/polder-kaas/polder/internal/files/atomicfile"
	"github.com/polder-kaas/polder/internal/files/certificate"
)

const (
	serviceAccountFile = "service-accounts.key"
	encryptionFile     = "encryption.yaml"
)

// ServiceAccountKeyFile is the file with the key that signs service-account tokens. It is never replaced: that
// would make every token invalid at once.
func (p *PKI) ServiceAccountKeyFile() string { return p.Path(serviceAccountFile) }

// EncryptionConfigFile is the file that tells the API server how to encrypt Secrets at rest. It
// holds the key: without this file the Secrets in the store cannot be read any more.
func (p *PKI) EncryptionConfigFile() string { return p.Path(encryptionFile) }

func (p *PKI) loadOrMakeKeys() error {
	return errors.Join(
		p.writeOnce(p.ServiceAccountKeyFile(), newServiceAccountKey),
		p.writeOnce(p.EncryptionConfigFile(), newEncryptionConfig),
	)
}

// writeOnce writes a file that must never change. Where there is data but no such file, a new key would make that
// data unreadable for good, so that is an error.
func (p *PKI) writeOnce(path string, content func() ([]byte, error)) error {
	if info, err := os.Stat(path); err == nil {
		if info.Size() == 0 {
			return fmt.Errorf("%s is empty; restore it from a backup", path)
		}
		return nil
	} else if !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if p.cfg.StoreExists {
		return fmt.Errorf("%s is missing, but the store has data that needs it; restore it from a backup", path)
	}
	b, err := content()
	if err != nil {
		return fmt.Errorf("making %s: %w", path, err)
	}
	return atomicfile.Write(path, b, 0o600)
}

func newServiceAccountKey() ([]byte, error) {
	k, err := certificate.NewKey()
	if err != nil {
		return nil, err
	}
	return keyutil.MarshalPrivateKeyToPEM(k) // the form from which Kubernetes also derives the public key
}

// newEncryptionConfig uses secretbox (XSalsa20 and Poly1305): authenticated, and safe with random
// nonces for as many writes as a plane will ever see under one key.
func newEncryptionConfig() ([]byte, error) {
	key := make([]byte, 32)
	if _, err := rand.Read(key); err != nil {
		return nil, err
	}
	return fmt.Appendf(nil, `apiVersion: apiserver.config.k8s.io/v1
kind: EncryptionConfiguration
resources:
- resources: [secrets]
  providers:
  - secretbox:
      keys:
      - name: key1
        secret: %s
`, base64.StdEncoding.EncodeToString(key)), nil
}
