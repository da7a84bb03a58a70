//go:build !fault

package apiserver

import "k8s.io/kubernetes/pkg/controlplane/apiserver/options"

// adjustOptions changes nothing in the binaries people use; see fault_on.go.
func (c Config) adjustOptions(o *options.Options) *options.Options { return o }
