// Package render turns charts into objects, as Helm does, but hermetically: a template sees its
// chart, the values, what the cluster can do, and nothing else. There is no environment, no file
// beside the chart, no network, no clock and no cluster to look into; where Helm would use randomness or
// the clock, a record is used, so the same input gives the same objects. Private keys that the record lacks are made
// once, and returned to be recorded.
//
// No template engine can be stopped from inside. So charts are rendered in a child process of the
// running program, with limits on memory, time and output. Programs that use this package call Main
// before anything else:
//
//	func main() {
//		if code, child := render.Main(); child {
//			os.Exit(code)
//		}
//		…
package render

import (
	"time"

	"github.com/polder-kaas/polder/stack/archive"
)

// Job is one chart to be rendered.
type Job struct {
	Name        string          // of the job, in messages and in the record: cluster-class, or an add-on's name
	Chart       archive.Tree    // with its dependencies
	ReleaseName string          // .Release.Name
	Namespace   string          // .Release.Namespace
	Template    *ValuesTemplate // values that are a template themselves; they win over the chart's own
	Values      map[string]any
}

// ValuesTemplate is a template of values, such as overwrite.yaml, and what it sees.
type ValuesTemplate struct {
	File string // its name, for messages
	Text []byte
	Data map[string]any
}

// Capabilities are those of the cluster that the objects are for. Charts ask for them.
type Capabilities struct {
	KubeVersion string   // for example v1.36.3
	APIVersions []string // groups with versions, and those with kinds; empty means those of Kubernetes itself
}

// Input is everything that decides what is rendered.
type Input struct {
	Jobs         []Job
	Capabilities Capabilities
	Record       Record
	// ForbidRandomness makes random functions fail: what many clusters share must have no secrets.
	ForbidRandomness bool
}

// Output is what became of one job.
type Output struct {
	Job   string
	Files []File `json:",omitempty"` // definitions of kinds first, then by path
	Err   *Error `json:",omitempty"`
	// MissingValue says that the template of values wrote <no value> for something it did not find.
	MissingValue bool `json:",omitempty"`
	// Expires is when the first certificate that was made ends; nil if none was.
	Expires *time.Time `json:",omitempty"`
	// NewKeys are the private keys that were made because the record had none for a call. They must be in the record
	// (Record.WithKeys) before the output is used: another rendering with the old record makes other keys.
	NewKeys Keys `json:",omitempty"`
}

// File is one rendered template.
type File struct {
	Path string // within the chart: templates/x.yaml, charts/y/templates/z.yaml
	Text string
}

// Error says why a chart cannot be rendered, and where.
type Error struct {
	Path   string `json:",omitempty"` // within the chart; empty if it is about the whole
	Line   int    `json:",omitempty"` // 0 if it is not known
	Reason string
}
