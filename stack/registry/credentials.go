package registry

import (
	"context"
	"encoding/base64"
	"fmt"
	"os"
	"strings"

	"oras.land/oras-go/v2/registry/remote/auth"
	"oras.land/oras-go/v2/registry/remote/credentials"
)

// credential is what the options have for a registry; nothing is fine too.
func (o Options) credential(ctx context.Context, host string) (auth.Credential, error) {
	switch {
	case o.Token != "":
		return auth.Credential{AccessToken: string(o.Token)}, nil
	case o.Username != "" || o.Password != "":
		return auth.Credential{Username: o.Username, Password: string(o.Password)}, nil
	case o.DockerConfig == "":
		return auth.EmptyCredential, nil
	}
	if _, err := os.Stat(o.DockerConfig); err != nil { // the library takes a missing one for an empty one
		return auth.EmptyCredential, fmt.Errorf("reading credentials: %w", err)
	}
	file, err := credentials.NewFileStore(o.DockerConfig) // unlike others of the library, it runs no helpers
	if err != nil {
		return auth.EmptyCredential, fmt.Errorf("reading credentials from %s: it is not of the form of a config.json", o.DockerConfig)
	}
	c, err := file.Get(ctx, credentials.ServerAddressFromRegistry(host))
	if err != nil {
		return auth.EmptyCredential, fmt.Errorf("reading credentials from %s: those for %s are not of the form of a config.json", o.DockerConfig, host)
	}
	return c, nil
}

// redact takes out of a text what only the registry may know, should that have repeated it.
func redact(text string, c auth.Credential) string {
	const short = 4 // shorter ones would take out half of the text, and are no secrets
	both := base64.StdEncoding.EncodeToString([]byte(c.Username + ":" + c.Password))
	for _, secret := range []string{both, c.Password, c.AccessToken, c.RefreshToken} {
		if len(secret) >= short {
			text = strings.ReplaceAll(text, secret, hidden)
		}
	}
	return text
}
