// Sbom says what programs are made of, by what the Go linker wrote into them: their modules and the licences of those.
//
//	sbom licences PROGRAM...   one line for each module
//	sbom cyclonedx PROGRAM     a CycloneDX document
//
// It fails if a module has no licence that it knows, or one that is not allowed.
package main

import (
	"cmp"
	"debug/buildinfo"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"

	"golang.org/x/mod/module"
)

func main() {
	if err := run(os.Stdout, os.Getenv("GOMODCACHE"), os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "sbom:", err)
		os.Exit(1)
	}
}

func run(w io.Writer, cache string, args []string) error {
	if cache == "" || len(args) < 2 {
		return errors.New("usage: GOMODCACHE=$(go env GOMODCACHE) sbom licences|cyclonedx PROGRAM [PROGRAM]")
	}
	all := map[string]linkedModule{}
	var last *debug.BuildInfo
	for _, program := range args[1:] {
		info, err := buildinfo.ReadFile(program)
		if err != nil {
			return fmt.Errorf("reading program %s: %w", program, err)
		}
		for _, d := range info.Deps {
			if d.Replace != nil {
				d = d.Replace
			}
			m, err := describeModule(cache, d)
			if err != nil {
				return err
			}
			all[m.Path] = m
		}
		last = info
	}
	modules := slices.SortedFunc(maps.Values(all), func(a, b linkedModule) int { return cmp.Compare(a.Path, b.Path) })
	if args[0] == "licences" {
		return writeLicences(w, modules)
	}
	return writeCycloneDX(w, filepath.Base(args[1]), last, modules)
}

// linkedModule is a module that is linked.
type linkedModule struct {
	debug.Module
	licence string // SPDX identifier
}

// describeModule finds the licence of a module in the module cache.
func describeModule(cache string, m *debug.Module) (linkedModule, error) {
	path, err := module.EscapePath(m.Path)
	if err != nil {
		return linkedModule{}, err
	}
	version, err := module.EscapeVersion(m.Version)
	if err != nil {
		return linkedModule{}, fmt.Errorf("module %s: %w", m.Path, err)
	}
	licence, err := findLicence(m.Path, os.DirFS(filepath.Join(cache, path+"@"+version)))
	return linkedModule{*m, licence}, err
}

func writeLicences(w io.Writer, modules []linkedModule) error {
	for _, m := range modules {
		if _, err := fmt.Fprintln(w, m.licence, m.Path); err != nil {
			return err
		}
	}
	return nil
}

// writeCycloneDX writes a document of CycloneDX 1.6. It has no time and no serial number: the same program has the
// same.
func writeCycloneDX(w io.Writer, name string, info *debug.BuildInfo, modules []linkedModule) error {
	type object = map[string]any
	components := []object{{
		"type": "library", "name": "std", "version": info.GoVersion, "purl": "pkg:golang/std@" + info.GoVersion,
		"licenses": []object{{"license": object{"id": "BSD-3-Clause"}}},
	}}
	for _, m := range modules {
		components = append(components, object{
			"type": "library", "name": m.Path, "version": m.Version, "purl": "pkg:golang/" + m.Path + "@" + m.Version,
			"licenses":   []object{{"license": object{"id": m.licence}}},
			"properties": []object{{"name": "go:sum", "value": m.Sum}},
		})
	}
	e := json.NewEncoder(w)
	e.SetIndent("", " ")
	return e.Encode(object{
		"bomFormat": "CycloneDX", "specVersion": "1.6", "version": 1,
		"metadata": object{"component": object{
			"type": "application", "name": name, "purl": "pkg:golang/" + info.Main.Path,
		}},
		"components": components,
	})
}
