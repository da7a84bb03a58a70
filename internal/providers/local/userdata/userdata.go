// Package userdata reads the bootstrap data Cluster API's kubeadm provider gives a machine, as
// cloud-init would, for a machine that is only a directory: files are written below it, commands
// are reported but never run, and what cannot be honoured is named instead of dropped.
//
// Where cloud-init would warn and carry on with something else than was asked for (an unknown
// encoding, a missing variable), this package refuses: there is no console to read warnings on.
// Errors name the place and what to change, and never quote the content of a file.
package userdata

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"regexp"
)

const (
	maxData    = 4 << 20  // bytes of user data, before and after it is rendered; a Secret holds 1 MiB
	maxContent = 16 << 20 // bytes of all files together once decoded: a gzip bomb stops here
	maxFiles   = 1000
)

// Data is what a machine is asked to do at its first boot.
type Data struct {
	Files    []File
	Commands []Command // bootcmd and runcmd, in the order the machine would run them
	Ignored  []string  // other modules that ask for something (ntp, users, mounts), sorted: cannot be honoured here
}

// File is one entry of write_files. A path may occur more than once: the last entry counts, or
// adds to those before it.
type File struct {
	Path    string // absolute and clean
	Mode    fs.FileMode
	Owner   string // as written, empty if not
	Content []byte // decoded
	Append  bool   // to the entries of the same path before this one, never to what is on disk
}

// Command is one shell command.
type Command struct {
	Module string // bootcmd or runcmd
	Line   string // one printable line: as written, or as a quoted Go string if it has several
}

// Metadata is what templates may look up about the machine. An empty field cannot be looked up.
type Metadata struct {
	Hostname   string
	InstanceID string
	Address    string
	Zone       string
	ProviderID string
}

// Parse reads the user data of the machine with metadata m. It accepts one cloud-config document, rendered first
// if it says that it is a template, and refuses everything else with one sentence that names
// the line (of the rendered document) and, for a file, its index and path. Whatever Parse
// accepts, Write can write below an empty directory.
func Parse(b []byte, m Metadata) (Data, error) {
	d, err := parse(b, m)
	if err != nil {
		return Data{}, fmt.Errorf("reading user data: %w", err)
	}
	return d, nil
}

func parse(b []byte, m Metadata) (Data, error) {
	if len(b) > maxData {
		return Data{}, fmt.Errorf("it has %d bytes, more than the %d allowed", len(b), maxData)
	}
	if templateHeader.Match(b) {
		text, err := renderTemplate(string(b), m)
		if err != nil {
			return Data{}, err
		}
		b = []byte(text)
	}
	if err := checkFormat(b); err != nil {
		return Data{}, err
	}
	modules, err := parseDocument(b)
	if err != nil {
		return Data{}, err
	}
	return collectModules(modules)
}

// cloudConfigHeader is the line that makes a document cloud-config; the template's header stays
// in front of it so that lines keep their numbers.
var cloudConfigHeader = regexp.MustCompile(`(?i)^(## template: jinja[ \t]*\r?\n)?\s*#cloud-config(\s|$)`)

// mimeHeader matches the first header of a message with several parts.
var mimeHeader = regexp.MustCompile(`(?i)^\s*(content-type|mime-version):`)

func checkFormat(b []byte) error {
	switch {
	case cloudConfigHeader.Match(b):
		return nil
	case mimeHeader.Match(b):
		return errors.New("it is a multi-part MIME message, which is not supported; use one #cloud-config document")
	case bytes.HasPrefix(bytes.TrimSpace(b), []byte("{")) && bytes.Contains(b, []byte(`"ignition"`)):
		return errors.New("it is Ignition, which is not supported; set the format of the KubeadmConfig to cloud-config")
	}
	return errors.New("it is not cloud-config: no line #cloud-config at its beginning")
}
