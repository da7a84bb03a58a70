package main

import (
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"slices"
	"strings"
)

// allowed are the licences under which a module may be linked: all let us and others ship what is made of it.
var allowed = []string{"Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "ISC", "MIT", "MPL-2.0"}

// known are licences of modules that have no file for it, with the reason to know them.
var known = map[string]string{
	"github.com/ajeddeloh/go-json": "BSD-3-Clause", // a copy of Go's encoding/json, whose files name Go's licence
}

var licenceFile = regexp.MustCompile(`(?i)^(licen[sc]e|copying)([.-].*)?$`)

// findLicence returns the licence of a module by the texts in its directory.
func findLicence(path string, dir fs.FS) (string, error) {
	if id := known[path]; id != "" {
		return id, nil
	}
	entries, err := fs.ReadDir(dir, ".")
	if err != nil {
		return "", fmt.Errorf("module %s: %w; run: go mod download", path, err)
	}
	for _, e := range entries {
		if e.IsDir() || !licenceFile.MatchString(e.Name()) {
			continue
		}
		text, err := fs.ReadFile(dir, e.Name())
		if err != nil {
			return "", err
		}
		id := recogniseLicence(string(text))
		if !slices.Contains(allowed, id) {
			return "", fmt.Errorf("module %s has %s, which is none of %s", path, e.Name(), strings.Join(allowed, ", "))
		}
		return id, nil
	}
	return "", errors.New("module " + path + " has no file with a licence; ask its authors, or do without it")
}

// recogniseLicence returns the SPDX identifier of a text by the words only it has; empty: unknown.
func recogniseLicence(text string) string {
	text = strings.ToLower(strings.Join(strings.Fields(text), " "))
	has := func(words ...string) bool {
		return !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(text, w) })
	}
	switch {
	case has("redistribution and use in source and binary forms", "endorse or promote products"):
		return "BSD-3-Clause"
	case has("redistribution and use in source and binary forms"):
		return "BSD-2-Clause"
	case has("apache license", "version 2.0"):
		return "Apache-2.0"
	case has("mozilla public license", "2.0"):
		return "MPL-2.0"
	case has("permission is hereby granted, free of charge"):
		return "MIT"
	case has("permission to use, copy, modify", "distribute this software", "and this permission notice appear in all copies"):
		return "ISC"
	}
	return ""
}
