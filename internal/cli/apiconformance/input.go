package apiconformance

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"

	"github.com/polder-kaas/polder/conformance"
)

// maxFile is more than any token, authority or file of a cluster is.
const maxFile = 1 << 20

// readFile reads a small file that a flag names.
func readFile(flag, name string) ([]byte, error) {
	f, err := os.Open(name)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil, fmt.Errorf("--%s: there is no file %s", flag, name)
	case err != nil:
		return nil, fmt.Errorf("--%s: %w", flag, err)
	}
	defer f.Close() //nolint:errcheck // nothing is written
	b, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("--%s: %w", flag, err)
	case len(b) > maxFile:
		return nil, fmt.Errorf("--%s: %s is larger than 1 MiB", flag, name)
	}
	return b, nil
}

// read reads the files that flags name, and checks all that was given.
func (o *options) read() error {
	if o.config.Tenant == "" {
		return errors.New("name a tenant in which clusters can be made, with --tenant")
	}
	if err := o.readTokens(); err != nil {
		return err
	}
	if o.file != "" {
		b, err := readFile("file", o.file)
		if err != nil {
			return err
		}
		if o.config.Cluster = b; len(b) == 0 {
			return fmt.Errorf("--file: %s is empty", o.file)
		}
	}
	if o.ca != "" {
		b, err := readFile("certificate-authority", o.ca)
		if err != nil {
			return err
		}
		pool := x509.NewCertPool()
		if !pool.AppendCertsFromPEM(b) {
			return fmt.Errorf("--certificate-authority: %s has no certificate in PEM form", o.ca)
		}
		o.config.Client = &http.Client{Transport: &http.Transport{
			Proxy: http.ProxyFromEnvironment, ForceAttemptHTTP2: true,
			TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12},
		}}
	}
	return o.config.Validate()
}

// readTokens reads a token of each role that has a file.
func (o *options) readTokens() error {
	if *o.tokenFiles[conformance.Editor] == "" {
		return errors.New("name a file with a token of an editor of the tenant, with --token-file")
	}
	o.config.Tokens = map[conformance.Role]string{}
	for role, name := range o.tokenFiles {
		if *name == "" {
			continue
		}
		flag := string(role) + "-token-file"
		if role == conformance.Editor {
			flag = "token-file"
		}
		b, err := readFile(flag, *name)
		if err != nil {
			return err
		}
		token := strings.TrimSpace(string(b))
		if token == "" || strings.ContainsAny(token, " \t\r\n") {
			return fmt.Errorf("--%s: %s is to have one token and nothing else", flag, *name)
		}
		o.config.Tokens[role] = token
	}
	return nil
}
