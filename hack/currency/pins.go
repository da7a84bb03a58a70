package main

import (
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/module"
)

// pin is a direct requirement of a go.mod file, as replace directives leave it.
type pin struct {
	Path      string
	Version   string
	Replaced  bool   // Version is that of a replace directive
	Directory string // stands in place of the module; then it has no version
}

// readPins reads the direct requirements of a go.mod file, in its order. Modules of its tools are
// direct too, although go marks them as indirect.
func readPins(root fs.FS, name string) ([]pin, error) {
	b, err := fs.ReadFile(root, name)
	if err != nil {
		return nil, err
	}
	f, err := modfile.Parse(name, b, nil)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", name, err)
	}
	tools := toolModules(f)
	var pins []pin
	for _, r := range f.Require {
		if !r.Indirect || slices.Contains(tools, r.Mod.Path) {
			pins = append(pins, applyReplace(f, r.Mod))
		}
	}
	return pins, nil
}

// toolModules gives the modules that the tools of f are packages of: of each, the one with the longest path.
func toolModules(f *modfile.File) []string {
	var paths []string
	for _, t := range f.Tool {
		longest := ""
		for _, r := range f.Require {
			if isWithin(t.Path, r.Mod.Path) && len(r.Mod.Path) > len(longest) {
				longest = r.Mod.Path
			}
		}
		paths = append(paths, longest)
	}
	return paths
}

// isWithin says whether path is that of parent or below it.
func isWithin(path, parent string) bool {
	return path == parent || strings.HasPrefix(path, parent+"/")
}

func applyReplace(f *modfile.File, m module.Version) pin {
	for _, r := range f.Replace {
		if r.Old.Path != m.Path || r.Old.Version != "" && r.Old.Version != m.Version {
			continue
		}
		if r.New.Version == "" {
			return pin{Path: m.Path, Directory: r.New.Path}
		}
		return pin{Path: r.New.Path, Version: r.New.Version, Replaced: true}
	}
	return pin{Path: m.Path, Version: m.Version}
}
