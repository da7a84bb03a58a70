//go:build fault

package apiserver

import (
	"os"
	"path/filepath"

	"k8s.io/kubernetes/pkg/controlplane/apiserver/options"
)

// adjustOptions lets tests see who asks for what: if there is a file "audit.yaml" in the data directory, it is the policy
// of an audit log beside it, which records what the plane itself does as well.
func (c Config) adjustOptions(o *options.Options) *options.Options {
	dir := filepath.Dir(c.AuthConfig)
	policy := filepath.Join(dir, "audit.yaml")
	if _, err := os.Stat(policy); err == nil {
		o.Audit.PolicyFile, o.Audit.LogOptions.Path = policy, filepath.Join(dir, "audit.log")
		o.Audit.LogOptions.MaxSize = 1 << 10 // MiB: one file
	}
	return o
}
