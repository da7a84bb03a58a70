// Package buildinfo says what this binary is made of.
package buildinfo

import (
	"runtime"
	"runtime/debug"
	"strings"
)

// version and commit are set by the linker (see Makefile); `go build` alone leaves them as they are here.
var (
	version = "v0.0.0-dev"
	commit  = ""
)

// Info names the binary and the versions of what is linked into it.
type Info struct {
	Version    string `json:"version"`
	Commit     string `json:"commit,omitempty"`
	Go         string `json:"go"`
	Platform   string `json:"platform"`
	Kubernetes string `json:"kubernetes,omitempty"`
	ClusterAPI string `json:"clusterAPI,omitempty"`
	Etcd       string `json:"etcd,omitempty"`
}

// Get reads the versions of the linked modules from the binary itself, so they cannot lie.
// Modules that are not linked are left empty.
func Get() Info {
	i := Info{
		Version: version, Commit: commit, Go: strings.TrimPrefix(runtime.Version(), "go"),
		Platform: runtime.GOOS + "/" + runtime.GOARCH,
	}
	b, ok := debug.ReadBuildInfo()
	if !ok {
		return i
	}
	i.Kubernetes = moduleVersion(b, "k8s.io/kubernetes")
	i.ClusterAPI = moduleVersion(b, "sigs.k8s.io/cluster-api")
	i.Etcd = moduleVersion(b, "go.etcd.io/etcd/server/v3")
	return i
}

func moduleVersion(b *debug.BuildInfo, path string) string {
	for _, m := range b.Deps {
		if m.Path != path {
			continue
		}
		if m.Replace != nil && m.Replace.Version != "" {
			return m.Replace.Version
		}
		return m.Version
	}
	return ""
}
