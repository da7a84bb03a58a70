package main

import (
	"bytes"
	"encoding/json"
	"runtime/debug"
	"strings"
	"testing"
	"testing/fstest"
)

func TestFindLicence(t *testing.T) {
	for name, c := range map[string]struct{ file, text, want, words string }{
		"Apache":          {"LICENSE", "Apache License\n Version 2.0, January 2004", "Apache-2.0", ""},
		"MIT":             {"license.md", "Permission is hereby granted, free of\ncharge, to any person", "MIT", ""},
		"BSD, two":        {"LICENSE.txt", "Redistribution and use in source and binary forms, with or without", "BSD-2-Clause", ""},
		"BSD, three":      {"LICENCE", "Redistribution and use in source and binary forms ... to endorse or promote products", "BSD-3-Clause", ""},
		"both, to choose": {"License", "Redistribution and use in source and binary forms ... endorse or promote products ... GNU General Public License", "BSD-3-Clause", ""},
		"ISC":             {"COPYING", "Permission to use, copy, modify, and distribute this software ... and this permission notice appear in all copies", "ISC", ""},
		"GPL":             {"COPYING", "GNU GENERAL PUBLIC LICENSE Version 3", "", "module m has COPYING, which is none of"},
		"AGPL":            {"LICENSE", "GNU AFFERO GENERAL PUBLIC LICENSE", "", "which is none of"},
		"none":            {"README.md", "all rights reserved", "", "no file with a licence"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := findLicence("m", fstest.MapFS{c.file: {Data: []byte(c.text)}})
			if got != c.want || (err == nil) != (c.words == "") || err != nil && !strings.Contains(err.Error(), c.words) {
				t.Errorf("%q, %v", got, err)
			}
		})
	}
}

func TestWriteCycloneDX(t *testing.T) {
	var b bytes.Buffer
	m := linkedModule{debug.Module{Path: "example.org/m", Version: "v1.2.3", Sum: "h1:x"}, "MIT"}
	if err := writeCycloneDX(&b, "polder", &debug.BuildInfo{GoVersion: "go1.26"}, []linkedModule{m}); err != nil {
		t.Fatal(err)
	}
	var doc struct {
		BOMFormat  string
		Components []struct{ Name, Version, Purl string }
	}
	if err := json.Unmarshal(b.Bytes(), &doc); err != nil || doc.BOMFormat != "CycloneDX" || len(doc.Components) != 2 || doc.Components[1].Purl != "pkg:golang/example.org/m@v1.2.3" {
		t.Errorf("%+v, %v", doc, err)
	}
}
