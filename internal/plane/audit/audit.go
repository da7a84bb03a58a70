// Package audit keeps a record of what people do in a plane: who did what to which object, who asked for which
// kubeconfig, and what was refused. It is Kubernetes' own audit log, with a policy of ours, in files that rotate.
package audit

import (
	"bufio"
	"compress/gzip"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Policy says what is recorded.
//
//go:embed policy.yaml
var Policy []byte

// Bounds of the record: ten files of 100 MB and the one that is written, packed to about a tenth.
const (
	MaxSizeMB = 100
	MaxFiles  = 10
)

// fileName is that of the file which is written; those before it have a time in their names.
const fileName = "audit.log"

// Dir is the folder of the record in a data directory.
func Dir(dataDir string) string { return filepath.Join(dataDir, "audit") }

// File is the file that is written.
func File(dataDir string) string { return filepath.Join(Dir(dataDir), fileName) }

// Event is one request, as far as it is of use here; the rest of what Kubernetes records is kept as it is.
type Event struct {
	ID        string // of the request; a plane of a tenant records it under the same one
	Time      time.Time
	User      string
	Groups    []string
	As        string // whom the user has acted as, if that was another
	Verb      string
	Group     string
	Resource  string // with its subresource, such as serviceaccounts/token
	Namespace string
	Name      string
	Path      string // for what is no resource
	Code      int32
	Reason    string // why it was refused
	Request   json.RawMessage
	Raw       []byte // the line
}

// IsRefused says that who asked had no right to it.
func (e Event) IsRefused() bool { return e.Code == 401 || e.Code == 403 } //nolint:mnd // as HTTP has it

// line is what Kubernetes writes.
type line struct {
	AuditID          string          `json:"auditID"`
	User             user            `json:"user"`
	ImpersonatedUser *user           `json:"impersonatedUser"`
	Verb             string          `json:"verb"`
	RequestURI       string          `json:"requestURI"`
	ObjectRef        *objectRef      `json:"objectRef"`
	ResponseStatus   *responseStatus `json:"responseStatus"`
	Received         time.Time       `json:"requestReceivedTimestamp"`
	RequestObject    json.RawMessage `json:"requestObject"`
}

type user struct {
	Username string   `json:"username"`
	Groups   []string `json:"groups"`
}

type objectRef struct {
	Resource    string `json:"resource"`
	Subresource string `json:"subresource"`
	Namespace   string `json:"namespace"`
	Name        string `json:"name"`
	APIGroup    string `json:"apiGroup"`
}

type responseStatus struct {
	Code    int32  `json:"code"`
	Message string `json:"message"`
}

// parse reads one line of the record.
func parse(b []byte) (Event, error) {
	var l line
	if err := json.Unmarshal(b, &l); err != nil {
		return Event{}, err
	}
	e := Event{
		ID: l.AuditID, Time: l.Received, User: l.User.Username, Groups: l.User.Groups, Verb: l.Verb, Path: l.RequestURI,
		Request: l.RequestObject, Raw: b,
	}
	if l.ImpersonatedUser != nil {
		e.As = l.ImpersonatedUser.Username
	}
	if r := l.ObjectRef; r != nil {
		e.Group, e.Resource, e.Namespace, e.Name = r.APIGroup, r.Resource, r.Namespace, r.Name
		if r.Subresource != "" {
			e.Resource += "/" + r.Subresource
		}
	}
	if s := l.ResponseStatus; s != nil {
		e.Code = s.Code
		if s.Code >= 400 { //nolint:mnd // as HTTP has it
			e.Reason = s.Message
		}
	}
	return e, nil
}

// maxLine bounds one event; requests are at most a few megabytes.
const maxLine = 16 << 20

// Read calls f with each event of a data directory, the oldest first. A line that cannot be read, since the plane was
// ended while it was written, is left out.
func Read(dataDir string, f func(Event) error) error {
	files, err := listFiles(Dir(dataDir))
	if err != nil {
		return err
	}
	for _, file := range files {
		if err := readFile(file, f); err != nil {
			return fmt.Errorf("reading %s: %w", file, err)
		}
	}
	return nil
}

// listFiles returns the files of the record in the order they were written.
func listFiles(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var old []string
	current := ""
	for _, e := range entries {
		switch name := e.Name(); {
		case name == fileName:
			current = filepath.Join(dir, name)
		case strings.HasPrefix(name, "audit-") && (strings.HasSuffix(name, ".log") || strings.HasSuffix(name, ".log.gz")):
			old = append(old, filepath.Join(dir, name))
		}
	}
	slices.Sort(old) // by the time in their names
	// While a file is being packed, both are there.
	old = slices.DeleteFunc(old, func(f string) bool {
		plain, packed := strings.CutSuffix(f, ".gz")
		return packed && slices.Contains(old, plain)
	})
	if current != "" {
		old = append(old, current)
	}
	return old, nil
}

func readFile(file string, f func(Event) error) error {
	return readLines(file, func(line []byte) error {
		e, err := parse(slices.Clone(line))
		if err != nil {
			return nil //nolint:nilerr // a line that was not written whole
		}
		return f(e)
	})
}

// readLines calls f with each line, which f may not keep.
func readLines(file string, f func([]byte) error) error {
	in, err := os.Open(file)
	if errors.Is(err, os.ErrNotExist) {
		return nil // it was packed, or removed, since it was listed
	}
	if err != nil {
		return err
	}
	defer in.Close() //nolint:errcheck // read only
	var r io.Reader = in
	if strings.HasSuffix(file, ".gz") {
		z, err := gzip.NewReader(in)
		if err != nil {
			return err
		}
		defer z.Close() //nolint:errcheck // read only
		r = z
	}
	s := bufio.NewScanner(r)
	s.Buffer(nil, maxLine)
	for s.Scan() {
		if err := f(s.Bytes()); err != nil {
			return err
		}
	}
	return s.Err()
}
