package stackauthor

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/polder-kaas/polder/internal/program/exit"
	"github.com/polder-kaas/polder/stack/dependency"
	"github.com/polder-kaas/polder/stack/fetch"
	"github.com/polder-kaas/polder/stack/registry"
)

// registryFlags are the flags of commands that talk to registries.
type registryFlags struct {
	username      string
	passwordStdin bool
	dockerConfig  string
	plainHTTP     bool
	trusted       []string
}

// addFlags has no flag for a password: others could read it in the list of processes.
func (r *registryFlags) addFlags(c *cobra.Command) {
	f := c.Flags()
	f.StringVar(&r.username, "username", "", "`user` of the registry")
	f.BoolVar(&r.passwordStdin, "password-stdin", false, "read the user's password from standard input")
	f.StringVar(&r.dockerConfig, "docker-config", "",
		"`file` with credentials of registries (default: ~/.docker/config.json, if it exists)")
	f.BoolVar(&r.plainHTTP, "plain-http", false, "talk http to the registry; on this computer that is the default")
	f.StringSliceVar(&r.trusted, "trust", nil,
		"further `hosts` that may have private addresses: those a registry redirects to, and those charts name")
}

// registryOptions takes the credentials that docker login has left, unless others are given.
func (r *registryFlags) registryOptions(stdin io.Reader) (registry.Options, error) {
	o := registry.Options{Username: r.username, DockerConfig: r.dockerConfig, PlainHTTP: r.plainHTTP, Trusted: r.trusted}
	if r.passwordStdin != (r.username != "") {
		return o, exit.Errorf(exit.Usage, "give both --username and --password-stdin, or none of them")
	}
	if r.passwordStdin {
		line, err := bufio.NewReader(io.LimitReader(stdin, 64<<10)).ReadString('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return o, fmt.Errorf("reading the password: %w", err)
		}
		o.Password = registry.Secret(strings.TrimRight(line, "\r\n"))
	}
	if home, err := os.UserHomeDir(); o.DockerConfig == "" && err == nil {
		if file := filepath.Join(home, ".docker", "config.json"); isFile(file) {
			o.DockerConfig = file
		}
	}
	return o, nil
}

// isFile is false for whatever cannot be read, too.
func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

// openStore opens the store that a reference names.
func (r *registryFlags) openStore(ctx context.Context, stdin io.Reader,
	ref string) (registry.Store, registry.Reference, error) {
	o, err := r.registryOptions(stdin)
	if err != nil {
		return nil, registry.Reference{}, err
	}
	s, at, err := registry.Open(ctx, ref, o)
	if err != nil {
		return nil, at, exit.With(exit.Usage, err)
	}
	return s, at, nil
}

// chartFetcher gets the charts that charts need. Repositories are named by the stack's author, on whose
// computer this is; what they redirect to must be public, or trusted.
func (r *registryFlags) chartFetcher(stdin io.Reader) (*dependency.Fetcher, error) {
	o, err := r.registryOptions(stdin)
	if err != nil {
		return nil, err
	}
	f := &dependency.Fetcher{
		Client:   fetch.New(fetch.Policy{Trusted: r.trusted, PlainHTTP: r.plainHTTP}, fetch.Limits{}),
		Registry: o,
		Cache:    chartCacheDir(),
	}
	return f, nil
}

// chartCacheDir is where charts are kept that stacks need; nowhere, if the user has no home.
func chartCacheDir() dependency.Cache {
	dir, err := os.UserCacheDir()
	if err != nil {
		return ""
	}
	return dependency.Cache(filepath.Join(dir, "polder", "charts"))
}
