package userdata

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/polder-kaas/polder/stack/text"
)

// collectModules turns the modules of a document into data. The order of the modules in the document means nothing:
// cloud-init runs bootcmd, writes files, and then runs runcmd.
func collectModules(modules []pair) (Data, error) {
	var d Data
	var run []Command
	var err error
	for _, m := range modules {
		switch {
		case m.key == "write_files":
			d.Files, err = parseFiles(m.value)
		case m.key == "bootcmd":
			d.Commands, err = parseCommands(m)
		case m.key == "runcmd":
			run, err = parseCommands(m)
		case !isEmpty(m.value):
			d.Ignored = append(d.Ignored, quoteUnprintable(m.key))
		}
		if err != nil {
			return Data{}, err
		}
	}
	d.Commands = append(d.Commands, run...)
	slices.Sort(d.Ignored)
	return d, nil
}

func parseCommands(m pair) ([]Command, error) {
	items, err := sequenceItems(m.value)
	if err != nil {
		return nil, fmt.Errorf("line %d: %s %w", m.value.Line, m.key, err)
	}
	var cs []Command
	for i, item := range items {
		if isNull(item) { // an item that is only a comment
			continue
		}
		line, err := shellCommand(item)
		if err != nil {
			return nil, fmt.Errorf("%s[%d] (line %d) %w", m.key, i, item.Line, err)
		}
		cs = append(cs, Command{Module: m.key, Line: quoteUnprintable(line)})
	}
	return cs, nil
}

// shellCommand returns what cloud-init puts into the script: a text as it is, a list with each word quoted.
func shellCommand(n *node) (string, error) {
	if s, err := scalarText(n); err == nil {
		if n.ShortTag() != "!!str" {
			return "", fmt.Errorf("is %s, not a command; put it into quotes", describeKind(n))
		}
		return strings.TrimRight(s, "\n"), nil
	}
	items, err := sequenceItems(n)
	if err != nil {
		return "", fmt.Errorf("is %s, not a command; put it into quotes", describeKind(n))
	}
	words := make([]string, len(items))
	for i, item := range items {
		word, err := scalarText(item)
		if err != nil {
			return "", fmt.Errorf("word %d %w", i, err)
		}
		words[i] = "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
	}
	return strings.Join(words, " "), nil
}

// quoteUnprintable returns s, quoted if it would not be one line on a terminal.
func quoteUnprintable(s string) string {
	if isPrintable(s) {
		return s
	}
	return strconv.Quote(s)
}

func isPrintable(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) })
}

// shorten returns s as it can stand in a message: printable, and not a page of it.
func shorten(s string) string { return quoteUnprintable(text.Truncate(s, 80)) }
