package daemon

import (
	"context"
	"io"
	"slices"

	"github.com/spf13/pflag"

	"github.com/polder-kaas/polder/internal/plane"
)

// Flags with which a plane starts those of its tenants.
const (
	frontAuthorityFlag = "front-authority"
	stopAtEOFFlag      = "stop-at-eof"
)

// ownFlags are flags of a plane that those of its tenants do not have: they have a directory and an address of their
// own, nobody comes to them but through it, and it has authenticated whoever does.
var ownFlags = []string{
	"data-dir", "listen", "rest-listen", "rest-certificate", "rest-key", "tls-san", "authentication-config", "backup-dir",
	frontAuthorityFlag, stopAtEOFFlag,
}

// addTenantFlags adds the flags of a plane that another one starts for a tenant. They are not for people.
func addTenantFlags(f *pflag.FlagSet, cfg *plane.Config, stopAtEOF *bool) {
	f.StringVar(&cfg.FrontAuthority, frontAuthorityFlag, "",
		"`FILE` with the authority of the plane that hands requests on to this one, which is a tenant's")
	f.BoolVar(stopAtEOF, stopAtEOFFlag, false, "stop when standard input ends")
	for _, name := range []string{frontAuthorityFlag, stopAtEOFFlag} {
		_ = f.MarkHidden(name) // it is there
	}
}

// tenantArgs returns the flags that were given and that planes of tenants have, too.
func tenantArgs(f *pflag.FlagSet) (out []string) {
	f.Visit(func(flag *pflag.Flag) {
		if slices.Contains(ownFlags, flag.Name) {
			return
		}
		values := []string{flag.Value.String()}
		if list, ok := flag.Value.(pflag.SliceValue); ok {
			values = list.GetSlice()
		}
		for _, v := range values {
			out = append(out, "--"+flag.Name+"="+v)
		}
	})
	return out
}

// withInput returns a context that ends when in does: with the process at its other end.
func withInput(ctx context.Context, in io.Reader) context.Context {
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		defer cancel()
		_, _ = io.Copy(io.Discard, in) // its end is all there is to know
	}()
	return ctx
}
