// Package lint finds in the source of a stack everything that would fail later, when it is built,
// installed or used: all of it at once, each with file, line and how to mend it.
package lint

import (
	"context"
	"errors"
	"fmt"
	"path"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/polder-kaas/polder/stack"
	"github.com/polder-kaas/polder/stack/archive"
	"github.com/polder-kaas/polder/stack/document"
	"github.com/polder-kaas/polder/stack/finding"
	"github.com/polder-kaas/polder/stack/render"
	"github.com/polder-kaas/polder/stack/version"
)

// Options of a lint.
type Options struct {
	Renderer       *render.Renderer
	VendoredCharts stack.VendoredCharts // locked dependencies that are at hand
	Minors         []version.Kubernetes // that are linted, of those the source has; nil means all
}

// linter gathers findings about one source, for one of its minors of Kubernetes.
type linter struct {
	source        *stack.Source
	files         archive.Tree
	opts          Options
	findings      finding.List
	configInvalid bool // the configuration of the stack cannot be used
}

// Run lints a source. The error is about the computer, not about the stack.
func Run(ctx context.Context, files archive.Tree, o Options) (finding.List, error) {
	if o.Renderer == nil {
		o.Renderer = new(render.Renderer)
	}
	l := &linter{files: files, opts: o}
	source, err := stack.ParseSource(files)
	if err != nil {
		l.addDocumentError("config", err)
		l.configInvalid = true
	}
	if source == nil {
		return l.findings, nil
	}
	l.source = source
	l.checkStages()
	l.checkPlaceholders()
	if err := l.checkMinors(ctx); err != nil {
		return nil, err
	}
	return l.findings.Sorted(), nil // which drops findings that are the same for all minors
}

// checkMinors lints the source for each of its minors, as many in parallel as there are CPUs: most of the time goes
// into starting processes that render.
func (l *linter) checkMinors(ctx context.Context) error {
	minors := l.opts.Minors
	if minors == nil {
		minors = l.source.Versions
	}
	found, errs := make([]finding.List, len(minors)), make([]error, len(minors))
	var wg sync.WaitGroup
	free := make(chan struct{}, runtime.GOMAXPROCS(0))
	for i, k := range minors {
		source, err := l.source.ForKubernetes(k)
		if err != nil {
			continue // it was parsed with an error
		}
		free <- struct{}{}
		wg.Go(func() {
			defer func() { <-free }()
			one := &linter{source: source, files: l.files, opts: l.opts, configInvalid: l.configInvalid}
			errs[i] = one.checkMinor(ctx)
			found[i] = one.findings
		})
	}
	wg.Wait()
	l.findings = append(l.findings, slices.Concat(found...)...)
	return errors.Join(errs...)
}

func (l *linter) checkMinor(ctx context.Context) error {
	l.checkConfig()
	l.checkCharts()
	incomplete := l.checkDependencies()
	if l.configInvalid { // without a name nothing can be rendered
		return nil
	}
	return l.checkDraft(ctx, incomplete)
}

func (l *linter) add(f finding.Finding) { l.findings = append(l.findings, f) }

func (l *linter) addError(file string, line int, rule, what, fix string) {
	l.add(finding.Finding{File: file, Line: line, Severity: finding.Error, Rule: rule, What: what, Fix: fix})
}

func (l *linter) addWarning(file string, line int, rule, what, fix string) {
	l.add(finding.Finding{File: file, Line: line, Severity: finding.Warning, Rule: rule, What: what, Fix: fix})
}

// addDocumentError adds a finding for each error that reading a document has found; they may be joined.
func (l *linter) addDocumentError(rule string, err error) {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		for _, e := range joined.Unwrap() {
			l.addDocumentError(rule, e)
		}
		return
	}
	var d *document.Error
	if errors.As(err, &d) {
		l.addError(d.File, d.Line, rule, d.Reason, "")
		return
	}
	l.addError("stack.yaml", 0, rule, err.Error(), "")
}

