// Package stacks has the sources of the stacks we ship.
package stacks

import "embed"

// Files are the sources, each in a directory of its provider and name, and versions.yaml.
//
//go:embed all:local versions.yaml
var Files embed.FS
