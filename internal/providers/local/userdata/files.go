package userdata

import (
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"
)

// parseFiles reads write_files.
func parseFiles(n *node) ([]File, error) {
	items, err := sequenceItems(n)
	if err != nil {
		return nil, fmt.Errorf("line %d: write_files %w", n.Line, err)
	}
	if len(items) > maxFiles {
		return nil, fmt.Errorf("line %d: write_files has %d files, more than the %d allowed", n.Line, len(items), maxFiles)
	}
	var (
		out  []File
		seen = pathTree{}
		left = maxContent
	)
	for i, item := range items {
		f, err := parseFile(item, left)
		if err == nil {
			err = seen.add(f.Path)
		}
		if err != nil {
			return nil, fmt.Errorf("write_files[%d]%s (line %d): %w", i, pathForError(f), item.Line, err)
		}
		left -= len(f.Content)
		out = append(out, f)
	}
	return out, nil
}

func pathForError(f File) string {
	if f.Path == "" {
		return ""
	}
	return " " + shorten(f.Path)
}

// parseFile reads one entry, of whose content at most limit bytes are decoded. With an error it
// returns the path as far as it is known.
func parseFile(n *node, limit int) (File, error) {
	f := File{Mode: 0o644} // as cloud-init has it
	pairs, err := mappingPairs(n)
	if err != nil {
		return f, fmt.Errorf("it %w", err)
	}
	var encoding string
	var body *node
	for _, p := range pairs {
		if isNull(p.value) { // as if it were not there
			continue
		}
		switch p.key {
		case "path":
			f.Path, err = scalarText(p.value)
		case "owner":
			f.Owner, err = scalarText(p.value)
		case "permissions":
			f.Mode, err = parseMode(p.value)
		case "append":
			f.Append, err = parseBool(p.value)
		case "encoding":
			encoding, err = scalarText(p.value)
		case "content":
			body = p.value
		default:
			err = errors.New("is not supported")
		}
		if err != nil {
			return f, fmt.Errorf("%s %w", shorten(p.key), err)
		}
	}
	clean, err := cleanPath(f.Path)
	if err != nil {
		return f, err
	}
	f.Path = clean
	f.Content, err = decodeContent(body, encoding, limit)
	return f, err
}

func parseMode(n *node) (fs.FileMode, error) {
	s, err := scalarText(n)
	if err != nil {
		return 0, err
	}
	// A bare 640 is a decimal number in YAML, and cloud-init would make it mode 1200.
	if n.ShortTag() == "!!int" && !strings.HasPrefix(s, "0") {
		return 0, fmt.Errorf("%s is a decimal number; write it in octal and in quotes", shorten(s))
	}
	m, err := strconv.ParseUint(strings.TrimPrefix(s, "0o"), 8, 32)
	if err != nil || m > 0o777 {
		return 0, fmt.Errorf("%s is not an octal mode up to 0777", strconv.Quote(shorten(s)))
	}
	return fs.FileMode(m), nil
}

func parseBool(n *node) (bool, error) {
	s, err := scalarText(n)
	if err != nil {
		return false, err
	}
	switch strings.ToLower(s) {
	case "true", "yes", "on", "1":
		return true, nil
	case "false", "no", "off", "0", "":
		return false, nil
	}
	return false, fmt.Errorf("is %s, not true or false", shorten(s))
}
