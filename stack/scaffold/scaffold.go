// Package scaffold makes stacks to begin with: small, valid, and with a comment wherever an author
// will want to go on.
package scaffold

import (
	"bytes"
	"embed"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"text/template"

	"github.com/polder-kaas/polder/stack/archive"
	"github.com/polder-kaas/polder/stack/version"
)

//go:embed all:files
var files embed.FS

// infrastructure is what differs between providers.
type infrastructure struct {
	APIVersion string
	Cluster    string // kind
	Machine    string
	// Specs are indented below spec.template.spec.
	ClusterSpec, MachineSpec string
	SizePath                 string // where a machine's size is in its template
	SizeTemplate             string // of the value there
}

var providers = map[string]infrastructure{
	"local": {
		APIVersion: "infrastructure.cluster.x-k8s.io/v1alpha1", Cluster: "LocalClusterTemplate",
		Machine:     "LocalMachineTemplate",
		ClusterSpec: "failureDomains: [{name: zone-a}]", MachineSpec: `capacity: {cpu: "2", memory: 4Gi}`,
		SizePath:     "/spec/template/spec/capacity",
		SizeTemplate: "{cpu: \"{{ regexReplaceAll \"^SCS-([0-9]+).*\" .flavor \"${1}\" }}\", memory: \"{{ regexReplaceAll \"^SCS-[0-9]+[A-Z]*-([0-9]+).*\" .flavor \"${1}Gi\" }}\"}",
	},
	"openstack": {
		APIVersion: "infrastructure.cluster.x-k8s.io/v1beta1", Cluster: "OpenStackClusterTemplate",
		Machine:     "OpenStackMachineTemplate",
		ClusterSpec: "identityRef: {name: openstack, cloudName: openstack}\n      managedSubnets: [{cidr: 10.8.0.0/20, dnsNameservers: [9.9.9.9]}]",
		MachineSpec: "flavor: SCS-2V-4\n      image: {filter: {name: ubuntu-capi-image}}",
		SizePath:    "/spec/template/spec/flavor", SizeTemplate: "{{ .flavor | quote }}",
	},
	"docker": {
		APIVersion: "infrastructure.cluster.x-k8s.io/v1beta2", Cluster: "DockerClusterTemplate",
		Machine:     "DockerMachineTemplate",
		ClusterSpec: "{}", MachineSpec: "extraMounts: []",
	},
}

// Providers lists the providers that there is a scaffold for.
func Providers() []string { return slices.Sorted(maps.Keys(providers)) }

// New makes the source of a stack for one minor of Kubernetes.
func New(l version.ReleaseLine) (archive.Tree, error) {
	if err := l.Check(); err != nil {
		return nil, err
	}
	if !l.Kubernetes.HasPatch() {
		return nil, fmt.Errorf("the version of Kubernetes must be exact, for example v%s.0", l.Kubernetes.MinorString())
	}
	infra, ok := providers[l.Provider]
	if !ok {
		return nil, fmt.Errorf("there is no scaffold for provider %q; choose one of %s", l.Provider,
			strings.Join(Providers(), ", "))
	}
	out := archive.Tree{}
	err := fs.WalkDir(files, "files", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := files.ReadFile(name)
		if err != nil {
			return err
		}
		// Braces are Helm's, so these templates have brackets.
		t, err := template.New(path.Base(name)).Delims("[[", "]]").Parse(string(text))
		if err != nil {
			return err
		}
		var b bytes.Buffer
		if err := t.Execute(&b, map[string]any{"Line": l, "Infra": infra}); err != nil {
			return err
		}
		out[strings.TrimPrefix(name, "files/")] = b.Bytes()
		return nil
	})
	return out, err
}
