// Package lint finds in the source of a stack everything that would fail later, when it is built,
// installed or used: all of it at once, each with its place and how to mend it.
package lint

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/polder-kaas/polder/stack"
	"github.com/polder-kaas/polder/stack/archive"
	"github.com/polder-kaas/polder/stack/document"
	"github.com/polder-kaas/polder/stack/finding"
	"github.com/polder-kaas/polder/stack/render"
	"github.com/polder-kaas/polder/stack/version"
)

// Options of a lint.
type Options struct {
	Renderer *render.Renderer
	Vendored stack.Vendored // locked dependencies that are at hand
}

// linter gathers findings about one source.
type linter struct {
	source *stack.Source
	files  archive.Tree
	opts   Options
	found  finding.List
	broken bool // what the stack says of itself cannot be used
}

// Run looks at a source. The error is about the computer, not about the stack.
func Run(ctx context.Context, files archive.Tree, o Options) (finding.List, error) {
	if o.Renderer == nil {
		o.Renderer = new(render.Renderer)
	}
	l := &linter{files: files, opts: o}
	source, err := stack.ParseSource(files)
	if err != nil {
		l.document("config", err)
		l.broken = true
	}
	if source == nil {
		return l.found, nil
	}
	l.source = source
	l.stages()
	l.placeholders()
	for _, k := range source.Versions { // what is the same for all is said once
		if l.source, _ = source.For(k); l.source == nil {
			continue
		}
		l.config()
		l.charts()
		incomplete := l.dependencies()
		if l.broken { // without a name nothing can be rendered
			continue
		}
		if err := l.rendered(ctx, incomplete); err != nil {
			return nil, err
		}
	}
	return l.found.Sorted(), nil
}

func (l *linter) add(f finding.Finding) { l.found = append(l.found, f) }

func (l *linter) error(file string, line int, rule, what, fix string) {
	l.add(finding.Finding{File: file, Line: line, Severity: finding.Error, Rule: rule, What: what, Fix: fix})
}

func (l *linter) warn(file string, line int, rule, what, fix string) {
	l.add(finding.Finding{File: file, Line: line, Severity: finding.Warning, Rule: rule, What: what, Fix: fix})
}

// document takes apart what the readers of documents found, which may be several errors.
func (l *linter) document(rule string, err error) {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		for _, e := range joined.Unwrap() {
			l.document(rule, e)
		}
		return
	}
	var d *document.Error
	if errors.As(err, &d) {
		l.error(d.File, d.Line, rule, d.Reason, "")
		return
	}
	l.error("stack.yaml", 0, rule, err.Error(), "")
}

// yaml reads a file of the source that should be one document; what is wrong is a finding.
func (l *linter) yaml(rule, file string) (document.Document, bool) {
	b, ok := l.files[file]
	if !ok {
		return document.Document{}, false
	}
	d, err := document.One(file, b)
	if err != nil {
		l.document(rule, err)
		return document.Document{}, false
	}
	return d, true
}

// line is where a word is in a file, as a hint; 0 if it is not there.
func (l *linter) line(file, word string) int {
	for i, line := range strings.Split(string(l.files[file]), "\n") {
		if strings.Contains(line, word) {
			return i + 1
		}
	}
	return 0
}

// config looks at what the stack says of itself, beyond what reading it finds.
func (l *linter) config() {
	s := l.source
	d, err := document.One(s.ConfigFile, l.files[s.ConfigFile])
	if err != nil {
		return // said
	}
	at := func(key string) int {
		return max(d.Line(key), d.Line("config", key)) // the older file has everything below config
	}
	if !s.Kubernetes.HasPatch() && s.Kubernetes.Minor > 0 {
		l.error(s.ConfigFile, max(at("kubernetesVersion"), at("kubernetesVersions")), "kubernetes-exact",
			fmt.Sprintf("kubernetesVersion %s has no patch, and a release is for an exact version", s.Kubernetes), fmt.Sprintf("write v%s.0, or the patch you mean", s.Kubernetes.MinorString()))
	}
	longest := version.Release{Line: s.Line, Version: version.Version{Word: "sha", ID: "0000000"}}
	if n := len(longest.Tag()); n > version.MaxName {
		l.error(s.ConfigFile, at("clusterStackName"), "name-length",
			fmt.Sprintf("the name of a release such as %s has %d characters, and objects take at most %d", longest, n, version.MaxName), "shorten clusterStackName")
	}
	l.otherConfigs()
}

// otherConfigs compares what other files say about Kubernetes.
func (l *linter) otherConfigs() {
	s := l.source
	for _, name := range []string{"csctl.yaml", "csmctl.yaml"} {
		if name == s.ConfigFile || l.files[name] == nil {
			continue
		}
		other, err := stack.ParseSource(archive.Tree{name: l.files[name]})
		if err != nil {
			l.document("config", err)
			continue
		}
		if !slices.Contains(s.Versions, other.Kubernetes) || !other.Same(version.Line{Provider: s.Provider, Name: s.Name, Kubernetes: other.Kubernetes}) {
			l.error(name, l.line(name, "kubernetesVersion"), "kubernetes-disagree",
				fmt.Sprintf("%s says %s with Kubernetes %s, and %s says %s with %s", name, other.Line, other.Kubernetes, s.ConfigFile, s.Line, s.Kubernetes), "make both say the same, or remove one")
		}
	}
}

// placeholders finds what looks like a version to fill in and is none.
func (l *linter) placeholders() {
	for _, name := range l.files.Names() {
		for i, line := range strings.Split(string(l.files[name]), "\n") {
			for rest := line; ; {
				_, after, ok := strings.Cut(rest, "<< .")
				if !ok {
					break
				}
				word, tail, closed := strings.Cut(after, " >>")
				rest = tail
				if !closed {
					break
				}
				switch word {
				case "ClusterClassVersion", "ClusterAddonVersion", "NodeImageVersion":
				default:
					l.error(name, i+1, "placeholder", fmt.Sprintf("<< .%.60s >> is not known and stays as it is", word), "use << .ClusterClassVersion >>, << .ClusterAddonVersion >> or << .NodeImageVersion >>")
				}
			}
		}
	}
}

func chartYAML(dir string) string { return path.Join(dir, "Chart.yaml") }
