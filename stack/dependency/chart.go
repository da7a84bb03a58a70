package dependency

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"path"
	"regexp"
	"strings"

	"github.com/polder-kaas/polder/stack/archive"
	"github.com/polder-kaas/polder/stack/document"
	"github.com/polder-kaas/polder/stack/fetch"
)

const (
	chartFile = "Chart.yaml"
	// maxChartFile is how large Chart.yaml of a dependency may be.
	maxChartFile = 256 << 10
)

// maxChart is how large a packed chart may be: it becomes one file of a release.
var maxChart = archive.DefaultLimits.File

func digest(b []byte) string { return fmt.Sprintf("sha256:%x", sha256.Sum256(b)) }

// chart is what Chart.yaml says, and the directory and files of a chart that is part of the stack.
type chart struct {
	Name    string `json:"name"`
	Version string `json:"version"`
	dir     string
	files   archive.Tree
}

func readChart(b []byte) (c chart, err error) {
	if len(b) > maxChartFile {
		return c, fmt.Errorf("%s has %d bytes; at most %d are taken", chartFile, len(b), maxChartFile)
	}
	d, err := document.ParseOne(chartFile, b)
	if err != nil {
		return c, err
	}
	return c, d.Decode(&c)
}

// checkChart makes sure that what a repository gave is what was asked for.
func checkChart(b []byte, l LockedChart) error {
	what := fmt.Sprintf("what %s has as %s %s", fetch.Sanitize(l.Repository), l.Name, l.Version)
	t, err := archive.Read(bytes.NewReader(b), archive.DefaultLimits)
	if err != nil {
		return fmt.Errorf("%s cannot be used: %w", what, err)
	}
	file := path.Join(l.Name, chartFile)
	text, ok := t[file]
	if !ok {
		return fmt.Errorf("%s is no such chart: there is no %s in it", what, file)
	}
	c, err := readChart(text)
	if err != nil {
		return fmt.Errorf("%s cannot be used: %w", what, err)
	}
	// A v in front is a matter of spelling: the list of a repository and Chart.yaml may differ in it.
	if c.Name != l.Name || strings.TrimPrefix(c.Version, "v") != strings.TrimPrefix(l.Version, "v") {
		return fmt.Errorf("%s is another chart, %.80q in version %.80q; ask who publishes it", what, c.Name, c.Version)
	}
	return nil
}

// readLocalChart reads a chart beside the one that needs it, in the same stack.
func readLocalChart(files archive.Tree, dir, name, repository string) (chart, error) {
	at := strings.TrimPrefix(repository, pathScheme)
	shown := fetch.Sanitize(repository)
	p := path.Join(dir, at)
	switch {
	case strings.HasPrefix(at, "/"), strings.HasPrefix(p, "../"), p == "..":
		return chart{}, fmt.Errorf("%s leads out of the stack; a stack must be complete in its directory", shown)
	case p == path.Clean(dir):
		return chart{}, fmt.Errorf("%s is the chart itself, which cannot need itself", shown)
	}
	t := files.Sub(p)
	b, ok := t[chartFile]
	if !ok {
		return chart{}, fmt.Errorf("there is no %s where %s leads; the path begins at the chart that needs it",
			fetch.Sanitize(path.Join(p, chartFile)), shown)
	}
	c, err := readChart(b)
	if err != nil {
		return chart{}, fmt.Errorf("the chart in %s cannot be used: %w", p, err)
	}
	if c.Name != name {
		return chart{}, fmt.Errorf("the chart in %s is called %.80q; use that name", p, c.Name)
	}
	c.dir, c.files = p, t
	return c, c.checkPackable(files)
}

// placeholderPattern matches what a build fills in in the charts of a stack, but not in packed ones.
var placeholderPattern = regexp.MustCompile(`<< \.[A-Za-z]+Version >>`)

// checkPackable says why a chart of the stack cannot be packed as it is.
func (c chart) checkPackable(files archive.Tree) error {
	requirements, err := ListRequirements(files, c.dir)
	if err != nil {
		return err
	}
	for _, n := range requirements {
		if !IsVendored(files, c.dir, n) {
			return fmt.Errorf("the chart in %s itself needs %.80q, which is not in %s/charts; add it there", c.dir, n.Name,
				c.dir)
		}
	}
	for _, name := range c.files.Names() {
		if found := placeholderPattern.Find(c.files[name]); found != nil {
			return fmt.Errorf(
				"%s has %s in it, which a build does not fill in in charts that others need; write a value instead",
				path.Join(c.dir, name), found,
			)
		}
	}
	return nil
}

func (c chart) pack() ([]byte, error) {
	out := archive.Tree{}
	for file, b := range c.files {
		out[path.Join(c.Name, file)] = b
	}
	var buf bytes.Buffer
	if err := archive.Write(&buf, out); err != nil {
		return nil, fmt.Errorf("packing the chart in %s: %w", c.dir, err)
	}
	if int64(buf.Len()) > maxChart {
		return nil, fmt.Errorf("the chart in %s has %d bytes when it is packed; at most %d are taken", c.dir, buf.Len(),
			maxChart)
	}
	return buf.Bytes(), nil
}
