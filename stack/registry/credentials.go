package registry

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"oras.land/oras-go/v2/registry/remote/auth"
	"oras.land/oras-go/v2/registry/remote/credentials"
)

// credential gives the credentials that the options have for a registry; there need not be any.
func (o Options) credential(ctx context.Context, host string) (auth.Credential, error) {
	switch {
	case o.Token != "":
		return auth.Credential{AccessToken: string(o.Token)}, nil
	case o.Username != "" || o.Password != "":
		return auth.Credential{Username: o.Username, Password: string(o.Password)}, nil
	case o.DockerAuths != "":
		c, err := dockerCredential([]byte(o.DockerAuths), host)
		if err != nil {
			return c, fmt.Errorf("reading credentials of docker: %w", err)
		}
		return c, nil
	case o.DockerConfig == "":
		return auth.EmptyCredential, nil
	}
	if _, err := os.Stat(o.DockerConfig); err != nil { // the library takes a missing one for an empty one
		return auth.EmptyCredential, fmt.Errorf("reading credentials: %w", err)
	}
	file, err := credentials.NewFileStore(o.DockerConfig) // unlike others of the library, it runs no helpers
	if err != nil {
		return auth.EmptyCredential, fmt.Errorf("reading credentials from %s: it is not of the form of a config.json",
			o.DockerConfig)
	}
	c, err := file.Get(ctx, credentials.ServerAddressFromRegistry(host))
	if err != nil {
		return auth.EmptyCredential, fmt.Errorf(
			"reading credentials from %s: those for %s are not of the form of a config.json", o.DockerConfig, host,
		)
	}
	return c, nil
}

// dockerCredential finds the credentials for a registry in the content of a config.json. The library's
// own reader does not find those of Docker's registry, and takes either of two entries for one host.
func dockerCredential(config []byte, host string) (auth.Credential, error) {
	var c struct {
		Auths map[string]struct {
			Auth                                             []byte // user:password, in base64
			Username, Password, IdentityToken, RegistryToken string
		}
	}
	if err := json.Unmarshal(config, &c); err != nil { // the error may quote parts of a secret
		return auth.EmptyCredential, errors.New("it is not of the form of a config.json")
	}
	want := credentials.ServerAddressFromRegistry(host)
	addresses := slices.Sorted(maps.Keys(c.Auths))
	i := slices.IndexFunc(addresses, func(a string) bool { return hostOf(a) == hostOf(want) })
	found, ok := c.Auths[want]
	if !ok && i >= 0 {
		found = c.Auths[addresses[i]]
	}
	out := auth.Credential{
		Username: found.Username, Password: found.Password, RefreshToken: found.IdentityToken,
		AccessToken: found.RegistryToken,
	}
	if len(found.Auth) > 0 {
		if out.Username, out.Password, ok = strings.Cut(string(found.Auth), ":"); !ok {
			return auth.EmptyCredential, fmt.Errorf(
				"those for %s are not of the form of a config.json: auth is user:password, in base64", host,
			)
		}
	}
	if out == auth.EmptyCredential {
		return out, fmt.Errorf("there are no credentials for %s", host)
	}
	return out, nil
}

// hostOf gives the host of an address, with its port. Old tools write addresses as https://host/v1/.
func hostOf(address string) string {
	if _, after, ok := strings.Cut(address, "://"); ok {
		address = after
	}
	host, _, _ := strings.Cut(address, "/")
	return strings.ToLower(host)
}

// redact takes secrets out of a text, in case the registry has repeated them.
func redact(text string, c auth.Credential) string {
	const short = 4 // shorter ones would take out half of the text, and are no secrets
	basicAuth := base64.StdEncoding.EncodeToString([]byte(c.Username + ":" + c.Password))
	for _, secret := range []string{basicAuth, c.Password, c.AccessToken, c.RefreshToken} {
		if len(secret) >= short {
			text = strings.ReplaceAll(text, secret, redactedText)
		}
	}
	return text
}
