package process

import (
	"bytes"
	"slices"
	"strings"
)

const (
	tailLines = 20
	tailWidth = 500
)

// tail keeps the last lines of a stream: the beginnings of those that are too long, and
// none that are blank. The zero value is ready for use.
type tail struct {
	lines   []string
	partial []byte // the one that has not ended yet
}

func (t *tail) add(b []byte) {
	for len(b) > 0 {
		line, rest, ended := bytes.Cut(b, []byte{'\n'})
		t.partial = append(t.partial, line[:min(len(line), tailWidth-len(t.partial))]...)
		if ended {
			t.endLine()
		}
		b = rest
	}
}

func (t *tail) endLine() {
	// A character may have been cut in two, and people will read this as text.
	line := strings.TrimRight(strings.ToValidUTF8(string(t.partial), ""), " \t\r")
	t.partial = t.partial[:0]
	if line == "" {
		return
	}
	if len(t.lines) == tailLines {
		t.lines = slices.Delete(t.lines, 0, 1)
	}
	t.lines = append(t.lines, line)
}

// finish ends the line that has begun and returns all lines, nil if there are none.
func (t *tail) finish() []string {
	t.endLine()
	return t.lines
}