// readDocument reads a file of the source that should be one document; what is wrong is a finding.
func (l *linter) readDocument(rule, file string) (document.Document, bool) {
	b, ok := l.files[file]
	if !ok {
		return document.Document{}, false
	}
	d, err := document.ParseOne(file, b)
	if err != nil {
		l.addDocumentError(rule, err)
		return document.Document{}, false
	}
	return d, true
}

// findLine gives the first line of a file that has a word, as a hint; 0 if there is none.
func (l *linter) findLine(file, word string) int {
	for i, line := range strings.Split(string(l.files[file]), "\n") {
		if strings.Contains(line, word) {
			return i + 1
		}
	}
	return 0
}

// checkConfig checks the configuration of the stack, beyond what parsing finds.
func (l *linter) checkConfig() {
	s := l.source
	d, err := document.ParseOne(s.ConfigFile, l.files[s.ConfigFile])
	if err != nil {
		return // it is reported already
	}
	at := func(key string) int {
		return max(d.Line(key), d.Line("config", key)) // the older file has everything below config
	}
	if !s.Kubernetes.HasPatch() && s.Kubernetes.Minor > 0 {
		l.addWarning(s.ConfigFile, max(at("kubernetesVersion"), at("kubernetesVersions")), "kubernetes-exact",
			fmt.Sprintf("kubernetesVersion %s has no patch, and a release is for an exact version", s.Kubernetes),
			fmt.Sprintf("write v%s.0 or the patch you mean, or choose it in a build with --kubernetes",
				s.Kubernetes.MinorString()))
	}
	if strings.Contains(s.Name, "-") {
		l.addWarning(s.ConfigFile, at("clusterStackName"), "name-dash",
			fmt.Sprintf("the cluster-stack-operator and csctl cannot read the name of a release such as %s-v1, because %s has a dash",
				s.ReleaseLine, s.Name), "write "+strings.ReplaceAll(s.Name, "-", "")+" if they are to use it")
	}
	longest := version.ReleaseName{ReleaseLine: s.ReleaseLine, Version: version.Version{Word: "sha", ID: "0000000"}}
	if n := len(longest.Tag()); n > version.MaxName {
		l.addError(s.ConfigFile, at("clusterStackName"), "name-length",
			fmt.Sprintf("the name of a release such as %s has %d characters, and objects take at most %d", longest, n,
				version.MaxName), "shorten clusterStackName")
	}
	l.checkOtherConfigs()
}

// checkOtherConfigs checks that configuration files of older tools say the same about the stack.
func (l *linter) checkOtherConfigs() {
	s := l.source
	for _, name := range []string{"csctl.yaml", "csmctl.yaml"} {
		if name == s.ConfigFile || l.files[name] == nil {
			continue
		}
		other, err := stack.ParseSource(archive.Tree{name: l.files[name]})
		if err != nil {
			l.addDocumentError("config", err)
			continue
		}
		if !slices.ContainsFunc(s.Versions, func(k version.Kubernetes) bool { return agree(k, other.Kubernetes) }) ||
			!other.SameLine(version.ReleaseLine{Provider: s.Provider, Name: s.Name, Kubernetes: other.Kubernetes}) {
			l.addError(name, l.findLine(name, "kubernetesVersion"), "kubernetes-disagree",
				fmt.Sprintf("%s says %s with Kubernetes %s, and %s says %s with %s", name, other.ReleaseLine, other.Kubernetes,
					s.ConfigFile, s.ReleaseLine, s.Kubernetes), "make both say the same, or remove one")
		}
	}
}

// agree says whether two versions can mean the same: one of them may leave the patch out.
func agree(a, b version.Kubernetes) bool {
	return a.SameMinor(b) && (a.Patch == b.Patch || !a.HasPatch() || !b.HasPatch())
}

// checkPlaceholders finds placeholders for versions that a build does not know.
func (l *linter) checkPlaceholders() {
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
					l.addError(name, i+1, "placeholder", fmt.Sprintf("<< .%.60s >> is not known and stays as it is", word),
						"use << .ClusterClassVersion >>, << .ClusterAddonVersion >> or << .NodeImageVersion >>")
				}
			}
		}
	}
}

func chartYAML(dir string) string { return path.Join(dir, "Chart.yaml") }
