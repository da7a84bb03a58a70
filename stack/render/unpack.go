package render

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"

	"github.com/polder-kaas/polder/stack/archive"
)

// maxNesting is how deep archives may lie in archives.
const maxNesting = 5

// unpackDependencies unpacks the dependencies of a chart that are archives, through the bounded reader.
// left is how many bytes all charts of a request may have together.
func unpackDependencies(t archive.Tree, left *int64) (archive.Tree, *Error) {
	out := archive.Tree{}
	return out, unpackInto(out, "", t, maxNesting, left)
}

func unpackInto(out archive.Tree, dir string, t archive.Tree, depth int, left *int64) *Error {
	if *left -= t.Size(); *left < 0 {
		return errorf("unpacked, the charts and their dependencies are larger than %d MiB", archive.DefaultLimits.Total>>20)
	}
	for _, name := range t.Names() {
		if !isPackedChart(name) {
			if _, ok := out[dir+name]; ok {
				return &Error{Path: dir + name, Reason: "the dependency is there twice, as an archive and as a directory"}
			}
			out[dir+name] = t[name]
			continue
		}
		if depth == 0 {
			return &Error{Path: dir + name, Reason: fmt.Sprintf("this archive lies more than %d archives deep", maxNesting)}
		}
		inner, err := archive.Read(bytes.NewReader(t[name]), archive.DefaultLimits)
		if err != nil {
			return &Error{Path: dir + name, Reason: truncateReason(err.Error())}
		}
		// Two versions of one chart may be there, under two aliases: so not by the chart's name.
		to := dir + strings.TrimSuffix(name, ".tgz") + "/"
		if err := unpackInto(out, to, stripTopDir(inner), depth-1, left); err != nil {
			return err
		}
	}
	return nil
}

// stripTopDir gives what lies in the one directory of an archive that Helm packed.
func stripTopDir(t archive.Tree) archive.Tree {
	if dirs := t.Dirs(); len(dirs) == 1 {
		return t.Sub(dirs[0])
	}
	return t
}

// isPackedChart says whether a file is a dependency that Helm would unpack.
func isPackedChart(name string) bool { return packedChartPattern.MatchString(name) }

var packedChartPattern = regexp.MustCompile(`^(charts/[^/]+/)*charts/[^/_.][^/]*\.tgz$`)
