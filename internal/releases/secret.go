package releases

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/polder-kaas/polder/internal/apierror"
	"github.com/polder-kaas/polder/stack/registry"
)

// Keys of a Secret with credentials.
const (
	keyUsername = corev1.BasicAuthUsernameKey
	keyPassword = corev1.BasicAuthPasswordKey
	keyToken    = "token"
	keyDocker   = corev1.DockerConfigJsonKey
	keyCA       = "ca.crt"
)

func (l *Library) readSecret(ctx context.Context, namespace, name string) (*corev1.Secret, error) {
	var s corev1.Secret
	err := l.config.Secrets.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, &s)
	if apierror.IsObjectNotFound(err, "secrets", name) {
		return nil, invalidSourceErrorf(
			"spec.source.secretRef: there is no Secret %q in namespace %s; create it, or name another", name, namespace,
		)
	}
	if err != nil {
		return nil, fmt.Errorf("reading Secret %q: %w", name, err)
	}
	return &s, nil
}

// optionsFromSecret reads the options for a registry from a Secret. The error continues a sentence that begins
// with the Secret's name, and has nothing of its content.
func optionsFromSecret(s *corev1.Secret) (o registry.Options, err error) {
	value := func(key string) string {
		return strings.TrimRight(string(s.Data[key]), "\r\n") // as echo and editors leave them
	}
	o.Username, o.Password = value(keyUsername), registry.Secret(value(keyPassword))
	o.Token, o.DockerAuths = registry.Secret(value(keyToken)), registry.Secret(value(keyDocker))
	if o.Username == "" && o.Password != "" {
		return o, errors.New("has a password and no username; add it")
	}
	if o.Username != "" && o.Password == "" {
		return o, errors.New("has a username and no password; add it")
	}
	forms := 0
	for _, there := range []bool{o.Username != "", o.Token != "", o.DockerAuths != ""} {
		if there {
			forms++
		}
	}
	ca := s.Data[keyCA]
	switch {
	case forms > 1:
		return o, fmt.Errorf("has more than one of %s with %s, %s and %s; keep the one that is meant", keyUsername,
			keyPassword, keyToken, keyDocker)
	case forms == 0 && len(ca) == 0:
		return o, fmt.Errorf("has nothing that is of use; it needs %s and %s, %s, %s or %s", keyUsername, keyPassword,
			keyToken, keyDocker, keyCA)
	}
	if len(ca) > 0 {
		o.Roots = x509.NewCertPool()
		if !o.Roots.AppendCertsFromPEM(ca) {
			return o, fmt.Errorf("has a %s that is no certificate in PEM", keyCA)
		}
	}
	return o, nil
}
